"""The numeric factorization on a device."""
