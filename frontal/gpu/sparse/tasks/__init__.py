"""Task lists of kernels."""
