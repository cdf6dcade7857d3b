"""Large arrays arrive whole and in the order of a stream; here by a fake CUDA."""

import numpy as np
import pytest

from frontal.gpu.runtime.staging import MIN_STAGED_BYTES, Calls, Staging
from frontal.machine import threads

from ...emulation.copies import FakeCuda


def bytes_of(size):
    return np.random.default_rng(size).integers(0, 256, size, np.uint8)


def test_all_bytes_arrive_and_the_stream_waits_for_them():
    cuda = FakeCuda()
    copies = Staging(cuda, 3, cuda.calls)
    for sizes in (
        (MIN_STAGED_BYTES,),
        (3 * MIN_STAGED_BYTES + 13, 5),
        (1, (21 << 20) + 1, MIN_STAGED_BYTES, 0),
        (40 << 20,),
    ):
        sources = [bytes_of(size) for size in sizes]
        targets = [np.zeros_like(source) for source in sources]
        assert copies.send(sources, [target.ctypes.data for target in targets], cuda.free)
        cuda.finish()
        for source, target in zip(sources, targets, strict=True):
            np.testing.assert_array_equal(target, source)
    own, *lanes = cuda.late
    used = {*cuda.of.values()} - {own}
    assert len(lanes) == 8
    assert used
    assert {(own, lane) for lane in used} | {(lane, own) for lane in lanes} <= {*cuda.waited}
    assert cuda.devices == {3}


@pytest.mark.parametrize("size", [MIN_STAGED_BYTES, 3 * MIN_STAGED_BYTES + 13, (21 << 20) + 1])
def test_all_bytes_come_back(size):
    cuda = FakeCuda()
    copies = Staging(cuda, 0, cuda.calls)
    for source in bytes_of(size), bytes_of(size)[::-1].copy():
        target = np.zeros_like(source)
        assert copies.fetch(source.ctypes.data, target, cuda.free)
        np.testing.assert_array_equal(target, source)
    own, *lanes = cuda.late
    assert {(lane, own) for lane in lanes} <= {*cuda.waited}


def test_others_copy_meanwhile_as_the_driver_does(monkeypatch):
    cuda, found = FakeCuda(), []
    copies = Staging(cuda, 0, cuda.calls)
    source, target = np.ones((2, MIN_STAGED_BYTES // 8)), np.zeros((2, MIN_STAGED_BYTES // 8))

    def meanwhile(share, entries):
        found.append(copies.send([source], [target.ctypes.data], cuda.free))
        return [share(0, entries)]

    monkeypatch.setattr(threads, "parallel_for", meanwhile)
    assert copies.send([source], [target.ctypes.data], cuda.free)
    assert found == [False]


def test_without_memory_or_functions_for_it_the_driver_copies():
    source = np.ones(MIN_STAGED_BYTES // 8)

    def none():
        raise OSError("no such library")

    nothing = Staging(FakeCuda(memory=False), 0, lambda: Calls(0, 0, 0, 0, 0))
    for copies in nothing, Staging(FakeCuda(), 0, none):
        assert not copies.send([source], [source.ctypes.data], None)
        assert not copies.fetch(source.ctypes.data, source, None)


def test_errors_of_the_driver_are_raised():
    cuda = FakeCuda(code=700)
    source, target = np.ones((2, MIN_STAGED_BYTES // 8))
    copies = Staging(cuda, 0, cuda.calls)
    with pytest.raises(RuntimeError, match="700"):
        copies.send([source], [target.ctypes.data], cuda.free)
    with pytest.raises(RuntimeError, match="700"):
        copies.fetch(target.ctypes.data, source, cuda.free)


def test_arrays_of_any_size_go_to_a_device_and_come_back(device):
    sizes = 0, 7, MIN_STAGED_BYTES - 1, MIN_STAGED_BYTES, 5 * MIN_STAGED_BYTES + 3
    arrays = [bytes_of(size) for size in sizes] + [np.asfortranarray(np.eye(700))]
    before = device.later(arrays)
    for there in device.uploads(arrays), before():
        for array, copy in zip(arrays, there, strict=True):
            assert copy.shape == array.shape
            if copy.size:
                copy *= 2  # on the current stream, which waits for copies, and is waited for
            np.testing.assert_array_equal(device.download(copy), 2 * array)
