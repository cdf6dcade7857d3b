"""Every kernel file compiles for the GPUs that matter, in registers, with tensor cores in use.

Registers are those of optimized code: for float64 on sm_90, and of two kernels that multiply tiles
on sm_80 too. Other cases take only the first half of compiling, a tenth of the time: other
architectures, other scalars and variants of dense kernels (FRONTAL_ALL_SCALARS compiles them too),
and, for GPUs that give a block 64 or 99 KB of shared memory, all files, each for one of them, and
the kernels of factorizations and solves with the constants that their launches choose.
One wrapper of three is compiled; all are parsed for float64 on sm_90.
"""

from pathlib import Path

import numpy as np
import pytest

from frontal.gpu.runtime import jit
from frontal.gpu.runtime.limits import Limits
from frontal.gpu.sparse.first_kernels import begin_kernels
from frontal.numeric.method import CHOLESKY, LDLT, LU

from .. import nvrtc
from ..conftest import ALL_SCALARS

pytestmark = pytest.mark.skipif(
    nvrtc.folder() is None, reason="NVRTC is not here: pip install 'nvidia-cuda-nvrtc~=13.0'"
)
LADDER = Path(__file__).resolve().parents[2] / "benchmarks" / "dense" / "kernels"
FILES = [*jit.files_of_entries(), (LADDER / "potrf_panels.cu").as_posix()]
# files whose entries are products of tiles
PRODUCTS = ("gemm.", "herk", "trsm.", "potrf_tasks", "potrf_tiles", "getrf_update", "front_tiles")
MORE = {  # constants beside the defaults of a file
    "front_backward.cu": [{"AHEAD": 2}, {"AHEAD": 2, "LU": 1}, {"WIDTH": 8}],
    "front_forward.cu": [{"AHEAD": 2}, {"AHEAD": 2, "LU": 1, "FLIP": 1}, {"WIDTH": 8}],
    "front_backward_small.cu": [{"RESIDENTS": 4}, {"RESIDENTS": 4, "LU": 1}, {"WIDTH": 8}],
    "front_forward_small.cu": [{"RESIDENTS": 4}, {"RESIDENTS": 4, "LU": 1}, {"WIDTH": 8}],
    "front_chains.cu": [{"LU": 1, "PERTURB": 1}],
    "front_small.cu": [{"LU": 1, "PERTURB": 1}],
    "batch_statistics.cu": [{"LU": 1}],
    "front_trees.cu": [
        {"RESIDENTS": 3},
        {"RESIDENTS": 8, "TEAM": 3},
        {"LU": 1, "RESIDENTS": 3},
        {"WIDTH": 8},
    ],
    "front_tiles.cu": [{"LU": 1, "PERTURB": 1}],
    "gemv.cu": [{"UNROLL": 1}, {"UNROLL": 8}],
    "gemm.cu": [{"TILE": 0}, {"TILE": 1}, {"TILE": 2}, {"TILE": 3, "TRANS_B": 2}],
    "getrf_block.cu": [{"INTO": 2}],
    "getrf_left.cu": [{"INTO": 2}],
    "getrf_tiny.cu": [{"INTO": 2}, {"INTO": 2, "FIRST_ROW": 0}],
    "inverse.cu": [{"INTO": 2}],
    "getrf_panel.cu": [{"PANEL": 8, "ROWS": 4}],
    "jacobi.cu": [{"ORDER": 16, "GROUP": 4}, {"ORDER": 64, "GROUP": 16}],
    "labrd.cu": [{"ROWS": 32}],
    "potrf_shared.cu": [{"ORDER": 32}, {"ORDER": 96}, {"ORDER": 96, "INTO": 2, "UPLO": 1}],
    "potrf_tasks.cu": [{"INTO": 2}],
    "potrf_tiles.cu": [{"RESIDENTS": 3}, {"RESIDENTS": 3, "INTO": 1}, {"RESIDENTS": 3, "INTO": 2}],
    "potrf_tiny.cu": [{"INTO": 1}, {"INTO": 2, "UPLO": 1}],
    "trsm_tiny.cu": [{"WIDTH": 8, "RIGHTS": 8}, {"WIDTH": 24, "RIGHTS": 16}],
    "equilibrate.cu": [{"NARROW": 1}],
    "herk.cu": [{"TILE": 0}, {"TILE": 2}, {"TILE": 3, "TRANS": 1}],
}
LDL = {"LDL": 1, "ADJOINT": 0}
SIGNED = ("LDL", 1), ("ADJOINT", 1), ("SIGNED", 1)
for _name, _more in {
    "front_backward.cu": {"AHEAD": 2},
    "front_backward_small.cu": {"RESIDENTS": 4},
    "front_chains.cu": {"PERTURB": 1},
    "front_forward.cu": {"AHEAD": 2},
    "front_forward_small.cu": {"RESIDENTS": 4},
    "front_pivots.cu": {},
    "front_small.cu": {"PERTURB": 1},
    "front_tiles.cu": {"PERTURB": 1},
    "front_trees.cu": {"RESIDENTS": 3},
    "system.cu": {},
}.items():
    MORE.setdefault(_name, []).append(LDL | _more)
