"""Hashes of what the solver computes, to see that a change of its structure changes no bit.

``python -m tests.bits store FILE`` comes before the change, ``... compare FILE`` after it: 40
systems, by Cholesky where they are definite and by LU, in four scalar types, on the CPU and on the
emulated device. Hashed are the analysis, the factors, solutions, new values and errors.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import frontal
from frontal.problems import from_name

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
GRIDS = (
    "poisson2d:1",
    "poisson2d:3",
    "poisson2d:9",
    "poisson2d:17",
    "poisson2d:40x11",
    "poisson2d9:12",
    "poisson3d:3",
    "poisson3d:8",
    "poisson3d27:6",
    "aniso2d:14",
    "aniso3d:6",
    "heat2d:12",
    "heat3d:6",
    "biharmonic2d:12",
    "elasticity3d:3",
    "graph:150",
    "convdiff2d:5",
    "convdiff2d:18",
    "convdiff3d:7",
    "helmholtz2d:13",
    "helmholtz3d:6",
    "stokes2d:5",
    "kkt:60",
    "kktreg:60",
    "linear_program:40",
    "circuit:200",
)
LARGE = ("poisson3d:17", "convdiff3d:15", "dense:900")  # for the CPU alone: fronts in tiles


def random(name: str, size: int) -> sp.csc_array:
    """A matrix that is no grid: by its name, always the same."""
    rng = np.random.default_rng(size)
    a = sp.random_array((size, size), density=min(1.0, 4 / size), random_state=rng, format="csc")
    if name == "definite":
        return sp.csc_array(a @ a.T + sp.eye_array(size))
    if name == "arrow":
        a = sp.lil_array(sp.diags_array(np.full(size, 4.0)))
        a[0, :] = a[:, 0] = 0.5
        a[0, 0] = size
        return sp.csc_array(a)
    if name == "dense":
        full = rng.standard_normal((size, size))
        return sp.csc_array(full @ full.T + size * np.eye(size))
    if name == "full":
        return sp.csc_array(rng.standard_normal((size, size)))
    if name == "cyclic":  # a zero diagonal
        return sp.csc_array(sp.eye_array(size).tocsr()[np.roll(np.arange(size), 1)] + 0.1 * a)
    if name == "scaled":
        d = sp.diags_array(2.0 ** rng.integers(-30, 30, size))
        return sp.csc_array(d @ (a + sp.eye_array(size)) @ d)
    if name == "weak":  # pivots that are replaced
        return sp.csc_array(a + sp.diags_array(np.where(np.arange(size) % 3, 1.0, 1e-14)))
    if name == "blocks":
        parts = from_name("poisson2d:4"), from_name("convdiff2d:5")
        return sp.csc_array(sp.block_diag(parts * 3))
    return sp.csc_array(a)  # singular


OTHERS = (
    "definite:1",
    "definite:50",
    "definite:200",
    "arrow:90",
    "dense:70",
    "dense:150",
    "full:40",
    "full:130",
    "cyclic:60",
    "scaled:80",
    "weak:90",
    "blocks:1",
    "singular:30",
    "cyclic:7",
)
SYSTEMS = (*GRIDS, *OTHERS)


def system(name: str, dtype: type) -> sp.csc_array:
    """A system of the list in a scalar type; complex ones are rotated, and stay Hermitian."""
    kind, _, size = name.partition(":")
    a = from_name(name) if name in GRIDS or name in LARGE[:2] else random(kind, int(size))
    if np.dtype(dtype).kind == "c" and a.dtype.kind != "c":
        lower, upper = sp.tril(a, -1) * np.exp(0.3j), sp.triu(a, 1) * np.exp(-0.3j)
        a = sp.csc_array(lower + upper + sp.diags_array(a.diagonal()))
    elif np.dtype(dtype).kind != "c":
        a = a.real
    return sp.csc_array(a).astype(dtype)


def bits(*found: object) -> str:
    """A short hash of arrays and of other things."""
    digest = hashlib.sha256()
    for one in found:
        if sp.issparse(one):
            one = sp.csc_array(one)
            digest.update(bits(one.data, one.indices, one.indptr).encode())
        else:
            x = np.asarray(one)
            digest.update(f"{x.dtype} {x.shape} ".encode() + x.tobytes(order="F"))
    return digest.hexdigest()[:16]


def answers(name: str, kind: str, letter: str, backend: str) -> dict[str, str]:
    """Hashes of all that is asked about one system."""
    a, out = system(name, DTYPES[letter]), {}
    rng = np.random.default_rng(7)
    shape = (a.shape[0], 3)
    b = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(DTYPES["z"])
    b = np.asarray(b if letter in "cz" else b.real, DTYPES[letter])
    options = {"kind": kind, "ordering": "amd", "backend": backend}
    try:
        analysis = frontal.analyze(a, **options)
        plan = analysis.plan
        fronts = plan.start, plan.parent, plan.pointer, plan.rows, plan.relative
        out["analysis"] = bits(analysis.perm, analysis.row_perm, *fronts)
        factor = analysis.factorize(a)
        for step in ("first", "again"):
            out[f"{step} factors"] = bits(factor.L, factor.U, factor.perm_r, factor.perm_c)
            out[f"{step} questions"] = bits(*factor.slogdet(), factor.growth)
            for trans in "NTH":
                out[f"{step} {trans}"] = bits(
                    factor.solve(b[:, 0], trans, refine=0), factor.solve(b, trans)
                )
            out[f"{step} complex"] = bits(factor.solve(b[:, :2] + 1j * b[:, 1:]))
            out[f"{step} pivots"] = str(factor.info["perturbed_pivots"])
            factor.refactorize(a * 1.5)
        out["copy"] = bits(factor.copy().solve(b), factor.to_cpu().solve(b))
    except (frontal.FrontalError, ValueError) as error:
        out["error"] = f"{type(error).__name__}: {error}"
    return out


def work(case: tuple[str, str, str, str]) -> tuple[str, dict[str, str]]:
    """Answers of a case, and its name; warnings count as answers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = answers(*case)
    told = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    return " ".join(case), {**found, "warnings": bits(*told) if told else "none"}


