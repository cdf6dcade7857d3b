"""Machine code of kernels on disk: kept, bounded, never believed when damaged."""

import pytest

from frontal.gpu.runtime import jit
from frontal.gpu.runtime.cubins import Cubins, digest

KEYS = [digest("", (str(i),)) for i in range(4)]


def never():
    raise AssertionError("compiled what is there")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "new" / "kernels.cubins"
    assert Cubins(path).get(KEYS[0], lambda: b"first") == b"first"
    return path


def test_code_is_kept(path):
    here, other = Cubins(path), Cubins(path)
    assert here.get(KEYS[0], never) == b"first"
    assert here.get(KEYS[1], lambda: b"second") == b"second"
    assert other.get(KEYS[0], never) == b"first"
    other.get(KEYS[2], lambda: b"third")  # by a process that has looked before
    assert [Cubins(path).get(key, never) for key in KEYS[:3]] == [b"first", b"second", b"third"]
    assert here.get(KEYS[0], lambda: b"of another driver", recompile=True) == b"of another driver"
    assert Cubins(path).get(KEYS[0], never) == b"of another driver"
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:30],
        lambda content: b"X" + content[1:],
        lambda content: content[:-2] + b"XX",
        lambda content: content + b"\xff" * 100,
    ],
)
def test_what_is_damaged_is_compiled_anew(path, harm):
    path.write_bytes(harm(path.read_bytes()))
    found = Cubins(path).get(KEYS[0], lambda: b"first")
    Cubins(path).get(KEYS[1], lambda: b"second")
    assert found == b"first"
    assert [Cubins(path).get(key, never) for key in KEYS[:2]] == [b"first", b"second"]


def test_a_file_does_not_grow_for_ever(path):
    few = Cubins(path, limit=100)
    for key in KEYS[1:]:
        few.get(key, lambda: bytes(40))
    assert Cubins(path).get(KEYS[3], never) == bytes(40)
    assert Cubins(path).get(KEYS[1], lambda: b"gone") == b"gone"
    assert path.stat().st_size < 400


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert Cubins(tmp_path / "file" / "kernels").get(KEYS[0], lambda: b"first") == b"first"


def test_all_that_code_depends_on_is_in_its_digest():
    options = jit.nvrtc_options("f8", {"A": 1})
    keys = {digest(text, jit.nvrtc_options(dtype, {"A": a}))
            for text in ("x", "y") for dtype in ("f4", "f8") for a in (1, 2)}  # fmt: skip
    assert len(keys) == 8
    assert digest("x", options) in keys
