"""Tests of `frontal.torch`, beside PyTorch."""
