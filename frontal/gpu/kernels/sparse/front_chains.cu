// Factorization of the small fronts of many levels of an assembly tree in one launch: levels with
// few fronts, as in chains, where a launch for each level would take longer than its fronts.
//
// Tile map: a block of 64 threads takes one front after another: of up to 32 rows by its first
// warp, of more by both; thread r owns row r. Shared memory, dynamic: that of one front (SmallTile
// in small_front.cuh). A front is cleared and gets its entries of A before it waits for the
// contribution blocks of its children; its own is announced before its panel is stored
// (small_factor.cuh).
//
// Deadlock: none. The list has children before parents, and blocks take fronts in its order, so
// that the first unfinished front waits for no other; it belongs to a running block.
//   list     fronts first…first+count−1, by level
//   ticket   number of fronts that were taken, 0 at the beginning
// Preconditions: `finished` is 1 for fronts of earlier launches with a contribution block, 0 for
// those of this launch; no two fronts of this launch share memory.
#define WAITS 1
#ifndef WINDOW
#define WINDOW 512
#endif
#include "sparse/small_factor.cuh"

constexpr int THREADS = SMALL_THREADS;

extern "C" __global__ void __launch_bounds__(THREADS)
    front_chains(const __grid_constant__ SmallFronts all, const __grid_constant__ Outputs to,
        int first, int count, int *ticket, const T *values) {
    __shared__ int next;
    while (true) {
        if (threadIdx.x == 0) next = atomicAdd(ticket, 1);
        __syncthreads();
        int index = next;
        if (index >= count) return;
        const SmallFront &front = all.fronts[first + index];
        if (front.k + front.m > 32) run<64>(all, to, first + index, true, values);
        else if (threadIdx.x < 32) run<32>(all, to, first + index, true, values);
        __syncthreads();
    }
}
