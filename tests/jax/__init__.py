"""Tests of `frontal.jax`, beside JAX."""
