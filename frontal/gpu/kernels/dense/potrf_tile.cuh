// Cholesky of a tile in shared memory, and the inverse of the factor of a 64×64 tile. The next
// columns of tiles wait for both, so that all is arranged for a short dependency chain.
//
// Columns are factored 16 at a time: twice 8 columns, then the update of the columns to their right
// (tensor-core products, 16×16 per warp). Every thread factors the 8×8 diagonal block itself, in
// registers, from one broadcast read, so that nothing is exchanged between pivots. Internally A =
// M·D·Mᴴ with a unit lower M: a pivot waits for the reciprocal of the previous one, not for its
// root. Meanwhile thread r eliminates in the 8 entries of row r, in the block or below it.
#pragma once
#include "dense/potf2.cuh"
#include "common/warp_product.cuh"

constexpr int TILE_ROWS = 64;  // of the tiles that are inverted
template <class T, int ROWS> constexpr int shared_ld = ROWS + leading_pad<T, false>();
template <class T> constexpr int tile_ld = shared_ld<T, TILE_ROWS>;
template <class T> constexpr int tile_elements = TILE_ROWS * tile_ld<T>;

// Load the lower triangle of an N×N block whose columns begin at multiples of 16 bytes.
template <int N, class T> __device__ inline void load_lower(T (&l)[N][N], const T *block, int ld) {
    constexpr int wide = Pack16<T>::count;
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = j / wide * wide; i < N; i += wide) {
            auto pack = *reinterpret_cast<const Pack16<T> *>(block + i + j * ld);
#pragma unroll
            for (int e = 0; e < wide; ++e)
                if (i + e >= j) l[i + e][j] = pack.v[e];
        }
}

// The lower triangle of an 8×8 block, in the registers of each thread.
template <class T> struct Eight {
    T l[8][8];

    // Factor M·D·Mᴴ, leaving the columns of M scaled by their pivots, and overwrite a row x with
    // its row of the Cholesky factor. Returns the first column without a pivot, from 1, or 0.
    __device__ int factor(T (&x)[8]) {
        int failed = 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            real_t<T> pivot = real(l[k][k]), r = pivot_reciprocal(pivot);
            if (!is_pivot(pivot) && !failed) failed = k + 1;
#pragma unroll
            for (int j = k + 1; j < 8; ++j) {
                T m = conj(r * l[j][k]);
#pragma unroll
                for (int i = j; i < 8; ++i) l[i][j] = fma_(-l[i][k], m, l[i][j]);
                x[j] = fma_(-x[k], m, x[j]);
            }
            real_t<T> scale;
            pivot_root(pivot, scale);
            x[k] = scale * x[k];
        }
        return failed;
    }
};

// Factor columns p…p+7 of a tile. Returns the first column of the tile without a pivot, from 1, or
// 0.
template <int LD, class T> __device__ inline int factor_eight(T *tile, int rows, int p) {
    int row = threadIdx.x;
    bool mine = row >= p && row < rows;
    Eight<T> top;
    load_lower(top.l, tile + p + p * LD, LD);
    T x[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = mine ? tile[row + (p + k) * LD] : zero<T>();
    __syncthreads();  // all threads have read the 8×8 block
    int failed = top.factor(x);
    if (mine) {
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            if (is_complex<T> && row == p + k) x[k] = from_real<T>(real(x[k]));  // as in LAPACK
            tile[row + (p + k) * LD] = x[k];
        }
    }
    __syncthreads();
    return failed ? p + failed : 0;
}

// Subtract from columns p+8…p+15 the product of columns p…p+7 and their rows p+8…p+15, a row per
// thread.
template <int LD, class T> __device__ inline void update_eight(T *tile, int rows, int p) {
    int row = threadIdx.x;
    if (row >= p + 8 && row < rows) {
        T y[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) y[j] = tile[row + (p + 8 + j) * LD];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            T x = -tile[row + (p + k) * LD];
#pragma unroll
            for (int j = 0; j < 8; ++j) y[j] = fma_(x, conj(tile[p + 8 + j + (p + k) * LD]), y[j]);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) tile[row + (p + 8 + j) * LD] = y[j];
    }
    __syncthreads();
}

