"""Examples of the GPU's modules run where there is a GPU, and adapters beside their library."""

from __future__ import annotations

import importlib.util

import pytest
from _pytest.doctest import DoctestItem

from frontal import gpu

NEEDS_GPU = (
    "frontal.gpu.dense.batched",
    "frontal.gpu.dense.batched_products",
    "frontal.gpu.dense.lists",
)

# adapters that are not collected without their library
collect_ignore = [f"frontal/{name}" for name in ("torch",) if not importlib.util.find_spec(name)]


def pytest_collection_modifyitems(items):
    without = pytest.mark.skip(reason="no GPU")
    for item in items:
        if (
            isinstance(item, DoctestItem)
            and item.name.startswith(NEEDS_GPU)
            and not gpu.available()
        ):
            item.add_marker(without)
