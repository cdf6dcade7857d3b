"""The symbolic phase: from the pattern of a matrix to fronts and a plan, for all backends."""
