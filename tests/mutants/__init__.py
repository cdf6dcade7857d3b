"""Plausible bugs in tables, each with the test that must fail with it."""
