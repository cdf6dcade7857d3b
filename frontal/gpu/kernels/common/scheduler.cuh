// Tasks of persistent blocks, taken from a list by an atomic ticket and ordered by flags.
//
// Deadlock: in the list each task comes after all tasks that it waits for; tickets are issued in
// the order of the list; a block with two tickets runs the first one first. Consider the first
// unfinished task. If it is taken, its block is running it, and it waits only for finished tasks.
// If it is not taken, either a block is free to take it or all blocks have ended. The argument
// holds for any number of resident blocks, one included.
//
// Flags are counters in global memory, zero when a launch begins, that only grow. Tasks of tiles:
// Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra algorithms for
// multicore architectures" (2009); persistent blocks: Gupta, Stuart, Owens, "A study of persistent
// threads style GPU programming for GPGPU workloads" (2012).
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// Run tasks 0…count−1 by whole blocks. `number`, in shared memory, is the current task. One thread
// calls fetch() to store the task's other data in shared memory; then all threads call run(), and
// end() when all have finished it.
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

// The tasks of a block, whose descriptions are a list. `Launch` has `tasks`, `count` and `ticket`;
// the ticket is −1 when a launch begins, like unset messages. A block requests its next ticket
// while it ends a task, not earlier: a task held by a busy block could not run on a free one. The
// result of the atomic is not used, not even for + 1, before `advance`, because the first use would
// wait for it.
template <class Task, class Launch> struct BlockTickets {
    const Launch &launch;
    Task *task;  // in shared memory, like `number`
    int *number;
    int next;

    __device__ void ask() {
        if (threadIdx.x == 0) next = atomicAdd(launch.ticket, 1);
    }
    // Load the next task; return false if there is none.
    __device__ bool advance() {
        constexpr int words = sizeof(Task) / sizeof(int4);
        if (threadIdx.x == 0) *number = next + 1;
        __syncthreads();
        int mine = *number;
        if (mine < launch.count) {
            const int4 *from = (const int4 *)(launch.tasks + mine);
            if (threadIdx.x < words) ((int4 *)task)[threadIdx.x] = from[threadIdx.x];
            if (threadIdx.x == 32 && mine + (int)gridDim.x < launch.count)
                prefetch(launch.tasks + mine + gridDim.x);  // for a later block
        }
        __syncthreads();
        return mine < launch.count;
    }
};

// The tasks of a warp, one of WARPS in the block, from such a list, or from the end of the list if
// REVERSED. The description of the next task is loaded while the current task runs.
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
    // Load the next task; return false if there is none. `look_ahead` must follow.
    __device__ bool advance() {
        if (next >= launch.count) return false;
        __syncwarp();
        if (lane < words) ((int4 *)task)[lane] = later;
        __syncwarp();
        ask();
        return true;
    }
};

// Wait until a flag is at least `wanted`, and return it; stores before its release are then
// visible.
__device__ inline int wait_for(const int *flag, int wanted) {
    int found = acquire(flag);
    while (found < wanted) {
        while (load_relaxed(flag) < wanted) {}
        found = acquire(flag);
    }
    return found;
}

// Wait until both flags exceed `done`, and return the smaller one, at most `limit`. One warp reads
// both flags at once and passes the result to all threads of the block.
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

// Set a flag after all threads of the block have written the data that it announces.
__device__ inline void publish(int *flag, int value) {
    __syncthreads();
    if (threadIdx.x == 0) release(flag, value);
}
