"""cuDSS, NVIDIA's sparse direct solver, through ctypes on CuPy's arrays.

Written for version 1 of the C interface, whose enumerations are kept here as names in order. The
library is the file in the environment variable CUDSS_LIBRARY, else that of the wheel
nvidia-cudss-cu13 or nvidia-cudss-cu12.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

WHEELS = ("nvidia-cudss-cu13", "nvidia-cudss-cu12")
VARIABLE = "CUDSS_LIBRARY"
MAJOR = 1  # the version of the interface whose numbers stand below

STATUS = (
    "success", "not initialized", "allocation failed", "invalid value", "not supported",
    "execution failed", "internal error", "refinement failed",
)  # fmt: skip
CONFIG = (
    "reordering_alg", "factorization_alg", "solve_alg", "matching_alg", "solve_mode",
    "ir_n_steps", "ir_tol", "pivot_type", "pivot_threshold", "pivot_epsilon", "max_lu_nnz",
    "hybrid_memory_mode", "hybrid_device_memory_limit", "use_cuda_register_memory",
    "host_nthreads", "hybrid_execute_mode", "pivot_epsilon_alg", "nd_nlevels", "ubatch_size",
    "ubatch_index", "use_superpanels", "device_count", "device_indices", "schur_mode",
    "deterministic_mode", "nd_ubfactor", "emulation_mantissa_bit_count",
    "force_nonsymmetric_matching", "downcast_factors", "memory_optimization_setting",
)  # fmt: skip
DATA = (
    "info", "lu_nnz", "npivots", "inertia", "perm_reorder_row", "perm_reorder_col", "perm_row",
    "perm_col", "diag", "user_perm", "hybrid_device_memory_min", "comm_device", "comm_host",
    "memory_estimates", "perm_matching", "scale_row", "scale_col", "nsuperpanels",
    "user_schur_indices", "schur_shape", "schur_matrix", "user_nd_partition_tree",
    "nd_partition_tree", "user_host_interrupt", "ir_n_steps", "ubatch_mask", "flops",
)  # fmt: skip
TYPES = ("general", "symmetric", "hermitian", "spd", "hpd")
VIEWS = ("full", "lower", "upper")
REORDERING = ("default", "btf_colamd", "colamd", "amd", "nested_dissection", "none")
PHASES = {
    "reordering": 1,
    "symbolic_factorization": 2,
    "analysis": 1 | 2,
    "factorization": 4,
    "refactorization": 8,
    "solve": 16 | 32 | 64 | 128 | 256 | 512,  # permutations, sweeps, diagonal, refinement
}
_WIDE = {"max_lu_nnz": c_int64, "hybrid_device_memory_limit": c_int64}
CONFIG_TYPES = _WIDE | dict.fromkeys(("ir_tol", "pivot_threshold", "pivot_epsilon"), c_double)
ESTIMATES = ("device", "device_peak", "host", "host_peak")  # the first of memory_estimates
CUDA_TYPES = {"f": 0, "d": 1, "F": 4, "D": 5}  # cudaDataType_t by NumPy's letter
INT32 = 10
_HANDLE = POINTER(c_void_p)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudssCreate": (_HANDLE,),
    "cudssDestroy": (c_void_p,),
    "cudssGetProperty": (c_int, POINTER(c_int)),
    "cudssSetThreadingLayer": (c_void_p, c_char_p),
    "cudssConfigCreate": (_HANDLE,),
    "cudssConfigDestroy": (c_void_p,),
    "cudssConfigSet": (c_void_p, c_int, c_void_p, c_size_t),
    "cudssDataCreate": (c_void_p, _HANDLE),
    "cudssDataDestroy": (c_void_p, c_void_p),
    "cudssDataSet": (c_void_p, c_void_p, c_int, c_void_p, c_size_t),
    "cudssDataGet": (c_void_p, c_void_p, c_int, c_void_p, c_size_t, POINTER(c_size_t)),
    "cudssMatrixCreateDn": (_HANDLE, c_int64, c_int64, c_int64, c_void_p, c_int, c_int),
    "cudssMatrixCreateCsr": (
        _HANDLE, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_void_p,
        c_int, c_int, c_int, c_int, c_int, c_int,
    ),
    "cudssMatrixSetValues": (c_void_p, c_void_p),
    "cudssMatrixDestroy": (c_void_p,),
    "cudssExecute": (c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
}  # fmt: skip


class CudssError(RuntimeError):
    """A status of cuDSS that is not success, or a factorization that broke down."""


def find(stem: str = "libcudss.so") -> Path | None:
    """Return the library's file, or that of another of its parts, or None where there is none.

    The threading layer, for one, is `find("libcudss_mtlayer_gomp.so")`: beside the library.
    """
    folders = []
    if os.environ.get(VARIABLE):
        named = Path(os.environ[VARIABLE])
        if stem == "libcudss.so":
            return named if named.is_file() else None
        folders.append(named.parent)
    for wheel in WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        places = (Path(str(x.locate())) for x in files if x.name.startswith("libcudss.so"))
        folders += [x.parent for x in places]
    return next((x for folder in folders for x in sorted(folder.glob(stem + "*"))), None)


@cache
def library() -> ctypes.CDLL:
    """Return the library, opened once, with its arguments declared.

    Raises
    ------
    CudssError
        If there is none, or of another version than this file was written for.
    """
    path = find()
    if path is None:
        raise CudssError(f"no cuDSS: set {VARIABLE} to its file, or pip install {WHEELS[0]}")
    _open_needed()
    found = ctypes.CDLL(str(path))
    for name, arguments in SIGNATURES.items():
        function = getattr(found, name)
        function.argtypes, function.restype = arguments, c_int
    major = int(_version(found).split(".")[0])
    if major != MAJOR:
        raise CudssError(f"{path} is of version {_version(found)}; {MAJOR} is needed")
    return found


def _open_needed() -> None:
    """Open cuBLAS and NVRTC, which cuDSS asks for by name: wheels put them on no search path."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:  # then the loader finds them, or says which is missing
        return
    for name in ("cublas", "nvrtc"):
        load_nvidia_dynamic_lib(name)


