"""Tests of the repository: layers, style, documents, examples, benchmarks."""