def emulate() -> None:
    """Let ``backend="gpu"`` be the emulated device."""
    from .emulation.device import EmulatedDevice

    device = EmulatedDevice()
    for home in ("frontal.gpu.runtime.device", "frontal.gpu.device"):
        try:
            module = importlib.import_module(home)
        except ModuleNotFoundError:
            continue
        setattr(module, "device_of", lambda array=None: device)  # noqa: B010
        return


def cases() -> list[tuple[str, str, str, str]]:
    """All of them; what takes longest first."""
    every = [("cpu", name) for name in (*LARGE, *SYSTEMS)] + [("gpu", name) for name in SYSTEMS]
    return [
        (name, kind, letter, backend)
        for backend, name in every
        for kind in ("auto", "general")
        for letter in DTYPES
    ]


def main() -> None:
    """Store hashes in a file, or compare those of a file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("action", choices=("store", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="cases that have these words in their names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    os.environ.setdefault("FRONTAL_NUM_THREADS", "2")
    wanted = [c for c in cases() if all(word in " ".join(c).split() for word in args.only.split())]
    with concurrent.futures.ProcessPoolExecutor(args.jobs, initializer=emulate) as pool:
        found = dict(pool.map(work, wanted, chunksize=4))
    if args.action == "store":
        args.file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return
    before = json.loads(args.file.read_text(encoding="utf-8"))
    changed = {
        name: [key for key in {**now, **before[name]} if now.get(key) != before[name].get(key)]
        for name, now in found.items()
        if now != before[name]
    }
    for name, keys in changed.items():
        sys.stdout.write(f"{name}: {', '.join(keys)}\n")
    sys.stdout.write(f"{len(changed)} of {len(found)} cases differ\n")
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
