"""Kernels on the CPU: the headers that compile them as C++, and a device that runs them."""
