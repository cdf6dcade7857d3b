"""Finding a GPU through CuPy, with and without CuPy, and never at import."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import frontal
from frontal import gpu


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


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu.device_count() == 0
    with pytest.raises(gpu.DeviceNotFoundError, match="CuPy is not installed"):
        gpu.require()


def test_import_loads_no_cupy():
    code = "import sys, frontal, frontal.gpu; sys.exit('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
