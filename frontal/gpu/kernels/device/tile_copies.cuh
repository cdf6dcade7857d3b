// Copies of tiles of 64×64 between shared memory, where they lie as potrf_tile.cuh has them, and the
// panels and inverses of fronts; by blocks of 128 threads, if nothing else is said. No barriers.
#pragma once
#include "potrf_tile.cuh"

constexpr int COPIERS = 128, TILE_ENTRIES = TILE_ROWS * TILE_ROWS;

// kept ← the lower triangle of the inverse, of as many rows as columns.
template <class T> __device__ inline void keep_inverse(const T *inverse, Matrix<T> kept) {
    constexpr int ld = tile_ld<T>, wide = Pack16<T>::count;
    if (kept.rows == TILE_ROWS) {
#pragma unroll 8
        for (int e = threadIdx.x * wide; e < TILE_ENTRIES; e += COPIERS * wide) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            auto pack = *reinterpret_cast<const Pack16<T> *>(inverse + r + c * ld);
#pragma unroll
            for (int i = 0; i < wide; ++i)
                if (r + i < c) pack.v[i] = zero<T>();
            *reinterpret_cast<Pack16<T> *>(kept.data + e) = pack;
        }
        return;
    }
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE_ROWS * kept.cols; e += COPIERS) {
        int r = e % TILE_ROWS, c = e / TILE_ROWS;
        if (r < kept.rows) kept(r, c) = r >= c ? inverse[r + c * ld] : zero<T>();
    }
}

// tile ← a square matrix, and zeros beyond it, by asynchronous copies of the first THREADS threads.
// Columns of one of 64×64 begin at multiples of 16 bytes.
template <int THREADS = COPIERS, class T> __device__ inline void fetch_tile(T *tile, Matrix<T> source) {
    constexpr int ld = tile_ld<T>, wide = Pack16<T>::count;
    if (source.rows == TILE_ROWS) {
#pragma unroll 8
        for (int e = threadIdx.x * wide; e < TILE_ENTRIES; e += THREADS * wide) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            copy_async<16>(tile + r + c * ld, &source(r, c), true);
        }
    } else {
        for (int e = threadIdx.x; e < TILE_ENTRIES; e += THREADS) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            bool valid = r < source.rows && c < source.cols;
            copy_async<sizeof(T)>(tile + r + c * ld, valid ? &source(r, c) : source.data, valid);
        }
    }
    copy_async_commit();
}

// target ← the first rows of a tile, all 64 columns, by a warp. Columns begin at multiples of 16 bytes.
template <class T> __device__ inline void put_by_warp(const T *tile, Matrix<T> target) {
    constexpr int ld = tile_ld<T>, wide = Pack16<T>::count;
    int lane = threadIdx.x % 32;
    if (target.rows == TILE_ROWS) {
#pragma unroll 8
        for (int e = lane * wide; e < TILE_ENTRIES; e += 32 * wide) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            *reinterpret_cast<Pack16<T> *>(&target(r, c)) = *reinterpret_cast<const Pack16<T> *>(tile + r + c * ld);
        }
        return;
    }
    for (int e = lane; e < TILE_ENTRIES; e += 32) {
        int r = e % TILE_ROWS, c = e / TILE_ROWS;
        if (r < target.rows) target(r, c) = tile[r + c * ld];
    }
}
