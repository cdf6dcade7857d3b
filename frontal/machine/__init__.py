"""Cores, memory, threads, and the rates of the cost estimates."""
