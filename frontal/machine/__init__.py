"""Cores, memory, threads, and the rates by which costs are estimated."""