RELEASE = 13, 5  # of NVRTC, on which spills depend: older ones spill more
SPILLED = {  # a few bytes of addresses, touched at most once a slice of operands
    ("potrf_tiny.cu", "f8", 90, (("INTO", 2), ("UPLO", 1))): 32,
    ("system.cu", "f8", 90, ()): 56,  # of searches of fronts and entries
    ("getrf_left.cu", "f8", 90, (("INTO", 2),)): 116,
    ("inverse.cu", "f8", 90, ()): 88,  # of the second matrix
    ("front_backward.cu", "f8", 90, (("WIDTH", 8),)): 84,
    ("front_forward.cu", "f8", 90, (("WIDTH", 8),)): 144,
    ("front_backward_small.cu", "f8", 90, (("RESIDENTS", 4),)): 424,  # worth it for a fourth block
    ("front_backward_small.cu", "f8", 90, (("RESIDENTS", 4), ("LU", 1))): 496,
    ("front_forward_small.cu", "f8", 90, (("RESIDENTS", 4),)): 232,
    ("front_forward_small.cu", "f8", 90, (("RESIDENTS", 4), ("LU", 1))): 240,
    ("front_backward_small.cu", "f8", 90, (*LDL.items(), ("RESIDENTS", 4))): 492,
    ("front_forward_small.cu", "f8", 90, (*LDL.items(), ("RESIDENTS", 4))): 240,
    ("front_trees.cu", "f8", 90, (("RESIDENTS", 8), ("TEAM", 3))): 52,
    **{  # around calls
        ("front_tiles.cu", "f8", 90, (*method, ("PERTURB", 1))): 192
        for method in (LDL.items(), SIGNED)
    },
    ("front_backward_small.cu", "f8", 90, (("WIDTH", 8),)): 96,
    **{("front_tiles.cu", "f8", arch, ()): 80 for arch in (80, 90)},  # around calls
    ("gebrd.cu", "f8", 90, ()): 140,  # around calls, eight reads under way in each
    ("gebrd.cu", "f4", 90, ()): 108,
    ("jacobi.cu", "f8", 90, ()): 16,
    ("qr.cu", "f8", 90, ()): 56,  # around the calls that divide
    ("getrf_left.cu", "f8", 90, ()): 140,  # 512 threads: 128 each
}
CASES = [
    (name, "f8", arch, ())
    for name in FILES
    for arch in (80, 90)
    if arch == 90 or name in ("gemm.cu", "front_tiles.cu")
]
if ALL_SCALARS:
    CASES += [(name, "c16", 90, ()) for name in FILES if name.startswith((*PRODUCTS, "front"))]
    CASES += [(name, "f4", 90, ()) for name in FILES if name.startswith((*PRODUCTS, "gebrd"))]
