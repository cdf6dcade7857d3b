"""Sweeps, residuals and condition numbers on a device."""
