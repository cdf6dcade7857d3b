"""Tests of `frontal.gaussian`, beside dense formulas."""
