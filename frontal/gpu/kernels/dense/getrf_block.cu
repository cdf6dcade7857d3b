// LU with partial pivoting of matrices that fit in shared memory.
//
// Tile map: one block per matrix. Right-looking by panels of 16 columns: a panel is factored in
// registers, a row per thread; then rows of the other columns move, a thread solves for a column of
// U, and warps subtract tiles of L·U (tensor cores for fp64). Dynamic shared memory: the matrix in
// columns of `ld` elements, a copy of the panel's rows of U, and the memory of Panel. Threads: a
// multiple of 32, at least the number of rows, at most 256.
// A is read from the source that INTO selects (common/matrix.cuh). The order of operations is that
// of LAPACK's getrf: Anderson et al., "LAPACK users' guide" (1999).
//   order  matrices by size; null for their own order
//   ld     leading dimension in shared memory, for the tallest matrix
//   width  columns of the widest matrix
#include "dense/getf2.cuh"
#include "dense/laswp.cuh"
#include "common/warp_product.cuh"

using T = SCALAR;
constexpr int NB = 16, BLOCK_THREADS = 256;
constexpr int TILE_ROWS = sizeof(T) == 16 ? 16 : 32;  // rows of a warp's tile, by 32 columns
constexpr int U_LD = 32 + leading_pad<T, false>();    // of the copy of U, in strips of 32 columns

// Call f(i, j) for each entry of a matrix, in column order by all threads.
template <class F> __device__ void each_entry(Matrix<T> m, F f) {
    int lanes = min_((m.rows + 31) / 32 * 32, (int)blockDim.x), i = threadIdx.x % lanes;
    int step = blockDim.x / lanes;
    if ((int)threadIdx.x >= step * lanes) return;
    for (int j = threadIdx.x / lanes; j < m.cols; j += step)
        for (int r = i; r < m.rows; r += lanes) f(r, j);
}

// Factor the panel of `steps` columns at (j0, j0) of `a`, in shared memory; `moves` and `pivots`
// are in shared memory, too. Ends with a barrier.
__device__ int factor_panel(Matrix<T> a, int j0, int steps, unsigned char *shared, int *moves,
    int *pivots, real_t<T> tiny) {
    int row = threadIdx.x, position[1] = {row < a.rows - j0 ? row : -1};
    T entries[1][NB], *entry = &a(j0, j0) + row;
#pragma unroll
    for (int k = 0; k < NB; ++k)
        entries[0][k] = position[0] >= 0 && k < steps ? entry[k * a.ld] : zero<T>();
    if (threadIdx.x == 0) moves[0] = 0;
    int info = Panel<T, NB, 1>::factor(entries, position, steps, shared, pivots, tiny);
    entry = &a(j0, j0) + position[0];
#pragma unroll
    for (int k = 0; k < NB; ++k)
        if (position[0] >= 0 && k < steps) entry[k * a.ld] = entries[0][k];
    add_move(moves, position[0], row);
    __syncthreads();
    return info;
}

// u = inv(L)·u for the rows of U right of a panel, a column per thread. Also stores `copy` for the
// tiles, in consecutive strips of 32 columns, zero beyond the last column.
__device__ void solve_rows(Matrix<T> l, Matrix<T> u, T *copy) {
    for (int j = threadIdx.x; j < (u.cols + 31) / 32 * 32; j += blockDim.x) {
        T x[NB], *column = u.data + j * u.ld;
#pragma unroll
        for (int k = 0; k < NB; ++k) x[k] = j < u.cols && k < u.rows ? column[k] : zero<T>();
        columns<0, NB - 1>(u.rows, [&](auto index) {
            constexpr int k = decltype(index)::value;
            broadcast<k + 1, NB>(
                l.data + k * l.ld, [&](int i, T v) { x[i] = fma_(-v, x[k], x[i]); });
        });
#pragma unroll
        for (int k = 0; k < NB; ++k) {
            if (j < u.cols && k < u.rows) column[k] = x[k];
            copy[(j / 32 * NB + k) * U_LD + j % 32] = x[k];
        }
    }
}

// c -= l·u, in tiles of TILE_ROWS×32 per warp. Rows of l beyond the last are read but not used.
__device__ void update(const T *l, const T *copy, Matrix<T> c) {
    int down = ceil_div(c.rows, TILE_ROWS), tiles = down * ceil_div(c.cols, 32);
    for (int t = threadIdx.x / 32; t < tiles; t += blockDim.x / 32) {
        int i0 = t % down * TILE_ROWS, strip = t / down;
        Matrix<T> part = c.at(i0, strip * 32, TILE_ROWS, 32);
        WarpProduct<T, TILE_ROWS, 32> product;
        product.clear();
        product.template add<NB, false, false, false, false>(
            l + i0, c.ld, copy + strip * NB * U_LD, U_LD);
        product.each([&](int i, int j, T &v) {
            if (i < part.rows && j < part.cols)
                part.data[i + j * part.ld] = part.data[i + j * part.ld] - v;
        });
    }
}

template <class Source, class Pivots>
__device__ void getrf_block(Source from, Source to, Pivots all_pivots, const int *order, int ld,
    int width, int *info, real_t<T> tiny) {
    int b = order ? order[blockIdx.x] : blockIdx.x, failure = 0;
    Matrix<T> m = INTO ? to(b) : from(b), a{shared_memory<T>(), m.rows, m.cols, ld};
    T *copy = a.data + (long long)ld * width;
    int *moves = reinterpret_cast<int *>(copy + (width + 31) / 32 * NB * U_LD),
        *pivots = moves + moves_size<NB>;
    unsigned char *work = reinterpret_cast<unsigned char *>(pivots + NB);
    Matrix<T> given = from(b);
    each_entry(given, [&](int i, int j) {
        copy_async<sizeof(T)>(&a.data[INTO == 2 ? j + i * ld : i + j * ld], &given(i, j), true);
    });
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    int n = min_(m.rows, m.cols);
    for (int j0 = 0; j0 < n; j0 += NB) {
        int steps = min_(NB, n - j0), next = j0 + steps, warps = blockDim.x / 32;
        int found = factor_panel(a, j0, steps, work, moves, pivots, tiny);
        failure = combined_info(failure, found, j0);
        if ((int)threadIdx.x < steps)
            all_pivots(b)(j0 + threadIdx.x, 0) = j0 + pivots[threadIdx.x] + FIRST_ROW;
        move_rows<NB, 4>(moves, a.at(j0, 0, a.rows, j0), 0, warps);
        move_rows<NB, 4>(moves, a.at(j0, next), 0, warps);
        __syncthreads();
        solve_rows(a.at(j0, j0), a.at(j0, next, steps), copy);
        __syncthreads();
        if (steps == NB) update(&a(next, j0), copy, a.at(next, next));
        __syncthreads();
    }
    each_entry(m, [&](int i, int j) { m(i, j) = a.data[i + j * ld]; });
    if (threadIdx.x == 0) info[b] = failure;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) name(Source<T> a, Source<T> to, \
        Source<int> pivots, const int *order, int ld, int width, int *info, real_t<T> tiny) { \
        getrf_block(a, to, pivots, order, ld, width, info, tiny); \
    }

ENTRY(getrf_block_native, Native)
ENTRY(getrf_block_batched, Batched)
ENTRY(getrf_block_vbatched, Vbatched)