// Subtract from the columns right of p…p+15 the product of these columns and their rows, 16×16 per
// warp.
template <int LD, class T> __device__ inline void update_rest(T *tile, int rows, int p) {
    int after = p + 16, side = (rows - after) / 16;
#pragma unroll 1
    for (int e = threadIdx.x / 32; e < side * (side + 1) / 2; e += blockDim.x / 32) {
        int j = 0, i = e;  // along the columns of the lower triangle of blocks
        while (i >= side - j) i -= side - j++;
        int j0 = after + 16 * j, i0 = j0 + 16 * i;
        WarpProduct<T, 16, 16> part;
        part.clear();
        part.template add<16, false, false, false, true>(
            tile + i0 + p * LD, LD, tile + j0 + p * LD, LD);
        part.each([&](int r, int c, T &v) {
            T &entry = tile[i0 + r + (j0 + c) * LD];
            entry = entry - v;
        });
    }
    __syncthreads();
}

// The `known` of factor_tile, and similar callbacks, that do nothing.
struct Nobody {
    template <class Known> __device__ void operator()(const Known &) const {}
};

// Factor the rows×rows tile, rows a multiple of 16, whose element (i, j) is tile[i + j*LD]; entries
// above its diagonal are not read. Called by at least `rows` threads in whole warps. Returns
// LAPACK's info to all of them. Calls known(p) in all threads when columns p…p+7 of the factor are
// in the tile.
template <int LD, class T, class Known = Nobody>
__device__ inline int factor_tile(T *tile, int rows, Known known = {}) {
    int failed = 0;
#pragma unroll 1
    for (int p = 0; p < rows; p += 16) {
#pragma unroll 1
        for (int q = p; q < p + 16; q += 8) {
            int found = factor_eight<LD>(tile, rows, q);
            failed = failed ? failed : found;
            known(q);
            if (q == p) update_eight<LD>(tile, rows, p);
        }
        update_rest<LD>(tile, rows, p);
    }
    return failed;
}

// Compute the inverse of the 16×16 block at (16w, 16w), w the warp, of a lower triangle whose
// element (i, k) is tile[i*down + k*right]: 16 lanes solve for a column each, and write it if
// `mine`.
template <class T, class Scale>
__device__ inline void invert_sixteen(
    const T *tile, int down, int right, T *inverse, const Scale *scales, bool mine = true) {
    constexpr int ld = tile_ld<T>;
    int lane = threadIdx.x % 16, p = threadIdx.x / 32 * 16;
    T x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = i == lane ? one<T>() : zero<T>();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        x[k] = scales[p + k] * x[k];
#pragma unroll
        for (int i = k + 1; i < 16; ++i)
            x[i] = fma_(-tile[(p + i) * down + (p + k) * right], x[k], x[i]);
    }
    if (mine) {
#pragma unroll
        for (int i = 0; i < 16; ++i) inverse[p + i + (p + lane) * ld] = x[i];
    }
}

// Clear the entries above the diagonal of the inverse that products read: inside its two 32×32
// diagonal blocks.
template <class T> __device__ inline void clear_above(T *inverse) {
    constexpr int ld = tile_ld<T>;
    for (int e = threadIdx.x; e < 2 * 16 * 16; e += blockDim.x)
        inverse[e / 256 * 32 * (1 + ld) + e % 16 + (e % 256 / 16 + 16) * ld] = zero<T>();
}

