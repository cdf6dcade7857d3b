// Copies of tiles of 64×64 between shared memory, where they lie as potrf_tile.cuh has them, and
// the panels and inverses of fronts; by blocks of 128 threads, if nothing else is said. No
// barriers.
#pragma once
#include "dense/potrf_tile.cuh"

constexpr int COPIERS = 128, TILE_ENTRIES = TILE_ROWS * TILE_ROWS;

// kept ← the lower triangle of the w×w inverse.
template <class T> __device__ inline void keep_inverse(const T *inverse, T *kept, int w) {
    constexpr int ld = tile_ld<T>, wide = Pack16<T>::count;
    if (w == TILE_ROWS) {
#pragma unroll 8
        for (int e = threadIdx.x * wide; e < TILE_ENTRIES; e += COPIERS * wide) {
            int r = e % TILE_ROWS, c = e / TILE_ROWS;
            auto pack = *reinterpret_cast<const Pack16<T> *>(inverse + r + c * ld);
#pragma unroll
            for (int i = 0; i < wide; ++i)
                if (r + i < c) pack.v[i] = zero<T>();
            *reinterpret_cast<Pack16<T> *>(kept + e) = pack;
        }
        return;
    }
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE_ROWS * w; e += COPIERS) {
        int r = e % TILE_ROWS, c = e / TILE_ROWS;
        if (r < w) kept[r + c * w] = r >= c ? inverse[r + c * ld] : zero<T>();
    }
}

// tile ← a matrix and zeros beyond it, by asynchronous copies. Columns of one of 64×64 begin at
// multiples of 16 bytes.
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
