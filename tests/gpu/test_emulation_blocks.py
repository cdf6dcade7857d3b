"""Several resident blocks in the emulation, by kernels that are right and by their faults."""

import numpy as np
import pytest

from ..emulation.compiling import SANITIZE, EmulationError
from ..emulation.device import EmulatedDevice
from ..emulation.interleaved import POLICIES, InterleavedDevice, available, garbage, own_variables

pytestmark = pytest.mark.skipif(not available(), reason="no C++ compiler that tells of accesses")
races = pytest.mark.skipif(SANITIZE, reason="sanitizers take the place of the search for races")

SOURCE = r"""
// The block with ticket b waits for the one before, and adds 1 to what that one has written.
extern "C" __global__ void chain(int *flag, double *a, int fault, int *next) {
    __shared__ int ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(next, 1);
    __syncthreads();
    int b = ticket;
    if (b > 0 && fault != 1) {
        int wanted = fault == 2 ? 0 : 1;
        if (threadIdx.x == 63) {
            if (fault == 3) while (load_relaxed(flag + b - 1) < wanted) {}
            else while (acquire(flag + b - 1) < wanted) {}
        }
        if (fault != 4) __syncthreads();
    }
    double before = b > 0 ? a[64 * (b - 1) + threadIdx.x] : 0;
    if (fault == 5 && threadIdx.x == 0) release(flag + b, 1);
    a[64 * b + threadIdx.x] = before + 1;
    if (fault != 6) __syncthreads();
    if (threadIdx.x != 0 || fault == 5) return;
    if (fault == 7) flag[b] = 1;
    else if (fault == 8) atomicAdd(flag + b, 1);
    else release(flag + b, 1);
}
// All blocks overwrite what others read, when they are done, or at once.
extern "C" __global__ void reuse(int *done, double *a, double *out, int wait) {
    out[64 * blockIdx.x + threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        release_add(done, 1);
        while (wait && acquire(done) < (int)gridDim.x) {}
    }
    __syncthreads();
    if (blockIdx.x == 0) a[threadIdx.x] = -1;
}
// Block 0 sends, the others wait for the message or do not.
extern "C" __global__ void message(double *sent, double *out, int wait, int plain) {
    double *mine = sent + threadIdx.x;
    if (blockIdx.x == 0) {
        if (plain) *mine = threadIdx.x;
        else *(volatile double *)mine = threadIdx.x;
        return;
    }
    double seen = *(volatile double *)mine;
    while (wait && seen < 0) __nanosleep(20), seen = *(volatile double *)mine;
    out[64 * blockIdx.x + threadIdx.x] = seen;
}
// Nobody goes on before all have come, each with a number of its own.
extern "C" __global__ void meet(int *arrived, int *out) {
    __shared__ int own[2], other;
    if (threadIdx.x == 0) own[1] = other = 7 * blockIdx.x, release_add(arrived, 1);
    if (threadIdx.x == 0) while (acquire(arrived) < (int)gridDim.x) {}
    __syncthreads();
    if (threadIdx.x == 40) out[blockIdx.x] = own[1] + other;
}
"""
SCHEDULES = [(policy, seed, 4) for policy in POLICIES for seed in (1, 2)]


@pytest.fixture(scope="module")
def device():
    return InterleavedDevice(sources={"self": SOURCE})


def chain(device, fault, blocks=6):
    flag, a, ticket = np.zeros(blocks, np.int32), garbage(64 * blocks), np.zeros(1, np.int32)
    kernel = device.kernel("self", "chain", np.float64)
    kernel((blocks,), (64,), (flag, a, np.int32(fault), ticket))
    return a.reshape(blocks, 64)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_blocks_wait_for_each_other(device, schedule):
    device.use(*schedule)
    np.testing.assert_array_equal(chain(device, 0), np.arange(1, 7)[:, None] + np.zeros(64))


FAULTS = {
    1: "no wait",
    2: "a wait for too little",
    3: "a relaxed load in place of acquire",
    4: "no barrier after the wait of one thread",
    5: "a release before the stores",
    6: "a release before the barrier that ends the stores",
    7: "a plain store of a flag",
    8: "a relaxed operation in place of a release",
}