// 16×16 parts, one per warp, of V21 = −V22·(L21·V11), the part of L⁻¹ below its diagonal blocks of
// order H. First the product in parentheses, stored in v21; with TRANSPOSED l21 is from the
// transpose of L. `part` must be zero in all warps: a condition around clear() costs registers.
template <int H, bool TRANSPOSED, class T>
__device__ inline void join_first(
    WarpProduct<T, 16, 16> &part, const T *l21, const T *v11, T *v21) {
    constexpr int ld = tile_ld<T>;
    part.template add<H, TRANSPOSED, true, false, false>(l21, ld, v11, ld);
    part.each([&](int i, int j, T &v) { v21[i + j * ld] = v; });
}
// Second, when the first product is complete, the other product; and third, when all warps have
// read v21, its store there.
template <int H, class T>
__device__ inline void join_second(WarpProduct<T, 16, 16> &part, const T *v22, const T *v21) {
    part.template add<H, false, true, false, false>(v22, tile_ld<T>, v21, tile_ld<T>);
}
template <class T> __device__ inline void join_put(WarpProduct<T, 16, 16> &part, T *v21) {
    part.each([&](int i, int j, T &v) { v21[i + j * tile_ld<T>] = -v; });
}

// Compute all parts below the diagonal blocks of order H.
template <int H, bool TRANSPOSED, class T>
__device__ inline void join_inverses(const T *tile, T *inverse) {
    constexpr int ld = tile_ld<T>, parts = H / 16, warps = parts * parts;
    int warp = threadIdx.x / 32, p = warp / warps * 2 * H, i0 = warp % parts * 16,
        j0 = warp % warps / parts * 16;
    bool mine = p < TILE_ROWS;
    T *v11 = inverse + p + p * ld, *v21 = v11 + H, *v22 = v21 + H * ld;
    WarpProduct<T, 16, 16> part;
    part.clear();
    if (mine) {
        const T *l21 = TRANSPOSED ? tile + p + (p + H + i0) * ld : tile + p + H + i0 + p * ld;
        join_first<H, TRANSPOSED>(part, l21, v11 + j0 * ld, v21 + i0 + j0 * ld);
    }
    __syncthreads();
    part.clear();
    if (mine) join_second<H>(part, v22 + i0, v21 + j0 * ld);
    __syncthreads();
    if (mine) join_put(part, v21 + i0 + j0 * ld);
    __syncthreads();
}

// Invert the lower triangle of a 64×64 tile (with TRANSPOSED, the transpose of its upper triangle),
// with `scales` the reciprocals of its diagonal, into `inverse`, of the same layout. Zeros are
// written above the diagonal only inside the two 32×32 diagonal blocks. With n < 64 only the
// leading n×n of the inverse is complete. By 128 threads; ends with a barrier.
template <bool TRANSPOSED = false, class T, class Scale>
__device__ inline void invert_lower(
    const T *tile, T *inverse, const Scale *scales, int n = TILE_ROWS) {
    constexpr int down = TRANSPOSED ? tile_ld<T> : 1, right = TRANSPOSED ? 1 : tile_ld<T>;
    clear_above(inverse);
    if (threadIdx.x / 32 * 16 < n)
        invert_sixteen(tile, down, right, inverse, scales, threadIdx.x % 32 < 16);
    __syncthreads();
    if (n > 16) join_inverses<16, TRANSPOSED>(tile, inverse);
    if (n > 32) join_inverses<32, TRANSPOSED>(tile, inverse);
}

// Factor the 64×64 tile whose element (i, j) is tile[i + j*tile_ld] (missing rows and columns are
// those of the identity), and invert the factor; only the leading n×n is required. Returns LAPACK's
// info to all 128 threads. `scales`: 64 reals of shared memory. `known`: see factor_tile.
template <class T, class Known = Nobody>
__device__ inline int potrf_tile(
    T *tile, T *inverse, real_t<T> *scales, int n = TILE_ROWS, Known known = {}) {
    int failed = factor_tile<tile_ld<T>>(tile, (n + 15) / 16 * 16, known), row = threadIdx.x;
    if (row < TILE_ROWS) scales[row] = pivot_reciprocal(real(tile[row * (tile_ld<T> + 1)]));
    __syncthreads();
    invert_lower(tile, inverse, scales, n);
    return failed;
}
