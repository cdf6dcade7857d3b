// HERK and SYRK entry points: C = alpha·A·Aᴴ + beta·C (TRANS 0) or alpha·Aᴴ·A + beta·C (TRANS 1),
// one triangle of C, for one matrix or a batch; CONJUGATE 0 is SYRK.
//
// Tile map: one tile of the triangle of C per work item; tiles, threads and shared memory as in
// gemm.cu. The other triangle is neither read nor written. C must not overlap A.
// The operation is that of the BLAS: Dongarra, Du Croz, Hammarling, Duff, "A set of level 3 basic
// linear algebra subprograms" (1990).
#include "dense/herk.cuh"

#ifndef TILE
#define TILE 4
#endif
#ifndef TRANS
#define TRANS 0
#endif
#ifndef CONJUGATE
#define CONJUGATE 1
#endif

using T = SCALAR;
using Product = TileChoice<T, TILE>;

template <class Source>
__device__ void herk_entry(T alpha, Source a, Window part_a, T beta, Source c, Window part_c,
    int uplo, const int4 *work, int period, int count) {
    int slot = threadIdx.x / Product::threads, item = blockIdx.x * Product::per_block + slot;
    if (item >= count) return;  // whole tiles: each other tile synchronizes only within itself
    int4 w = work_item(work, period, item);
    herk<Product, (Trans)TRANS, CONJUGATE != 0>(alpha, a(w.x).at(part_a), beta, c(w.x).at(part_c),
        (Uplo)uplo, w.y, w.z, shared_memory<T>() + slot * Product::shared_elements);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(Product::block, Product::residents) \
        name(T alpha, Source<T> a, Window part_a, T beta, Source<T> c, Window part_c, int uplo, \
            const int4 *work, int period, int count) { \
        herk_entry(alpha, a, part_a, beta, c, part_c, uplo, work, period, count); \
    }

ENTRY(herk_native, Native)
ENTRY(herk_batched, Batched)
ENTRY(herk_vbatched, Vbatched)
