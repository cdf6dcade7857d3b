// A tile of a front before anything is eliminated from it: entries of A and the contribution blocks
// of the children, added in shared memory in a fixed order.
#pragma once
#include "front.cuh"
#include "ptx.cuh"

// What a tile begins with. LOWER_PART: tile (i, j) of L and of the contribution block; UPPER_PART:
// tile (i, j) of the transpose of U.
enum Part : int { LOWER_PART = 0, UPPER_PART = 1 };

// The entries of A of each task, as places in its tile and among the values.
struct Entries {
    const long long *begin;  // of each task, and one more
    const long long *source;
    const int *place;  // row + 64·column
};

// tile[r + c·LD] of 64×64 ← 0. No barrier.
template <int LD, class T> __device__ inline void clear_tile(T *tile) {
    for (int e = threadIdx.x; e < LD * FRONT_TILE; e += blockDim.x) tile[e] = zero<T>();
}

// Add the contribution block of child c to tile (i, j) of its parent. Rows of the tile are rows of
// the block for LOWER_PART and its columns for UPPER_PART. The threads of a warp go along the
// block's columns, as it lies in memory.
template <int LD, class T>
__device__ inline void gather_child(T *tile, const Front<T> &f, int c, Part part, int i, int j, const T *blocks) {
    const Fronts &tree = *f.tree;
    const int *cut = tree.cuts + tree.cut_pointer[c], *map = tree.relative + tree.pointer[c];
    Contribution<const T> block{blocks + tree.block[c], tree.updates(c)};
    int down = part == LOWER_PART ? i : j, across = part == LOWER_PART ? j : i;
    int r0 = cut[down], r1 = cut[down + 1], c0 = cut[across], c1 = cut[across + 1];
    if (r0 == r1 || c0 == c1) return;
    int step = part == LOWER_PART ? 1 : LD, stride = part == LOWER_PART ? LD : 1;
    int lane = threadIdx.x % 32, first_row = f.first(down), first_column = f.first(across);
    for (int column = c0 + threadIdx.x / 32; column < c1; column += blockDim.x / 32) {
        const T *source = block.at(column);
        T *target = tile + (map[column] - first_column) * stride;
        int begin = !LU && down == across ? column : r0;
#pragma unroll
        for (int q = 0; q < FRONT_TILE; q += 32) {
            int row = r0 + q + lane;
            if (row < r1 && row >= begin) {
                T &entry = target[(map[row] - first_row) * step];
                entry = entry + source[row];
            }
        }
    }
}

// The same of entries of A.
template <int LD, class T>
__device__ inline void gather_entries(T *tile, const Entries &entries, int task, const T *values) {
    for (long long e = entries.begin[task] + threadIdx.x; e < entries.begin[task + 1]; e += blockDim.x) {
        int place = entries.place[e];
        T &entry = tile[place % FRONT_TILE + place / FRONT_TILE * LD];
        entry = entry + values[entries.source[e]];
    }
}
