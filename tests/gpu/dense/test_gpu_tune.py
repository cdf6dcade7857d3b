"""Tuned numbers: where they are kept, what goes before what, how the sweep finds them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields

import numpy as np
import pytest

import frontal.gpu.runtime.device
from frontal.cli import commands as cli
from frontal.gpu.dense import launch, tune
from frontal.gpu.runtime import tuned


@dataclass(frozen=True)
class PotrfTuning:
    crossover: int = 64
    tile: int = field(default=32, metadata={"choices": (16, 32, 64)})
    fused: bool = True
    label: str = "not a number"
    sizes: tuple[int, ...] = (1, 2)


@pytest.fixture
def numbers(monkeypatch, tmp_path):
    """A tuning dataclass of a test, and a cache folder of its own."""
    monkeypatch.setenv("FRONTAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(launch.TUNING, "potrf", PotrfTuning)
    launch.tuning.cache_clear()
    yield tmp_path
    launch.tuning.cache_clear()


def test_shipped_files_name_fields_that_exist():
    path = tuned.files(tuned.__package__).joinpath("nvidia_h200.json")
    shipped = json.loads(path.read_text())
    assert tuned.file_name(shipped["device"]) == "nvidia_h200.json"
    for routine, values in shipped["routines"].items():
        kind = launch.TUNING[routine]
        assert set(values) <= {f.name for f in fields(kind)}


def test_the_user_goes_before_the_defaults(numbers):
    assert launch.tuning("potrf", "Some GPU") == PotrfTuning()
    path = tune.save("Some GPU", {"potrf": {"tile": 16, "sizes": [3], "gone": 1}})
    assert path == numbers / "tuned" / "some_gpu.json"
    assert launch.tuning("potrf", "Some GPU") == PotrfTuning(tile=16, sizes=(3,))
    assert launch.tuning("potrf", "Another GPU") == PotrfTuning()
    with tune.trial("potrf", {"crossover": 8}):
        assert launch.tuning("potrf", "Some GPU") == PotrfTuning(crossover=8)
    assert launch.tuning("potrf", "Some GPU").crossover == 64


@pytest.mark.parametrize("text", ["{", '{"routines": 3}', "[]", '{"routines": {"potrf": 5}}'])
def test_a_broken_file_is_left_aside(numbers, caplog, text):
    path = numbers / "tuned" / "some_gpu.json"
    path.parent.mkdir()
    path.write_text(text)
    assert launch.tuning("potrf", "Some GPU") == PotrfTuning()
    assert "are ignored" in caplog.text


class Device:
    """As much of a device as a sweep with a driver of the test needs."""

    xp, name = np, "Some GPU"

    def pointer(self, array):
        return array.ctypes.data

    def stays(self, array):
        return array

    def upload(self, array):
        return np.array(array, order="C")


def seconds(found):
    """A model of the time with its least value at crossover 96, tile 64, not fused."""
    return 1 + abs(found.crossover - 96) / 64 + 4 / found.tile + 0.5 * found.fused


@pytest.fixture
def driver(monkeypatch):
    """A driver that doubles its matrices, or misbehaves for one tile."""
    bad = {}

    def make(routine, operands, info):
        def call():
            current = launch.tuning("potrf", Device.name)
            if current.tile in bad:
                bad[current.tile]()
            info[0] = 0

        return call

    monkeypatch.setattr(tune, "_driver", make)
    return bad


CASES = {"potrf": (tune.Case("fixed", 3, 2), tune.Case("uniform", 5, 4), tune.Case("native", 4, 1))}


def sweep(**options):
    def timer(call, restore):
        restore()
        call()
        return seconds(launch.tuning("potrf", Device.name))

    return tune.sweep(Device(), ["potrf"], timer=timer, cases=CASES, **options)


def test_the_sweep_finds_the_fastest(numbers, driver):
    found, changes = sweep()
    assert found == {"potrf": {"crossover": 96, "tile": 64, "fused": False}}
    assert {c.knob: (c.before, c.after) for c in changes} == {
        "crossover": (64, 96),
        "tile": (32, 64),
        "fused": (True, False),
    }
    assert all(c.gain > 1 for c in changes)
    tune.save(Device.name, found)
    assert launch.tuning("potrf", Device.name).tile == 64


def test_values_that_fail_are_left_aside(numbers, driver):
    def fail():
        raise RuntimeError("too much shared memory")

    driver[64] = fail
    assert sweep()[0]["potrf"] == {"crossover": 96, "fused": False}


def test_results_that_change_are_left_aside(numbers, driver, monkeypatch):
    monkeypatch.setattr(
        tune.Probe, "agrees", lambda self: launch.tuning("potrf", Device.name).tile != 64
    )
    assert sweep()[0]["potrf"] == {"crossover": 96, "fused": False}


def test_a_routine_that_fails_keeps_its_defaults(numbers, driver, caplog):
    def fail():
        raise RuntimeError("a wrong launch")

    driver[32] = fail
    assert sweep() == ({}, [])
    assert "potrf is not tuned" in caplog.text


def test_time_is_limited(numbers, driver):
    found, changes = sweep(seconds=0.0)
    assert found == {}
    assert all(c.before == c.after and c.gain == 1 for c in changes)


def test_the_command(numbers, driver, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: Device())
    monkeypatch.setattr(tune, "CASES", CASES)
    monkeypatch.setattr(
        tune, "device_timer", lambda call, restore: seconds(launch.tuning("potrf", Device.name))
    )
    target = tmp_path / "found.json"
    assert cli.main(["tune", "--routines", "potrf", "-o", str(target), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["routines"]["potrf"]["tile"] == 64
    assert json.loads(target.read_text())["routines"] == report["routines"]
    assert cli.main(["tune", "--routines", "potrf"]) == 0
    assert "potrf tile" in capsys.readouterr().out
    assert cli.main(["tune", "--routines", "qr"]) == 1
    assert "unknown routine qr" in capsys.readouterr().err
