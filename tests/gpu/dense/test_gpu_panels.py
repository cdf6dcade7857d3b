"""The papers' Cholesky kernels of the GPU ladder against LAPACK's backward error."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.dense import panels

from ...emulation.borders import Frame
from .test_gpu_potrf import check, definite, half, run

VARIANTS = ("exclusive", "exclusive-classic-greedy", "exclusive-classic-lazy")
VARIANTS += ("exclusive-aggressive-greedy", "inclusive", "inclusive-classic", "separate")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_variants_of_the_papers(device, dtype, variant):
    assert set(panels.VARIANTS) == set(VARIANTS)
    sizes = [0, 1, 7, 8, 33, 20, 140, 257] if dtype == "f8" else [5, 140, 17]
    run(device, "vbatched", sizes, dtype, "L", variant, panels.potrf)
    run(device, "batched", [130, 130], dtype, "L", variant, panels.potrf)
    run(device, "native", [45], dtype, "L", variant, panels.potrf)
    if variant == "separate":
        run(device, "pointers", [130, 130], dtype, "U", variant, panels.potrf)


def test_variants_tell_failures(device):
    rng = np.random.default_rng(8)
    for variant in VARIANTS:
        a = [definite(rng, n, "f8") for n in (20, 150, 9)]
        a[0][13, 13] = -1
        a[1][140, 140] = np.nan
        frame = Frame(device, [half(x, "L") for x in a])
        info = device.upload(np.full(3, -1, np.int32))
        panels.potrf(frame.batch, info, "L", variant)
        assert list(device.download(info)) == [14, 141, 0], variant
        check(a[2], frame.matrices()[2], "L")