def _version(found: ctypes.CDLL) -> str:
    numbers = [c_int() for _ in range(3)]
    for which, number in enumerate(numbers):
        found.cudssGetProperty(which, byref(number))
    return ".".join(str(number.value) for number in numbers)


def version() -> str:
    """Return the library's version."""
    return _version(library())


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library; a status other than success is an error."""
    status = getattr(library(), name)(*arguments)
    if status:
        told = STATUS[status] if status < len(STATUS) else "unknown status"
        raise CudssError(f"{name}: {told} ({status})")


def matrix_type(kind: str, dtype: Any) -> str:
    """Return cuDSS's name of a kind: a complex "spd" matrix is "hpd" there."""
    name = "hpd" if kind == "spd" and np.dtype(dtype).kind == "c" else kind
    if name not in TYPES:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(TYPES)}")
    return name


def stored(A: Any, kind: str) -> sp.csr_array:
    """Return what cuDSS is given of A: rows in order, the upper triangle unless general."""
    csr = sp.csr_array(A if kind == "general" else sp.triu(A))
    csr.sort_indices()
    return csr


def new_handle() -> c_void_p:
    """Return a new handle of the library, which many solvers can share one after the other."""
    made = c_void_p()
    call("cudssCreate", byref(made))
    return made


class Solver:
    """One matrix through all phases of cuDSS; values and right-hand sides stay on the device.

    Parameters
    ----------
    A : (n, n) sparse matrix or array
        Both triangles stored.
    kind : {"general", "symmetric", "hermitian", "spd", "hpd"}
    permutation : (n,) int array, optional
        Entry k is the column eliminated k-th; cuDSS orders by itself without.
    threads : int, optional
        Threads of the host; needs the threading layer, which is taken if it is there.
    half : sparse array, optional
        What `stored` makes of A, where it was made before.
    handle : c_void_p, optional
        Of `new_handle`, which is then not closed.
    **options
        Of `CONFIG`, by name.
    """

    def __init__(
        self,
        A: Any,
        kind: str,
        permutation: np.ndarray | None = None,
        threads: int | None = None,
        half: sp.csr_array | None = None,
        handle: c_void_p | None = None,
        **options: Any,
    ) -> None:
        import cupy

        self.cupy, self.n, self.dtype = cupy, A.shape[0], np.dtype(A.dtype)
        self.config, self.data, self.matrix = (c_void_p() for _ in range(3))
        self._dense: dict[tuple[int, int], c_void_p] = {}
        self.handle, self._lent = handle or new_handle(), handle is not None
        call("cudssConfigCreate", byref(self.config))
        call("cudssDataCreate", self.handle, byref(self.data))
        self._use_threads(threads)
        for name, value in options.items():
            self.set(name, value)
        if permutation is not None:
            self.permutation = np.ascontiguousarray(permutation, np.int32)
            address = self.permutation.ctypes.data_as(c_void_p)
            self._set_data("user_perm", address, self.permutation.nbytes)
        self._give(stored(A, kind) if half is None else half, matrix_type(kind, self.dtype))
        self._zeros = cupy.zeros(self.n, self.dtype), cupy.zeros(self.n, self.dtype)

    def _use_threads(self, threads: int | None) -> None:
        layer = find("libcudss_mtlayer_gomp.so")
        self.threads = threads if threads and layer else 1
        if layer:
            call("cudssSetThreadingLayer", self.handle, str(layer).encode())
        if self.threads > 1:
            self.set("host_nthreads", self.threads)

    def _give(self, A: sp.csr_array, name: str) -> None:
        start, index = (self.cupy.asarray(x.astype(np.int32)) for x in (A.indptr, A.indices))
        self.pattern, self.values = (start, index), self.cupy.asarray(A.data)
        pointers = start.data.ptr, None, index.data.ptr, self.values.data.ptr
        scalar, view = CUDA_TYPES[self.dtype.char], "full" if name == "general" else "upper"
        told = INT32, INT32, scalar, TYPES.index(name), VIEWS.index(view), 0
        size = self.n, self.n, A.nnz
        call("cudssMatrixCreateCsr", byref(self.matrix), *size, *pointers, *told)

    def set(self, name: str, value: Any) -> None:
        """Set an option by its name in `CONFIG`."""
        if name not in CONFIG:
            raise ValueError(f"no option {name!r}; there are {', '.join(CONFIG)}")
        held = CONFIG_TYPES.get(name, c_int)(value)
        call("cudssConfigSet", self.config, CONFIG.index(name), byref(held), ctypes.sizeof(held))

    def _set_data(self, name: str, address: Any, size: int) -> None:
        call("cudssDataSet", self.handle, self.data, DATA.index(name), address, size)

    def get(self, name: str, count: int = 1, kind: Any = c_int64) -> list[int]:
        """Return figures by their name in `DATA`."""
        held, written = (kind * count)(), c_size_t()
        about = DATA.index(name), byref(held), ctypes.sizeof(held), byref(written)
        try:
            call("cudssDataGet", self.handle, self.data, *about)
        except CudssError:  # not every figure is known for every type of matrix
            return [0] * count
        return list(held)

    def analyze(self) -> None:
        """Order and analyze the pattern."""
        self._execute("analysis", *self._zeros)

    def factorize(self) -> None:
        """Factorize for the first time."""
        self._execute("factorization", *self._zeros)
        self.check()

    def refactorize(self, values: Any = None) -> None:
        """Factorize again, with other values on the device where given, in the order of `stored`.

        It is only begun: `check` waits for it.
        """
        if values is not None and values is not self.values:
            call("cudssMatrixSetValues", self.matrix, values.data.ptr)
            self.values = values
        self._execute("refactorization", *self._zeros)

    def check(self) -> None:
        """Raise if the last factorization broke down."""
        info = self.get("info", kind=c_int)[0]
        if info:
            raise CudssError(f"the factorization broke down: info {info}")

    def solve(self, B: Any, X: Any) -> None:
        """Solve A X = B on the device; both (n,) or (n, k) in Fortran order."""
        self._execute("solve", X, B)

    def _execute(self, phase: str, X: Any, B: Any) -> None:
        objects = self.config, self.data, self.matrix, self._wrapped(X), self._wrapped(B)
        call("cudssExecute", self.handle, PHASES[phase], *objects)

    def _wrapped(self, x: Any) -> c_void_p:
        """The descriptor of a dense array, made once for each place and width."""
        columns = 1 if x.ndim == 1 else x.shape[1]
        key = x.data.ptr, columns
        if key not in self._dense:
            if x.dtype != self.dtype or not x.flags.f_contiguous:
                raise ValueError("a dense array must have A's scalar type and Fortran order")
            self._dense[key] = c_void_p()
            about = self.n, columns, self.n, x.data.ptr, CUDA_TYPES[self.dtype.char], 0
            call("cudssMatrixCreateDn", byref(self._dense[key]), *about)
        return self._dense[key]

    def close(self) -> None:
        """Give everything back."""
        for matrix in (*self._dense.values(), self.matrix):
            call("cudssMatrixDestroy", matrix)
        self._dense.clear()
        call("cudssDataDestroy", self.handle, self.data)
        call("cudssConfigDestroy", self.config)
        if not self._lent:
            call("cudssDestroy", self.handle)
