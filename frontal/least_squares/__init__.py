"""Least-squares solutions of rectangular systems by augmented systems."""
