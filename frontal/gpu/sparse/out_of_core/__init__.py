"""Factors larger than the device: panels on the host, a segment of the tree at a time."""
