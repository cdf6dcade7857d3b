"""Launches that are replayed: enqueued, recorded, replayed; and enqueued while a user captures."""

from __future__ import annotations

import numpy as np
import pytest

from frontal.gpu.runtime.graph import CapturedLaunches, Launch

from ...emulation.compiling import COMPILER
from ...emulation.device import EmulatedDevice


class Recorder:
    """As much of a device as records and replays; it notes what happens."""

    def __init__(self):
        self.events = []
        self.is_capturing = False

    def capturing(self):
        return self.is_capturing

    def record(self, run):
        self.events.append("record")
        assert not self.is_capturing
        kept, self.events = self.events, []
        run()
        recorded, self.events = self.events, kept

        def replay():
            if not self.is_capturing:
                self.events.append(("replay", recorded))
            return not self.is_capturing

        return replay

    def launch(self, name):
        def kernel(grid, block, arguments, shared):
            self.events.append((name, grid, block, arguments, shared))

        return Launch(kernel, 2, 32, (name,), 16)

    def take(self):
        found, self.events = self.events, []
        return found


@pytest.fixture
def recorder():
    return Recorder()


def replayed(recorder, *names):
    launches = [recorder.launch(name) for name in names]
    return CapturedLaunches(recorder, lambda: recorder.events.append("begin"), launches)


def enqueued(*names):
    return ["begin", *((name, (2,), (32,), (name,), 16) for name in names)]


def test_the_first_call_enqueues_the_second_records_and_later_ones_replay(recorder):
    run = replayed(recorder, "a", "b")
    run()
    assert recorder.take() == enqueued("a", "b")
    run()
    assert recorder.take() == ["record", ("replay", enqueued("a", "b"))]
    run()
    assert recorder.take() == [("replay", enqueued("a", "b"))]


def test_a_launch_more_is_recorded_too(recorder):
    run = replayed(recorder, "a")
    run()
    run.append(recorder.launch("b"))
    recorder.take()
    run()
    assert recorder.take() == ["record", ("replay", enqueued("a", "b"))]


@pytest.mark.parametrize("before", range(4))
def test_every_call_enqueues_while_the_user_captures(recorder, before):
    run = replayed(recorder, "a")
    for _ in range(before):
        run()
    recorder.take()
    recorder.is_capturing = True
    for _ in range(3):
        run()
        assert recorder.take() == enqueued("a")


def test_captured_calls_change_nothing_for_others(recorder):
    run = replayed(recorder, "a")
    wanted = [
        enqueued("a"),
        ["record", ("replay", enqueued("a"))],
        [("replay", enqueued("a"))],
        [("replay", enqueued("a"))],
    ]
    for events in wanted:
        recorder.is_capturing = True
        for _ in range(2):
            run()
        recorder.take()
        recorder.is_capturing = False
        run()
        assert recorder.take() == events


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_an_emulated_device_captures_where_a_test_says_so():
    device = EmulatedDevice()
    assert not device.capturing()
    count = np.zeros(1)
    run = CapturedLaunches(device, lambda: np.add(count, 1, out=count), [])
    run()
    device.is_capturing = True
    run()
    assert device.capturing()
    assert (count[0], run.runs) == (2, 1)
