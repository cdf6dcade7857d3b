"""Examples of the GPU's modules run where there is a GPU."""

from __future__ import annotations

import pytest
from _pytest.doctest import DoctestItem

from frontal import gpu

NEEDS_GPU = (
    "frontal.gpu.dense.batched",
    "frontal.gpu.dense.batched_products",
    "frontal.gpu.dense.lists",
)


def pytest_collection_modifyitems(items):
    without = pytest.mark.skip(reason="no GPU")
    for item in items:
        if (
            isinstance(item, DoctestItem)
            and item.name.startswith(NEEDS_GPU)
            and not gpu.available()
        ):
            item.add_marker(without)