VARIANTS = [
    (name, "f8", 90, tuple(constants.items())) for name in FILES for constants in MORE.get(name, ())
]
SPARSE = ("front_", "system.", "condition.", "equilibrate.", "batch_")
CASES += [case for case in VARIANTS if ALL_SCALARS or case[0].startswith(SPARSE)]
CASES += [("front_tiles.cu", "c16", 90, (("LDL", 1), ("ADJOINT", 1), ("PERTURB", 1)))]
CASES += [("front_tiles.cu", "f8", 90, (*SIGNED, ("PERTURB", 1))), ("system.cu", "f8", 90, SIGNED)]
CASES += [  # with less shared memory, and before sm_80 without tensor cores
    ("front_tiles.cu", "f8", 75, (("OUTSIDE", 1),)),
    ("front_forward.cu", "c16", 89, (("IN_PLACE", 1), ("WIDTH", 4))),
    ("potrf_tiles.cu", "c8", 75, (("OUTSIDE", 1), ("RESIDENTS", 3))),
    ("gemm.cu", "f8", 120, ()),
]
SCALARS = ("f4", "f8", "c8", "c16")
SMALL = {  # GPUs with less shared memory
    75: Limits(4, 64 << 10, 64 << 10, (7, 5)),
    86: Limits(4, 99 << 10, 100 << 10, (8, 6)),
    89: Limits(4, 99 << 10, 100 << 10, (8, 9)),
    120: Limits(4, 99 << 10, 100 << 10, (12, 0)),
}
PARSED = [  # each file for one of them, half of the files for the one without tensor cores
    (name, SCALARS[i // 2 % 4], arch, tuple(SMALL[arch].constants.items()))
    for i, name in enumerate(FILES)
    for arch in ((86, 75, 120, 75)[i % 4],)
]
PARSED += [
    (name, dtype, (80, 90, 100)[(i + j) % 3])
    for i, name in enumerate(FILES)
    for j, dtype in enumerate(("f4", "c8", "c16"))
]
PARSED += [
    ("front_small.cu", "f4", 90, (*SIGNED, ("PERTURB", 1))),
    ("front_tiles.cu", "c16", 90, (*SIGNED, ("PERTURB", 1))),
    ("system.cu", "f4", 90, SIGNED),
    ("front_small.cu", "c8", 90, (*LDL.items(), ("PERTURB", 1))),
    ("front_tiles.cu", "c16", 86, (*LDL.items(), ("OUTSIDE", 1), ("PERTURB", 1))),
    ("front_small.cu", "f4", 75, ()),
    ("getrf_block.cu", "f8", 75, ()),
]


class KernelList:
    """A device that lists the kernels that are requested."""

    def __init__(self, limits):
        self.limits, self.files = limits, []

    def begin(self, files, dtype):
        self.files.extend(files)


def taken(method, dtype, arch):
    """Kernel files and their constants, as a first factorization on a small device takes them."""
    device = KernelList(SMALL[arch])
    begin_kernels(device, method, np.dtype(dtype))
    return [
        (file, dtype, arch, tuple(sorted((dict(given) | device.limits.constants).items())))
        for file, given in device.files
    ]


TAKEN = [
    case
    for j, arch in enumerate((75, 89))
    for i, dtype in enumerate(SCALARS)
    if (i + j) % 2  # two scalars each
    for case in taken((CHOLESKY, LU, LDLT)[(i + j) % 3], dtype, arch)
]
PARSED = [*dict.fromkeys([*PARSED, *TAKEN, *VARIANTS])]
PARSED = [case for case in PARSED if case not in CASES]
OLDER = [(name, "f8", 80, ()) for name in FILES]
OLDER += [(name, "f8", 80, (("LU", 1),)) for name in FILES if name.startswith("front")]


def label(case):
    about = (Path(case[0]).name, *case[1:3])
    return "-".join(map(str, about)) + "".join(f"-{k}={v}" for k, v in (*case[3:], ())[0])


def entries(case):
    """Of the wrappers of a kernel one is compiled, all are parsed."""
    found = set(jit.entries(case[0]))
    return {entry for entry in found if not entry.endswith(("_native", "_batched"))}


def has_products(case):
    return case[0].startswith(PRODUCTS) and case[1] == "f8" and case[2] in (80, 90)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_compiles_without_local_memory(case):
    tensor = has_products(case) and nvrtc.disassembler() is not None
    report = nvrtc.compiled(*case, whole=False, disassemble=tensor)
    assert report.error == ""
    assert set(report.registers) == entries(case)
    if case[1] in ("f4", "f8") and nvrtc.release() >= RELEASE:
        assert max(report.local.values(), default=0) <= SPILLED.get(case, 0)
    if tensor:
        assert {entry for entry in entries(case) if not report.tensor.get(entry)} == set()


def test_tensor_cores_are_seen_by_a_disassembler():
    if nvrtc.disassembler() is None:
        pytest.skip("nvdisasm is not here: pip install 'nvidia-cuda-nvdisasm~=13.0'")
    assert set(nvrtc.compiled("copy.cu", "f8", 90, disassemble=True).tensor.values()) == {0}


@pytest.mark.parametrize("name", FILES)
def test_all_wrappers_are_valid(name):
    assert nvrtc.parsed(name, "f8", 90, whole=True) == ""


@pytest.mark.parametrize("case", PARSED, ids=label)
def test_other_scalars_and_architectures_are_valid(case):
    assert nvrtc.parsed(*case) == ""


@pytest.mark.parametrize("case", OLDER, ids=label)
def test_cuda_12_takes_them(case):
    where = nvrtc.folder("nvidia.cuda_nvrtc")
    if where is None:
        pytest.skip("NVRTC of CUDA 12 is not here: pip install nvidia-cuda-nvrtc-cu12")
    assert nvrtc.parsed(*case, where) == ""
