"""Tests of kernels, graphs, devices."""
