"""A device to compute on: arrays, kernels, graphs, limits. Nothing here knows of matrices."""
