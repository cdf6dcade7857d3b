// Copies of 64×64 tiles between shared memory, in the layout of potrf_tile.cuh, and the panels and
// inverses of fronts; by blocks of 128 threads unless stated otherwise. No barriers.
#pragma once
#include "dense/potrf_tile.cuh"

constexpr int COPIERS = 128, TILE_ENTRIES = TILE_ROWS * TILE_ROWS;

// kept ← the lower triangle of the inverse, without its diagonal if UNIT.
template <bool UNIT = false, class T>
__device__ inline void keep_inverse(const T *inverse, Triangle<T> kept) {
    constexpr int ld = tile_ld<T>, step = COPIERS / TILE_ROWS;
    int r = threadIdx.x % TILE_ROWS, c = threadIdx.x / TILE_ROWS;
    AlongRow<step, T> to(kept, r, c);
#pragma unroll 8
    for (; c < TILE_ROWS; c += step, to.advance())
        if (r >= c + UNIT && r < kept.rows) *to.at = inverse[r + c * ld];
}

// inverse ← the stored lower triangle, and zeros where products read them, by asynchronous copies;
// with ones on the diagonal if `unit`.
template <class T>
__device__ inline void fetch_inverse(T *inverse, Triangle<T> kept, bool unit = false) {
    constexpr int ld = tile_ld<T>, H = TILE_ROWS / 2, step = COPIERS / TILE_ROWS;
    int r = threadIdx.x % TILE_ROWS, c = threadIdx.x / TILE_ROWS;
    AlongRow<step, T> from(kept, r, c);
#pragma unroll 8
    for (; c < (r < H ? H : TILE_ROWS); c += step, from.advance()) {
        bool valid = r >= c && r < kept.rows;
        if (unit && r == c) inverse[r + c * ld] = valid ? one<T>() : zero<T>();
        else copy_async<sizeof(T)>(inverse + r + c * ld, valid ? from.at : kept.data, valid);
    }
    copy_async_commit();
}

// tile ← a matrix and zeros beyond it, by asynchronous copies. The columns of a full 64×64 matrix
// must begin at multiples of 16 bytes.
template <class T, class Source> __device__ inline void fetch_tile(T *tile, Matrix<Source> source) {
    constexpr int ld = tile_ld<T>, wide = Pack16<T>::count;
    if (source.rows == TILE_ROWS && source.cols == TILE_ROWS) {
#pragma unroll 8
        for (int e = threadIdx.x * wide; e < TILE_ENTRIES; e += COPIERS * wide) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            copy_async<16>(tile + r + c * ld, &source(r, c), true);
        }
    } else {
        for (int e = threadIdx.x; e < TILE_ENTRIES; e += COPIERS) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            bool valid = r < source.rows && c < source.cols;
            copy_async<sizeof(T)>(tile + r + c * ld, valid ? &source(r, c) : source.data, valid);
        }
    }
    copy_async_commit();
}
