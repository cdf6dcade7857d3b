// Row interchanges of a panel as moves: sources and targets of rows, moved all at once.
//
// A list of moves is `moves[0]` pairs (to, from), rows counted from the panel's first, at most two
// for each column of the panel. Lists follow from the positions of the rows after the panel.
// Interchanges combined to a permutation, whose rows move at once: Haidar, Dong, Luszczek, Tomov,
// Dongarra, "Batched matrix computations on hardware accelerators based on GPUs" (2015).
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// Integers in the list of a panel of NB columns.
template <int NB> constexpr int moves_size = 4 * NB + 4;

// Add the move of a row from `row` to `position`, unless both are equal or the row does not exist.
// The list must begin with length zero.
__device__ inline void add_move(int *moves, int position, int row) {
    if (position < 0 || position == row) return;
    int slot = atomicAdd(moves, 1);
    moves[1 + 2 * slot] = position, moves[2 + 2 * slot] = row;
}

// Move rows of `a`, whose first row is the panel's, by `warps` warps of a block from first_warp on.
// A warp takes COLUMNS columns at a time, a lane NB/16 moves of each.
template <int NB, int COLUMNS, class T>
__device__ void move_rows(const int *moves, Matrix<T> a, int first_warp, int warps) {
    constexpr int each = NB > 16 ? NB / 16 : 1;
    int lane = threadIdx.x & 31, count = moves[0], warp = threadIdx.x / 32 - first_warp;
    int to[each], from[each];
#pragma unroll
    for (int e = 0; e < each; ++e) {
        bool some = lane + 32 * e < count;
        to[e] = some ? moves[1 + 2 * (lane + 32 * e)] : -1,
        from[e] = some ? moves[2 + 2 * (lane + 32 * e)] : 0;
    }
    if (count == 0) return;
    for (int j = warp * COLUMNS; j < a.cols; j += warps * COLUMNS) {
        T v[COLUMNS][each];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
            for (int e = 0; e < each; ++e)
                if (to[e] >= 0 && j + c < a.cols) v[c][e] = a(from[e], j + c);
        __syncwarp();
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
            for (int e = 0; e < each; ++e)
                if (to[e] >= 0 && j + c < a.cols) a(to[e], j + c) = v[c][e];
        __syncwarp();
    }
}
