// GEMM entry points: C = alpha·op(A)·op(B) + beta·C for one matrix or a batch.
//
// Tile map: one tile of C per work item. TILE selects its shape (tile.cuh): 0 is a tile of one
// warp, four independent ones per block, for matrices up to 16; every other shape takes a whole
// block.
// A thread owns the entries of its tile's accumulators; dynamic shared memory holds the slices of
// op(A) and op(B), Tile::shared_elements per tile. C must not overlap A or B.
// The operation is that of the BLAS: Dongarra, Du Croz, Hammarling, Duff, "A set of level 3 basic
// linear algebra subprograms" (1990); tiles chosen by size for batches: Abdelfattah, Haidar, Tomov,
// Dongarra, "Performance, design, and autotuning of batched GEMM for GPUs" (2016).
#include "dense/gemm.cuh"

#ifndef TILE
#define TILE 4
#endif
#ifndef TRANS_A
#define TRANS_A 0
#endif
#ifndef TRANS_B
#define TRANS_B 0
#endif

using T = SCALAR;
using Product = TileChoice<T, TILE>;

template <class Source>
__device__ void gemm_entry(T alpha, Source a, Window part_a, Source b, Window part_b, T beta,
    Source c, Window part_c, const int4 *work, int period, int count) {
    int slot = threadIdx.x / Product::threads, item = blockIdx.x * Product::per_block + slot;
    if (item >= count) return;  // whole tiles: each other tile synchronizes only within itself
    int4 w = work_item(work, period, item);
    gemm<Product, (Trans)TRANS_A, (Trans)TRANS_B>(alpha, a(w.x).at(part_a), b(w.x).at(part_b), beta,
        c(w.x).at(part_c), w.y, w.z, shared_memory<T>() + slot * Product::shared_elements);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(Product::block, Product::residents) \
        name(T alpha, Source<T> a, Window part_a, Source<T> b, Window part_b, T beta, Source<T> c, \
            Window part_c, const int4 *work, int period, int count) { \
        gemm_entry(alpha, a, part_a, b, part_b, beta, c, part_c, work, period, count); \
    }

ENTRY(gemm_native, Native)
ENTRY(gemm_batched, Batched)
ENTRY(gemm_vbatched, Vbatched)
