// Panels of a bidiagonalization (labrd.cuh), of matrices of at most 32·ROWS rows from `from` on.
//
// Tile map: one block of 8 warps per matrix: a warp takes every eighth column right of the panel, a
// lane every 32nd row. Dynamic shared memory: 9·32·ROWS elements. Blocks do not wait for each
// other. Matrices must be scaled so that squares of their entries are representable.
//   vx, yu  64 columns of as many rows as A has rows, V beside X, and 64 rows of as many columns as
//           A has columns, Yᴴ above Uᴴ, for the update of the rest, A − V·Yᴴ − X·Uᴴ
#include "dense/labrd.cuh"

#ifndef ROWS
#define ROWS 16
#endif

using T = SCALAR;
using R = real_t<T>;
constexpr int NB = 32, RESIDENTS = ROWS * sizeof(T) <= 128 ? 2 : 1;

template <template <class> class Source>
__device__ void labrd_once_entry(Source<T> source, int from, Source<R> d, Source<R> e,
    Source<T> tauq, Source<T> taup, Source<T> vq, Source<T> vp, Source<T> vx, Source<T> yu) {
    __shared__ LabrdScratch<T> scratch;
    int b = blockIdx.x;
    Matrix<T> a = source(b).at(from, from);
    if (a.cols == 0) return;
    RowPanel<T> panel{vx(b).at(from, 0), vx(b).at(from, NB), yu(b).at(0, from), yu(b).at(NB, from)};
    Bidiagonal<T> to{d(b).data + from, e(b).data + from, tauq(b).data + from, taup(b).data + from,
        vq(b).at(0, from), vp(b).at(0, from)};
    T *room = shared_memory<T>();
    Labrd<T, ROWS>{a, panel, to, from, scratch, room, room + 32 * ROWS}.run();
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(LABRD_THREADS, RESIDENTS) \
        name(Source<T> a, int from, Source<R> d, Source<R> e, Source<T> tauq, Source<T> taup, \
            Source<T> vq, Source<T> vp, Source<T> vx, Source<T> yu) { \
        labrd_once_entry(a, from, d, e, tauq, taup, vq, vp, vx, yu); \
    }

ENTRY(labrd_once_native, Native)
ENTRY(labrd_once_batched, Batched)
ENTRY(labrd_once_vbatched, Vbatched)
