"""The emulation of CUDA on the CPU, by kernels whose results are known."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ..emulation import sanitize
from ..emulation.compiling import COMPILER, EmulationError
from ..emulation.device import EmulatedDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to emulate kernels with")

SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256) reverse(int *a) {
    __shared__ int copy[256];
    copy[threadIdx.x] = a[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    a[blockIdx.x * blockDim.x + threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void race(int *a) {
    __shared__ int copy[64];
    for (int turn = 0; turn < 4; ++turn) {
        copy[threadIdx.x] = turn;
        a[threadIdx.x] += copy[63 - threadIdx.x] == turn;
        __syncthreads();
    }
}
extern "C" __global__ void sums(double *a, int width) {
    double value = a[threadIdx.x];
    for (int s = width / 2; s > 0; s /= 2) value += __shfl_xor_sync(~0u, value, s, width);
    a[threadIdx.x] = value;
}
extern "C" __global__ void shuffles(int *a) {
    int lane = threadIdx.x % 32;
    a[threadIdx.x] = __shfl_sync(~0u, lane, lane + 1, 8);
    a[64 + threadIdx.x] = __shfl_up_sync(~0u, lane, 3, 16);
    a[128 + threadIdx.x] = __shfl_down_sync(~0u, lane, 3, 16);
    a[192 + threadIdx.x] = (int)__ballot_sync(~0u, lane % 3 == 0);
}
extern "C" __global__ void halves(int *a) {
    unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
    int value = threadIdx.x, steps = threadIdx.x < 16 ? 3 : 5;
    for (int s = 0; s < steps; ++s) value = __shfl_xor_sync(mask, value, 1);
    a[threadIdx.x] = __shfl_sync(~0u, value, threadIdx.x);
}
extern "C" __global__ void product(double *c, const double *a, const double *b, int k) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    double sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = c[g + 8 * (i / 2) + 16 * (2 * t + i % 2)];
    double x[8], y[4];
    for (int i = 0; i < k / 2; ++i) x[i] = a[g + 8 * (i % 2) + 16 * (t + 4 * (i / 2))];
    for (int i = 0; i < k / 4; ++i) y[i] = b[t + 4 * i + k * g];
    if (k == 16) mma_16x8x16(sum, x, y);
    if (k == 8) mma_16x8x8(sum, (const double (&)[4])x, (const double (&)[2])y);
    if (k == 4) {
        mma_8x8x4((double (&)[2])sum[0], x[0], y[0]);
        mma_8x8x4((double (&)[2])sum[2], x[1], y[0]);
    }
    for (int i = 0; i < 4; ++i) c[g + 8 * (i / 2) + 16 * (2 * t + i % 2)] = sum[i];
}
extern "C" __global__ void stuck() {
    if (threadIdx.x == 3) __shfl_sync(~0u, 1, 0);
    else __syncthreads();
}
extern "C" __global__ void apart() {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}
extern "C" __global__ void divergent() {
    if (threadIdx.x % 2) __shfl_sync(~0u, 1, 0);
    else __syncwarp();
}
extern "C" __global__ void flags(int *flag, int *a, int set) {
    if (threadIdx.x == 0)
        while (acquire(flag) == 0) {}
    else if (set && threadIdx.x == 40) a[0] = 5, release(flag, 1);
    __syncthreads();
    a[1] = a[0];
}
extern "C" __global__ void copies(const double *from, double *to, int wait) {
    double *mine = shared_memory() + threadIdx.x;
    copy_async<8>(mine, from + threadIdx.x, threadIdx.x != 5);
    copy_async_commit();
    if (wait) copy_async_wait<0>();
    else copy_async_wait<1>();
    to[threadIdx.x] = *mine;
}
extern "C" __global__ void tickets(int *next, int *taken, int count) {
    __shared__ int ticket;
    for (;;) {
        if (threadIdx.x == 0) ticket = atomicAdd(next, 1);
        __syncthreads();
        int mine = ticket;
        __syncthreads();
        if (mine >= count) return;
        if (threadIdx.x == 1) atomicMax(taken + mine, 1 + (int)blockIdx.x);
    }
}
extern "C" __global__ void overrun(double *a, double *b, int i) {
    shared_memory()[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    b[threadIdx.x] = shared_memory()[threadIdx.x + i];
}
struct Pair { double *a; int n; };
extern "C" __global__ void by_value(Pair pair, double factor) {
    if ((int)threadIdx.x < pair.n) pair.a[threadIdx.x] *= factor;
}
"""
HEAD = "inline double *shared_memory() { return (double *)emulation::shared(); }\n"


def find(name):
    device = EmulatedDevice(sources={"self": HEAD + SOURCE})
    return device.kernel("self", name, np.float64)


@pytest.fixture
def kernel():
    return find


def test_barrier(kernel):
    a = np.arange(3 * 256, dtype=np.int32)
    kernel("reverse")((3,), (256,), (a,))
    assert a.tolist() == np.arange(3 * 256).reshape(3, 256)[:, ::-1].ravel().tolist()


def test_a_missing_barrier_shows(kernel):
    a = np.zeros(64, np.int32)
    kernel("race")((1,), (64,), (a,))
    assert a.min() < 4


@pytest.mark.parametrize("width", [2, 8, 32])
def test_butterfly_sums(kernel, width):
    a = np.random.default_rng(0).standard_normal(128)
    expected = a.reshape(-1, width).sum(1).repeat(width)
    kernel("sums")((1,), (128,), (a, np.int32(width)))
    np.testing.assert_allclose(a, expected, rtol=1e-14, atol=1e-14)


