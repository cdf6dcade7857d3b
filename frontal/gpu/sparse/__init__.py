"""The GPU backend: fronts of an assembly tree on the device."""
