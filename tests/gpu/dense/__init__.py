"""Tests of batches of dense matrices."""
