"""Compilation of Python by Numba: machine code that is linked once and cached on disk."""
