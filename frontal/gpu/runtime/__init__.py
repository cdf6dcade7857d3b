"""The device layer: arrays, kernels, graphs, limits. Nothing here depends on matrices."""