@races
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("fault", FAULTS, ids=FAULTS.get)
def test_each_fault_is_a_race(device, policy, fault):
    # the flag may be set by chance where those that wait for it do not come first
    device.use("youngest" if fault == 2 else policy, 1, 4)
    message = r"kernel chain, block \(\d, 0, 0\), thread .*: a race: (reads|writes) the number at"
    with pytest.raises(EmulationError, match=message):
        chain(device, fault)


@races
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_others_still_read(device, schedule):
    device.use(*schedule)
    kernel, a = device.kernel("self", "reuse", np.float64), np.ones(64)
    kernel((4,), (64,), (np.zeros(1, np.int32), a, garbage(256), np.int32(1)))
    assert a.max() == -1
    with pytest.raises(EmulationError, match=r"a race: .* (has read|has written)"):
        kernel((4,), (64,), (np.zeros(1, np.int32), a, garbage(256), np.int32(0)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_messages(device, schedule):
    device.use(*schedule)
    kernel = device.kernel("self", "message", np.float64)
    for _ in range(3):
        sent, out = np.full(64, -1.0), garbage(256)
        kernel((4,), (64,), (sent, out, np.int32(1), np.int32(0)))
        np.testing.assert_array_equal(out[64:].reshape(3, 64) - np.arange(64), 0)


def test_messages_that_are_not_waited_for(device):
    kernel, stale = device.kernel("self", "message", np.float64), 0
    for seed in range(5):
        device.use("random", seed, 4)
        sent, out = np.full(64, -1.0), garbage(256)
        kernel((4,), (64,), (sent, out, np.int32(0), np.int32(0)))
        stale += (out[64:] == -1).any()
    assert stale
    if not SANITIZE:
        with pytest.raises(EmulationError, match="a race"):
            kernel((4,), (64,), (sent, out, np.int32(0), np.int32(1)))


def test_each_block_has_its_own_shared_variables(device):
    device.use("youngest", 1, 4)
    kernel, out = device.kernel("self", "meet", np.float64), np.zeros(4, np.int32)
    kernel((4,), (64,), (np.zeros(1, np.int32), out))
    assert out.tolist() == [0, 14, 28, 42]


def test_a_deadlock_names_what_each_block_waits_for(device):
    device.use("lazy", 1, 3)
    arrived, out = np.zeros(1, np.int32), np.zeros(4, np.int32)
    message = r"deadlock in kernel meet: all blocks wait; block \(0, 0, 0\); thread \(0, 0, 0\) "
    message += r"waits at a flag 0x\w+ of value 3; thread .* waits at __syncthreads, which 63 of 64"
    message += r".*; block \(2, 0, 0\)"
    with pytest.raises(EmulationError, match=message):
        device.kernel("self", "meet", np.float64)((4,), (64,), (arrived, out))
    serial = EmulatedDevice(sources={"self": SOURCE}).kernel("self", "meet", np.float64)
    with pytest.raises(EmulationError, match="waits for ever"):
        serial((2,), (64,), (np.zeros(1, np.int32), out))


def test_no_more_blocks_than_the_device_holds(device):
    device.use("random", 1, 8)
    kernel, out = device.kernel("self", "meet", np.float64), np.zeros(8, np.int32)
    half = device.limits.shared_multiprocessor // 2
    kernel((4,), (64,), (np.zeros(1, np.int32), out), half)
    with pytest.raises(EmulationError, match="deadlock"):
        kernel((5,), (64,), (np.zeros(1, np.int32), out), half)


def test_memory_is_garbage_and_no_message():
    for dtype in ("f4", "f8", "c8", "c16"):
        a = garbage((2, 3), dtype)
        assert np.isnan(a).all()
        assert (a.view(np.uint8) != 0xFF).any()
    assert 0 <= garbage(3, np.int32).max() < 64


def test_variables_in_shared_memory():
    line = "__shared__ int list[2 * (N + 1)], found[3];  // both\n__shared__ T x;"
    found = own_variables(line)
    assert "struct Variables_1 { int list[2 * (N + 1)], found[3]; };" in found
    assert "auto &list = variables_1.list; auto &found = variables_1.found;  // both\n" in found
    assert "auto &x = variables_2.x;" in found
    assert own_variables("extern __shared__ char all[];") == "extern __shared__ char all[];"
