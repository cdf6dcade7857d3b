// op(A)·X = alpha·B or X·op(A) = alpha·B, X over B, for a strip of W columns (rows) of B.
//
// Block substitution: with E = op(A) in blocks of 32, X(i) = inv(E(i,i))·(alpha·B(i) − Σ
// E(i,k)·X(k)) over the finished blocks k; both products are tiles. The inverses are GIVEN
// (trtri.cu) or computed here, those of the next diagonal blocks by one warp each. The other side
// is solved transposed.
// Inverses of the diagonal blocks instead of their solves: Du Croz, Higham, "Stability of methods
// for matrix inversion" (1992); in batches: Haidar, Dong, Luszczek, Tomov, Dongarra, "Batched
// matrix computations on hardware accelerators based on GPUs" (2015).
#pragma once
#include "common/tile.cuh"
#include "dense/trtri.cuh"

template <class T, Side S, Uplo U, Trans TA, int W, bool GIVEN> struct Trsm {
    static constexpr bool left = S == Left, lower = (U == Lower) == (TA == NoTrans);  // of op(A)
    static constexpr bool forward = left == lower, tensor = same_type<real_t<T>, double>;
    static constexpr int NB = tri_order, across = W < 32 ? 1 : 2, depth = sizeof(T) == 16 ? 8 : 16;
    using Product =
        Tile<T, left ? NB : W, left ? W : NB, depth, left ? 2 : across, left ? across : 2, 3>;
    static constexpr int warps = 2 * across, threads = Product::threads,
                         inverses = GIVEN ? 1 : warps;
    // Blocks per multiprocessor.
    static constexpr int residents = (GIVEN && sizeof(real_t<T>) == 4 ? 384 : 256) / threads;
    static constexpr int M = Product::rows / (left ? 2 : across),
                         N = Product::cols / (left ? across : 2);

    // Shared-memory layout of the right-hand side of a block as an operand of the second product.
    static constexpr bool side_along_k = left && tensor;
    static constexpr int side_ld = (side_along_k ? NB : W) + leading_pad<T, side_along_k>();
    static constexpr int side_elements = (side_along_k ? W : NB) * side_ld;
    static constexpr int inverse_elements = NB * tri_ld<T>;
    static constexpr int product_elements =
        Product::shared_elements > side_elements ? Product::shared_elements : side_elements;
    static constexpr int shared_elements = inverses * inverse_elements + product_elements;

    // Solve for the strip that begins at column (row) `first` of b, by `threads` threads. `given`:
    // the consecutive inverses of a's diagonal blocks.
    __device__ static void solve(
        Matrix<T> a, const T *given, Diag diag, T alpha, Matrix<T> b, int first, T *shared) {
        T *inverse = shared, *work = shared + inverses * inverse_elements;
        b = left ? b.at(0, first, b.rows, W) : b.at(first, 0, W, b.cols);
        int n = a.rows, blocks = ceil_div(n, NB);
#pragma unroll 1
        for (int step = 0; step < blocks; ++step) {
            int i = (forward ? step : blocks - 1 - step) * NB;
            if constexpr (GIVEN) fetch_triangle(given + i * NB, inverse);
            else if (step % warps == 0) invert(a, diag, blocks, step, inverse);
            Matrix<T> block = left ? b.at(i, 0, NB) : b.at(0, i, b.rows, NB);
            Product tile;
            tile.clear();
            multiply_done(tile, a, b, i, forward ? 0 : i + NB, forward ? i : n, work, [&] {
                tile.each([&](int r, int c, T &v) {
                    if (r < block.rows && c < block.cols) v = block(r, c);
                });
                tile.each([&](int, int, T &v) { v = -alpha * v; });
            });
            tile.each([&](int r, int c, T &v) {
                work[left == side_along_k ? r + c * side_ld : c + r * side_ld] = -v;
            });
            copy_async_wait<0>();
            __syncthreads();
            multiply_inverse(inverse + step % inverses * inverse_elements, work, block);
            __syncthreads();  // X is visible to the next block, and shared memory is free
        }
    }

  private:
    // Compute the inverses of the diagonal blocks of the next steps, one per warp.
    __device__ static void invert(Matrix<T> a, Diag diag, int blocks, int step, T *inverse) {
        int warp = threadIdx.x / 32, mine = step + warp;
        if (mine < blocks) {
            int i = (forward ? mine : blocks - 1 - mine) * NB;
            load_triangle(a.at(i, i, NB, NB), U, diag, inverse + warp * inverse_elements);
            invert_triangle(inverse + warp * inverse_elements);
        }
        __syncthreads();
    }

    // tile += the product of block row (column) i of op(A) with X over the finished range [from,
    // to).
    template <class Begin>
    __device__ static void multiply_done(
        Product &tile, Matrix<T> a, Matrix<T> b, int i, int from, int to, T *work, Begin begin) {
        int count = to - from;
        Matrix<T> e = (TA == NoTrans) == left ? a.at(i, from, NB, count) : a.at(from, i, count, NB);
        if constexpr (left)
            tile.template multiply<TA, NoTrans>(e, b.at(from, 0, count), work, true, begin);
        else
            tile.template multiply<NoTrans, TA>(b.at(0, from, b.rows, count), e, work, true, begin);
    }

    // block = inv(E)·side or side·inv(E).
    __device__ static void multiply_inverse(const T *inverse, const T *side, Matrix<T> block) {
        constexpr bool conjugate = TA == ConjTrans;
        int warp = threadIdx.x / 32, i0 = warp % (left ? 2 : across) * M,
            j0 = warp / (left ? 2 : across) * N;
        WarpProduct<T, M, N> x;
        x.clear();
#pragma unroll 1  // otherwise all operands are loaded at once, into too many registers
        for (int k = 0; k < NB; k += 8) {
            if constexpr (left)
                x.template add<8, !lower, side_along_k, conjugate, false>(
                    inverse + i0 * (lower ? 1 : tri_ld<T>)+k * (lower ? tri_ld<T> : 1), tri_ld<T>,
                    side + j0 * (side_along_k ? side_ld : 1) + k * (side_along_k ? 1 : side_ld),
                    side_ld);
            else
                x.template add<8, false, lower, false, conjugate>(side + i0 + k * side_ld, side_ld,
                    inverse + j0 * (lower ? tri_ld<T> : 1) + k * (lower ? 1 : tri_ld<T>),
                    tri_ld<T>);
        }
        x.each([&](int r, int c, T &v) {
            if (i0 + r < block.rows && j0 + c < block.cols) block(i0 + r, j0 + c) = v;
        });
    }
};
