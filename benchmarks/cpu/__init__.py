"""Sparse systems on processors: phases beside peers, orderings, overhead, files, start-up."""
