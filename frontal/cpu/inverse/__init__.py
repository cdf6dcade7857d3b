"""Entries of the inverse of a matrix from its factors: the selected inverse."""
