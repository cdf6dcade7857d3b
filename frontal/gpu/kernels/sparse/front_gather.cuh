// Assembly of a tile of a front: entries of A, then the contribution blocks of the children in
// their order, extend-added in shared memory (Duff, Reid, 1983). The fixed order makes results
// reproducible. By a block of 128 threads; a warp takes every fourth column of a child's part, a
// lane rows of it.
#pragma once
#include "sparse/front.cuh"
#include "common/ptx.cuh"

// The tile to assemble. LOWER_PART: tile (i, j) of L and of the contribution block; UPPER_PART:
// tile (i, j) of the transpose of U.
enum Part : int { LOWER_PART = 0, UPPER_PART = 1 };

// tile[r + c·LD] of 64×64 ← 0. No barrier.
template <int LD, class T> __device__ inline void clear_tile(T *tile) {
    for (int e = threadIdx.x; e < LD * FRONT_TILE; e += blockDim.x) tile[e] = zero<T>();
}

// The part of a child's contribution block that belongs to a tile of its parent.
struct ChildPart {
    int r0, r1, c0, c1, m;  // rows and columns of the block, and its order
    long long block, map;   // offsets of the block and of its relative indices
};

// Return the part of child c in tile (i, j) of its parent. Rows of the tile are rows of the block
// for LOWER_PART and its columns for UPPER_PART.
__device__ inline ChildPart child_part(const Fronts &tree, int c, Part part, int i, int j) {
    long long map = tree.cut_pointer[c];
    int down = part == LOWER_PART ? i : j, across = part == LOWER_PART ? j : i;
    int m = updates_of(tree, c);
    const int *cut = tree.cuts + map + m;
    return {cut[down], cut[down + 1], cut[across], cut[across + 1], m, tree.block[c], map};
}

// Add a child's part to the tile. The threads of a warp follow the block's columns, which are
// contiguous; all loads of eight columns (four of complex<double>) are pending together.
template <int LD, class T>
__device__ inline void extend_add(
    T *tile, const Front<T> &f, ChildPart p, Part part, int i, int j, const T *blocks) {
    constexpr int WARPS = 4, COLUMNS = FRONT_TILE / WARPS, BATCH = sizeof(T) < 16 ? 8 : 4;
    const int *map = f.tree->cuts + p.map;
    Contribution<const T> block{blocks + p.block, p.m};
    int down = part == LOWER_PART ? i : j, across = part == LOWER_PART ? j : i;
    int step = part == LOWER_PART ? 1 : LD, stride = part == LOWER_PART ? LD : 1;
    int lane = threadIdx.x % 32, first = p.c0 + threadIdx.x / 32;
    int rows[2], own = first + WARPS * lane;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
        int row = p.r0 + 32 * q + lane;
        rows[q] = row < p.r1 ? (map[row] - f.first(down)) * step : -1;
    }
    own = lane < COLUMNS && own < p.c1 ? (map[own] - f.first(across)) * stride : 0;
#pragma unroll 1
    for (int k = 0; k < COLUMNS && first + WARPS * k < p.c1; k += BATCH) {
        T v[BATCH][2];
#pragma unroll
        for (int e = 0; e < BATCH; ++e) {
            int column = first + WARPS * (k + e), begin = !LU && down == across ? column : 0;
            const T *source = block.at(min_(column, p.c1 - 1)) + p.r0 + lane;
#pragma unroll
            for (int q = 0; q < 2; ++q)
                if (rows[q] >= 0 && column < p.c1 && p.r0 + 32 * q + lane >= begin)
                    v[e][q] = source[32 * q];
        }
#pragma unroll
        for (int e = 0; e < BATCH; ++e) {
            int column = first + WARPS * (k + e), begin = !LU && down == across ? column : 0;
            T *target = tile + shuffle(own, k + e);
#pragma unroll
            for (int q = 0; q < 2; ++q)
                if (rows[q] >= 0 && column < p.c1 && p.r0 + 32 * q + lane >= begin)
                    target[rows[q]] = target[rows[q]] + v[e][q];
        }
    }
}

// Add entries of A, by the threads from `first` on.
template <int LD, class T>
__device__ inline void add_entries(
    T *tile, const Entries &entries, int task, const T *values, int first) {
    long long end = entries.begin[task + 1], step = blockDim.x - first;
    for (long long e = (long long)entries.begin[task] + threadIdx.x - first; e < end; e += step) {
        int place = entries.place[e];
        T &entry = tile[place % FRONT_TILE + place / FRONT_TILE * LD];
        entry = entry + values[entries.source[e]];
    }
}
