"""The device that tests of the public batched module use."""

from __future__ import annotations

import pytest

from frontal.gpu.dense import call_cache

from .batched_tools import Gpu


@pytest.fixture
def gpu(device, monkeypatch):
    """Move arrays to the device of the test, on which each call is the first of its shapes."""
    monkeypatch.setattr(call_cache, "_plans", {})
    return Gpu(device, monkeypatch)
