"""Tests of fronts on the device."""
