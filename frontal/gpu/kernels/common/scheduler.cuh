// Tasks of persistent blocks: taken from a list by an atomic ticket, and ordered by flags.
//
// Deadlock: a list has every task after all that it waits for, tickets are handed out in its order,
// and who holds two of them works at the first. So the first unfinished task of the list, if it is
// taken, is being worked at and waits for finished ones alone; if it is not, a block is free to
// take it or all have ended. This holds for any number of resident blocks, one included.
//
// Flags are counters in global memory, zero when a launch begins, which only grow. Tasks of tiles:
// Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra algorithms for
// multicore architectures" (2009); blocks that stay and take work themselves: Gupta, Stuart, Owens,
// "A study of persistent threads style GPU programming for GPGPU workloads" (2012).
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// Tasks 0…count−1, by whole blocks. `number`, in shared memory, is that of the task; fetch() puts
// there what else all must know of it, by one thread; then run() by all, and end() when all have
// ended it.
template <class Fetch, class Run, class End>
__device__ __forceinline__ void each_task(
    int &number, int *ticket, int count, Fetch fetch, Run run, End end) {
    for (;;) {
        if (threadIdx.x == 0) {
            number = atomicAdd(ticket, 1);
            if (number < count) fetch();
        }
        __syncthreads();
        if (number >= count) return;
        run();
        __syncthreads();
        end();
    }
}

// The tasks of a block whose descriptions are a list; `Launch` has `tasks`, `count` and `ticket`,
// which is −1 when a launch begins, as messages are. A block asks for its next ticket while it ends a
// task, and not before: what one block held, others that are free could not do meanwhile. Nothing is
// done with the answer, not even + 1, until it goes on: whoever does would wait for it here.
template <class Task, class Launch> struct BlockTickets {
    const Launch &launch;
    Task *task;  // in shared memory, as `number`
    int *number;
    int next;

    __device__ void ask() {
        if (threadIdx.x == 0) next = atomicAdd(launch.ticket, 1);
    }
    // Go on to the next task, if there is one.
    __device__ bool advance() {
        constexpr int words = sizeof(Task) / sizeof(int4);
        if (threadIdx.x == 0) *number = next + 1;
        __syncthreads();
        int mine = *number;
        if (mine < launch.count) {
            const int4 *from = (const int4 *)(launch.tasks + mine);
            if (threadIdx.x < words) ((int4 *)task)[threadIdx.x] = from[threadIdx.x];
            if (threadIdx.x == 32 && mine + (int)gridDim.x < launch.count)
                prefetch(launch.tasks + mine + gridDim.x);  // for whoever comes to it
        }
        __syncthreads();
        return mine < launch.count;
    }
};

// The tasks of a warp, one of the block's WARPS, from such a list, or from its end where REVERSED:
// the description of the next one is on its way while one is worked at.
template <int WARPS, bool REVERSED, class Task, class Launch> struct WarpTickets {
    static constexpr int words = sizeof(Task) / sizeof(int4);
    const Launch &launch;
    Task *task;  // in shared memory
    int lane, next;
    int4 later;

    __device__ explicit WarpTickets(const Launch &launch) : launch(launch), lane(threadIdx.x % 32) {
        __shared__ Task all[WARPS];
        task = all + threadIdx.x / 32;
        ask();
        look_ahead();
    }
    __device__ void ask() {
        if (lane == 0) next = atomicAdd(launch.ticket, 1);
    }
    __device__ void look_ahead() {
        next = __shfl_sync(~0u, next, 0) + 1;
        const Task *from = launch.tasks + (REVERSED ? launch.count - 1 - next : next);
        if (lane < words && next < launch.count) later = ((const int4 *)from)[lane];
    }
    // Go on to the next task, if there is one; `look_ahead` must follow.
    __device__ bool advance() {
        if (next >= launch.count) return false;
        __syncwarp();
        if (lane < words) ((int4 *)task)[lane] = later;
        __syncwarp();
        ask();
        return true;
    }
};

// A flag, once it is `wanted` at least; what was written before it is then seen.
__device__ inline int wait_for(const int *flag, int wanted) {
    int found = acquire(flag);
    while (found < wanted) {
        while (load_relaxed(flag) < wanted) {}
        found = acquire(flag);
    }
    return found;
}

// Two flags, once both are more than `done`: the smaller one, `limit` at most. One warp reads both
// at once, and gives it to all threads of the block.
__device__ inline int wait_beyond(
    const int *row, const int *other, int done, int limit = 0x7fffffff) {
    __shared__ int ready;
    if (threadIdx.x < 32) {
        int found = wait_for(threadIdx.x % 2 ? other : row, done + 1);
        found = min_(found, shuffle_xor(found, 1));
        if (threadIdx.x == 0) ready = min_(found, limit);
    }
    __syncthreads();
    int found = ready;
    __syncthreads();
    return found;
}

// Set a flag, when all threads of the block have written what it stands for.
__device__ inline void publish(int *flag, int value) {
    __syncthreads();
    if (threadIdx.x == 0) release(flag, value);
}
