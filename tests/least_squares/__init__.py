"""Tests of `frontal.lstsq`."""
