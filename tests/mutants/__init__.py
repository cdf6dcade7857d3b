"""Plausible bugs as patches, each with the test that must find it."""
