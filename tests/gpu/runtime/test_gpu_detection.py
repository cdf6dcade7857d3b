"""Finding a GPU through CuPy, with and without CuPy, and never at import."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest

import frontal
from frontal import gpu
from frontal.backend import choose


def install(monkeypatch, count):
    """Put a CuPy with so many devices, or with an error, in the place of the real one."""

    def device_count():
        if isinstance(count, Exception):
            raise count
        return count

    runtime = types.SimpleNamespace(
        getDeviceCount=device_count, getDeviceProperties=lambda i: {"name": f"GPU {i}".encode()}
    )
    cuda = types.SimpleNamespace(runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))


def test_devices_are_found(monkeypatch):
    install(monkeypatch, 2)
    assert gpu.devices() == ["GPU 0", "GPU 1"]
    assert gpu.device_count() == 2
    assert gpu.available()
    gpu.require()


@pytest.mark.parametrize(
    ("count", "message"),
    [(0, "no device"), (RuntimeError("driver too old"), "RuntimeError: driver too old")],
)
def test_without_a_device(monkeypatch, count, message):
    install(monkeypatch, count)
    assert gpu.devices() == []
    assert not gpu.available()
    with pytest.raises(gpu.DeviceNotFoundError, match=message) as caught:
        gpu.require()
    assert "pip install 'cupy-cuda13x[ctk]'" in str(caught.value)
    assert isinstance(caught.value, frontal.FrontalError)


def test_the_cpu_waits_for_nothing_of_a_gpu():
    code = """
import sys, frontal
A = frontal.problems.from_name("poisson2d:5")
frontal.solve(A, A.diagonal(), backend="cpu")
rooms = "frontal.gpu.", "scipy.sparse.linalg", "scipy.io"
print([name for name in sys.modules if name.startswith(rooms)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu.device_count() == 0
    with pytest.raises(gpu.DeviceNotFoundError, match="CuPy is not installed"):
        gpu.require()


KINDS = {  # clock in kHz, multiprocessors, capability, single over double: data sheets' Tflop/s
    "H200": ((1_980_000, 132, 9, 0, 2), (66.9, 33.5)),
    "A100": ((1_410_000, 108, 8, 0, 2), (19.5, 9.7)),
    "RTX 4090": ((2_520_000, 128, 8, 9, 64), (82.6, 1.29)),
    "T4": ((1_590_000, 40, 7, 5, 32), (8.1, 0.254)),
    "RTX 3050 laptop": ((1_500_000, 16, 8, 6, 64), (6.1, 0.096)),
}


@pytest.mark.parametrize("name", KINDS)
def test_slow_double_precision_leaves_the_cpu(monkeypatch, name):
    told, (single, double) = KINDS[name]
    install(monkeypatch, 1)
    attributes = dict(zip((13, 16, 75, 76, 87), told, strict=True))
    runtime = sys.modules["cupy"].cuda.runtime
    runtime.deviceGetAttribute = lambda attribute, index: attributes[attribute]
    runtime.getDevice = lambda: 0
    speed = gpu.speed()
    assert speed == gpu.speed(0)
    assert speed.single == pytest.approx(single * 1e12, rel=0.02)
    assert speed.double == pytest.approx(double * 1e12, rel=0.02)
    monkeypatch.delenv("FRONTAL_BACKEND", raising=False)
    monkeypatch.setattr(choose, "_has_gpu", lambda: True)
    monkeypatch.setattr(choose, "_speed", lambda: speed)
    for cores, slow in ((1, False), (12, double < 0.48), (1000, name not in ("H200", "A100"))):
        monkeypatch.setattr(choose, "thread_count", lambda cores=cores: cores)
        for dtype in ("f4", "f8", "c8", "c16"):
            wanted = "cpu" if slow and dtype in ("f8", "c16") else "gpu"
            assert choose.resolved("auto", 1e12, np.dtype(dtype)) == wanted
            assert choose.resolved("gpu", 1e12, np.dtype(dtype)) == "gpu"
            assert choose.resolved("auto", 1e3, np.dtype(dtype)) == "cpu"


def test_a_speed_that_is_not_told(monkeypatch):
    install(monkeypatch, 1)
    assert gpu.speed(0) is None
    assert not choose.slow_gpu(np.dtype("f8"), None)


def test_a_module_that_another_thread_imports_tells_of_no_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "frontal.gpu.runtime.device", types.ModuleType("device"))
    assert not choose._gpu_in_use()
    assert choose.lookahead("auto", np.dtype("f8")) is None


def test_import_loads_no_cupy():
    code = "import sys, frontal, frontal.gpu; sys.exit('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
