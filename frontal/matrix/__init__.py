"""Matrices and right-hand sides in one form: sorted compressed columns, dense blocks."""
