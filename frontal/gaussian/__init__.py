"""Gaussian Markov random fields by sparse precision matrices."""

from .field import GMRF, Marginal

__all__ = ["GMRF", "Marginal"]
