"""Tests of kernels, compiled and emulated."""
