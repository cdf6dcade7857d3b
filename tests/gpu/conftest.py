"""Fixtures of all tests of a GPU."""

import pytest


@pytest.fixture(autouse=True)
def with_fronts_alone(with_fronts):
    """Analyses for the CPU, which tests give to a GPU, have fronts."""
