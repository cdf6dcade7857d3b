// TRTRI entry points: the inverses of the 32×32 diagonal blocks of triangular matrices, for TRSM.
//
// Tile map: one diagonal block per warp, up to four per block of threads. A lane owns a column of
// the inverse, in registers; dynamic shared memory holds the triangles (32·tri_ld elements each).
// Inverse number w of the launch goes to `inverses` + 1024·w: inv(A) for a lower triangle, inv(A)ᵀ
// for an upper one. Only that triangle is read, without a unit diagonal.
#include "dense/gemm.cuh"
#include "dense/trtri.cuh"

using T = SCALAR;

template <class Source>
__device__ void trtri_entry(int uplo, int diag, Source a, Window part, T *inverses,
    const int4 *work, int period, int count) {
    int warp = threadIdx.x / 32, item = blockIdx.x * (blockDim.x / 32) + warp;
    if (item >= count) return;  // whole warps: each other warp synchronizes only within itself
    int4 w = work_item(work, period, item);
    T *lower = shared_memory<T>() + warp * tri_order * tri_ld<T>;
    load_triangle(
        a(w.x).at(part).at(w.y, w.y, tri_order, tri_order), (Uplo)uplo, (Diag)diag, lower);
    invert_triangle(lower);
    store_triangle(lower, inverses + (long long)item * tri_order * tri_order);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(128, 2) name(int uplo, int diag, Source<T> a, \
        Window part, T *inverses, const int4 *work, int period, int count) { \
        trtri_entry(uplo, diag, a, part, inverses, work, period, count); \
    }

ENTRY(trtri_native, Native)
ENTRY(trtri_batched, Batched)
ENTRY(trtri_vbatched, Vbatched)