def test_shuffles(kernel):
    a = np.zeros(256, np.int32)
    kernel("shuffles")((1,), (64,), (a,))
    lane = np.arange(64) % 32
    np.testing.assert_array_equal(a[:64], lane // 8 * 8 + (lane + 1) % 8)
    np.testing.assert_array_equal(a[64:128], np.where(lane % 16 < 3, lane, lane - 3))
    np.testing.assert_array_equal(a[128:192], np.where(lane % 16 > 12, lane, lane + 3))
    assert set(a[192:].view(np.uint32).tolist()) == {sum(1 << i for i in range(0, 32, 3))}


def test_parts_of_a_warp_shuffle_apart(kernel):
    a = np.zeros(32, np.int32)
    kernel("halves")((1,), (32,), (a,))
    np.testing.assert_array_equal(a, np.arange(32) ^ 1)


@pytest.mark.parametrize("k", [4, 8, 16])
def test_tensor_core_products(kernel, k):
    rng = np.random.default_rng(k)
    a, b, c = (np.asfortranarray(rng.standard_normal(s)) for s in ((16, k), (k, 8), (16, 8)))
    expected = c + a @ b
    kernel("product")((1,), (32,), (c, a, b, np.int32(k)))
    np.testing.assert_allclose(c, expected, rtol=1e-13, atol=1e-13)


def test_a_deadlock_is_told_by_thread(kernel):
    message = r"deadlock in kernel stuck, block \(0, 0, 0\); thread \(0, 0, 0\) waits at "
    message += r"__syncthreads, which 63 of 64.*thread \(3, 0, 0\) waits at __shfl_sync"
    with pytest.raises(EmulationError, match=message):
        kernel("stuck")((2,), (64,), ())


def test_threads_at_different_barriers_are_told(kernel):
    with pytest.raises(EmulationError, match=r"is at the barrier of line \d+ while others are at"):
        kernel("apart")((1,), (64,), ())


def test_lanes_that_go_different_ways_are_told(kernel):
    with pytest.raises(EmulationError, match=r"is at __\w+ while lane \d+ of its warp is at __\w+"):
        kernel("divergent")((1,), (32,), ())


def test_a_flag_is_waited_for(kernel):
    flag, a = np.zeros(1, np.int32), np.zeros(2, np.int32)
    kernel("flags")((1,), (64,), (flag, a, np.int32(1)))
    assert a.tolist() == [5, 5]
    flag[0] = 0
    with pytest.raises(EmulationError, match="waits for ever"):
        kernel("flags")((1,), (64,), (flag, a, np.int32(0)))


def test_a_copy_that_is_not_waited_for_is_poison(kernel):
    source, target = np.arange(1.0, 33), np.zeros(32)
    expected = np.where(np.arange(32) == 5, 0, source)
    kernel("copies")((1,), (32,), (source, target, np.int32(1)), shared=256)
    assert target.tolist() == expected.tolist()
    kernel("copies")((1,), (32,), (source, target, np.int32(0)), shared=256)
    assert np.isnan(target).all()


def test_tickets(kernel):
    counter, taken = np.zeros(1, np.int32), np.zeros(9, np.int32)
    kernel("tickets")((3,), (64,), (counter, taken, np.int32(9)))
    assert taken.tolist() == [1] * 9
    assert counter[0] == 9 + 3


def test_arguments_by_value(kernel):
    a = np.ones(8)
    pair = np.array((a.ctypes.data, 5), dtype=np.dtype([("a", "u8"), ("n", "i4")], align=True))
    kernel("by_value")((1,), (32,), (pair, np.float64(3)))
    assert a.tolist() == [3] * 5 + [1] * 3
    with pytest.raises(EmulationError, match=r"of \[16, 8\] bytes, not of \[16, 4\]"):
        kernel("by_value")((1,), (32,), (pair, np.float32(3)))
    with pytest.raises(EmulationError, match="NumPy scalar"):
        kernel("by_value")((1,), (32,), (pair, 3.0))


def test_a_launch_that_the_device_cannot_do_is_refused(kernel):
    with pytest.raises(EmulationError, match="cannot be launched"):
        kernel("stuck")((1,), (1025,), ())


OVERRUN = """
import numpy as np
from tests.gpu.test_emulation import find

a, b = np.zeros({a}), np.zeros({b})
find("overrun")((1,), (33,), (a, b, np.int32({i})), shared={shared})
print("done")
"""


@pytest.mark.parametrize(
    ("a", "b", "i", "shared", "ok"),
    [
        (33, 33, 0, 264, True),
        (33, 33, 1, 264, False),
        (33, 33, 0, 256, False),
        (32, 33, 0, 264, False),
        (33, 32, 0, 264, False),
    ],
)
def test_sanitizers_find_one_element_too_far(a, b, i, shared, ok):
    if not sanitize.runtimes():
        pytest.skip("no sanitizers: g++ and its libasan are needed")
    done = subprocess.run(
        (sys.executable, "-c", OVERRUN.format(a=a, b=b, i=i, shared=shared)),
        env=sanitize.environment(),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == ok, done.stderr
    assert done.stdout == ("done\n" if ok else "")
    assert ("AddressSanitizer: heap-buffer-overflow" in done.stderr) != ok
