// op(A)·X = alpha·B or X·op(A) = alpha·B with triangles up to 32×32, a right-hand side per lane.
//
// Tile map: RIGHTS = 8, 16 or 32 lanes solve for as many right-hand sides of one matrix: columns of
// B, or rows if A is on the right. Up to four warps per block; warps never wait for each other. A
// lane owns one right-hand side in WIDTH registers. Dynamic shared memory: GROUP elements for each
// RIGHTS lanes. They hold the triangle, which all lanes read column by column, 16 bytes at a time,
// and the right-hand sides in transit, so that lanes access adjacent global memory. The copy to
// shared memory reduces all cases to one: A is transposed if either op or SIDE requires it, but not
// if both do, and its rows and columns are reversed if it is upper then. Every solve is a forward
// one with a lower triangle.
// B is read from `from` (its transposes if `turned`) and X written to `to`, which may be the same.
// Only the triangle UPLO of A is read, without a unit diagonal. A must not overlap B; a zero on the
// diagonal gives infinity or NaN. Matrices may have any size up to WIDTH, none included.
// The operation is that of the BLAS: Dongarra, Du Croz, Hammarling, Duff, "A set of level 3 basic
// linear algebra subprograms" (1990); small triangles in registers: Charara, Keyes, Ltaief,
// "Batched triangular dense linear algebra kernels for very small matrix sizes on GPUs" (2019).
//   WIDTH   8, 16, 24 or 32, not less than the largest order
//   RIGHTS  right-hand sides of a matrix per group of lanes: 8, 16 or 32
#include "dense/tiny.cuh"

#ifndef RIGHTS
#define RIGHTS 32
#endif

using T = SCALAR;
constexpr int A_LD = WIDTH + Pack16<T>::count, B_LD = WIDTH + 1;
constexpr int TILES = (WIDTH * A_LD + RIGHTS * B_LD) * (int)sizeof(T);
// The padding makes matrices begin in different banks.
constexpr int GROUP = ((TILES + 63) / 64 * 64 + 16) / (int)sizeof(T);
constexpr int TINY_WORDS = WIDTH * (int)sizeof(T) / 4;  // registers of a right-hand side
constexpr int TINY_RESIDENTS = TINY_WORDS <= 16   ? 8
                               : TINY_WORDS <= 32 ? 6
                               : TINY_WORDS <= 64 ? 4
                                                  : 2;

// The triangle to solve with, as a lower triangle M in shared memory.
struct Triangle {
    bool conjugate, unit, transposed, reverse;

    __device__ Triangle(int side, int uplo, int trans, int diag)
        : conjugate(is_complex<T> && trans == ConjTrans), unit(diag == Unit),
          transposed((trans != NoTrans) == (side == Left)), reverse((uplo == Lower) == transposed) {
    }

    // Begin to copy the triangle of `a` to M, entry (i, k) at m[i + k*A_LD].
    __device__ void fetch(Matrix<T> a, int uplo, T *m, int lane) const {
        int n = a.cols, down = transposed ? A_LD : 1, across = transposed ? 1 : A_LD;
        if (reverse) m += (n - 1) * (A_LD + 1), down = -down, across = -across;
        for (int c = 0; c < n; ++c)
            for (int r = lane; r < n; r += RIGHTS)
                if ((uplo == Lower ? r > c : r < c) || (r == c && !unit))
                    copy_async<sizeof(T)>(m + r * down + c * across, &a(r, c), true);
    }

    // Replace the diagonal of M by its reciprocals, and conjugate the entries below.
    __device__ void finish(T *m, int n, int lane) const {
        for (int k = lane; k < n; k += RIGHTS) {
            T *d = m + k * (A_LD + 1);
            *d = unit ? one<T>() : reciprocal(conjugate ? conj(*d) : *d);
            if (conjugate)
                for (int i = k + 1; i < n; ++i) d[i - k] = conj(d[i - k]);
        }
    }
};

// At most RIGHTS right-hand sides of one matrix, the rows or columns of `m`.
struct Strip {
    Matrix<T> m;
    bool by_rows;

    __device__ Strip(Matrix<T> all, bool by_rows, int first)
        : m(by_rows ? all.at(first, 0, RIGHTS) : all.at(0, first, all.rows, RIGHTS)),
          by_rows(by_rows) {}
    __device__ Strip() : m{nullptr, 0, 0, 1}, by_rows(false) {}

    // Call f(i, j, entry) for unknown i of right-hand side j, lanes along the columns of `m`.
    template <class F> __device__ void each(int lane, F f) const {
        for (int c = 0; c < m.cols; ++c)
            for (int r = lane; r < m.rows; r += RIGHTS)
                f(by_rows ? c : r, by_rows ? r : c, m(r, c));
    }
};

// Solve M·x = x.
__device__ inline void solve(const T *m, int n, T (&x)[WIDTH]) {
    columns<0, WIDTH>(n, [&](auto index) {
        constexpr int k = decltype(index)::value;
        const T *column = m + k * A_LD;
        x[k] = column[k] * x[k];
        T minus = -x[k];
        broadcast<k + 1, WIDTH>(column, [&](int i, T v) { x[i] = fma_(v, minus, x[i]); });
    });
}

template <class Source>
__device__ void trsm_tiny(T alpha, int side, int uplo, int trans, int diag, Source as,
    Window part_a, Source froms, Window part_from, int turned, Source tos, Window part_to,
    int count, int strips) {
    int lane = threadIdx.x % RIGHTS, group = threadIdx.x / RIGHTS;
    int item = blockIdx.x * (blockDim.x / RIGHTS) + group, b = item / strips;
    Matrix<T> a{nullptr, 0, 0, 1};
    Strip from, to;
    if (b < count) {
        int first = item % strips * RIGHTS;
        a = as(b).at(part_a);
        from = Strip(froms(b).at(part_from), (side == Right) != (turned != 0), first);
        to = Strip(tos(b).at(part_to), side == Right, first);
    }
    Triangle triangle(side, uplo, trans, diag);
    int n = a.cols, most = RIGHTS == 32 ? n : (int)__reduce_max_sync(full_warp, (unsigned)n);
    T *m = shared_memory<T>() + group * GROUP, *tile = m + WIDTH * A_LD;
    // Unknown i of right-hand side j is tile[start + step*i + j*B_LD].
    int start = triangle.reverse ? n - 1 : 0, step = triangle.reverse ? -1 : 1;
    triangle.fetch(a, uplo, m, lane);
    from.each(lane, [&](int i, int j, const T &entry) {
        copy_async<sizeof(T)>(tile + start + step * i + j * B_LD, &entry, true);
    });
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
    triangle.finish(m, n, lane);
    __syncwarp();
    T x[WIDTH], *mine = tile + lane * B_LD;
    bool scaled = !(alpha == one<T>());
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) x[i] = scaled ? alpha * mine[i] : mine[i];
    solve(m, most, x);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) mine[i] = x[i];
    __syncwarp();
    to.each(lane, [&](int i, int j, T &entry) { entry = tile[start + step * i + j * B_LD]; });
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS, TINY_RESIDENTS) name(T alpha, \
        int side, int uplo, int trans, int diag, Source<T> a, Window part_a, Source<T> from, \
        Window part_from, int turned, Source<T> to, Window part_to, int count, int strips) { \
        trsm_tiny(alpha, side, uplo, trans, diag, a, part_a, from, part_from, turned, to, part_to, \
            count, strips); \
    }

ENTRY(trsm_tiny_native, Native)
ENTRY(trsm_tiny_batched, Batched)
ENTRY(trsm_tiny_vbatched, Vbatched)
