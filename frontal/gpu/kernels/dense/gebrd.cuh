// Reduction to an upper bidiagonal matrix B by Householder reflectors: A = Q·B·Pᴴ.
//
// The reflector from the right is G = I − tau·u·uᴴ, with u the reflector of the conjugate of a row.
// The conjugates of u and tau are stored, so that they define the conjugate of P.
// Panels: Dongarra, Sorensen, Hammarling, "Block reduction of matrices to condensed forms for
// eigenvalue computations" (1989); their products with the rest of the matrix by the big tiles of
// gemv.cuh: Dong, Haidar, Tomov, Dongarra, "Accelerating the SVD bi-diagonalization of a batch of
// small matrices using GPUs" (2018).
#pragma once
#include "dense/gemv.cuh"
#include "dense/householder.cuh"

// Outputs of a matrix: the diagonals of B, and the reflectors. d, e, tauq, taup begin at the first
// computed entry; vectors are columns of vq and vp, vp without the first row of P.
template <class T> struct Bidiagonal {
    real_t<T> *d, *e;
    T *tauq, *taup;
    Matrix<T> vq, vp;
};

// Multiply the rows below row i by G from the right, with u in row i from column i + 1 on: a warp
// takes four rows at a time and shuffles their sums together, a lane every 32nd column.
template <class T> __device__ inline void apply_right(Matrix<T> a, int i, T tau) {
    constexpr int each = 4;
    int lane = thread_rank() % 32, warps = thread_count() / 32;
    for (int r = i + 1 + thread_rank() / 32; r < a.rows; r += each * warps) {
        T dot[each];
        int row[each];
#pragma unroll
        for (int k = 0; k < each; ++k)  // beyond the last row: read the first again, write none
            dot[k] = zero<T>(), row[k] = r + k * warps < a.rows ? r + k * warps : r;
#pragma unroll 2
        for (int j = i + 1 + lane; j < a.cols; j += 32) {
            T u = a(i, j);
#pragma unroll
            for (int k = 0; k < each; ++k) dot[k] = fma_(a(row[k], j), u, dot[k]);
        }
#pragma unroll
        for (int k = 0; k < each; ++k) dot[k] = -(tau * lane_sum<32>(dot[k]));
#pragma unroll 2
        for (int j = i + 1 + lane; j < a.cols; j += 32) {
            T u = conj(a(i, j));
#pragma unroll
            for (int k = 0; k < each; ++k)
                if (r + k * warps < a.rows) a(row[k], j) = fma_(dot[k], u, a(row[k], j));
        }
    }
}

// Replace row i of a from column i + 1 on by u, with u(0) = 1, and multiply the rows below by G.
template <class T>
__device__ inline Reflector<T> eliminate_row(Matrix<T> a, int i, real_t<T> *scratch) {
    real_t<T> part = 0;
    for (int j = i + 2 + thread_rank(); j < a.cols; j += thread_count())
        part = part + abs2(a(i, j));
    T alpha = conj(a(i, i + 1));
    Reflector<T> h = reflector(alpha, block_sum(part, scratch));
    for (int j = i + 1 + thread_rank(); j < a.cols; j += thread_count())
        a(i, j) = j == i + 1 ? one<T>() : h.scale * conj(a(i, j));
    __syncthreads();
    apply_right(a, i, h.tau);
    __syncthreads();
    return h;
}

// Reduce all of a, with at least as many rows as columns, column by column. Its leading dimension
// should be odd, so that neither rows nor columns have bank conflicts in shared memory.
template <class T> __device__ void gebd2(Matrix<T> a, Bidiagonal<T> to, real_t<T> *scratch) {
    for (int i = 0; i < a.cols; ++i) {
        Reflector<T> h = eliminate_column(a, i, scratch);
        if (thread_rank() == 0) to.d[i] = h.beta, to.tauq[i] = h.tau;
        if (i + 1 == a.cols) break;
        h = eliminate_row(a, i, scratch);
        if (thread_rank() == 0) to.e[i] = h.beta, to.taup[i] = conj(h.tau);
    }
    store_reflectors(a, to.vq);
    each_entry(to.vp, [&](int i, int j) { to.vp(i, j) = i >= j ? conj(a(j, i + 1)) : zero<T>(); });
}

// out = alpha·a·x + beta·out, and out = alpha·aᴴ·x; by the block, with a barrier at the end. Both
// are not inlined, since a panel calls them ten times.
#ifdef LABRD_UNROLL
template <class T> constexpr int reads = LABRD_UNROLL;  // pending reads of a thread
#else
template <class T> constexpr int reads = is_complex<T> ? 4 : 8;
#endif
template <class T>
__device__ __noinline__ void add_product(
    T alpha, Matrix<T> a, const T *x, T beta, T *out, Vector<T> *shared) {
    gemv_n<reads<T>>(a, x, Sums<T>{alpha, beta, out, nullptr}, shared);
    __syncthreads();
}
template <class T> __device__ __noinline__ void dots(T alpha, Matrix<T> a, const T *x, T *out) {
    gemv_t<reads<T>>(a, x, Sums<T>{alpha, zero<T>(), out, nullptr}, true);
    __syncthreads();
}

// The panel's update of the rest, A − V·Yᴴ − X·Uᴴ; rows counted from the panel's first.
template <class T> struct Panel {
    Matrix<T> v, x, y, u;
};

// Shared memory of a block for a panel of WIDTH columns.
template <class T, int WIDTH> struct PanelScratch {
    real_t<T> sums[32];
    T left[WIDTH], right[WIDTH];
};

// Replace column i of `vectors` from row i + skip on by its reflector vector; return the reflector.
template <class T>
__device__ inline Reflector<T> panel_reflector(
    Matrix<T> vectors, int i, int skip, real_t<T> *scratch) {
    Reflector<T> h = column_reflector(vectors, i + skip, i, scratch);
    for (int r = i + skip + thread_rank(); r < vectors.rows; r += thread_count())
        vectors(r, i) = r == i + skip ? one<T>() : h.scale * vectors(r, i);
    __syncthreads();
    return h;
}

// Compute column i of v from the updated A, and y = tauq·Aᴴ·v for the updated A.
template <class T, int WIDTH>
__device__ Reflector<T> panel_column(
    Matrix<T> a, Panel<T> p, int i, PanelScratch<T, WIDTH> &scratch, Vector<T> *shared) {
    int t = thread_rank(), all = 1 << 30;
    for (int r = i + t; r < a.rows; r += thread_count()) p.v(r, i) = a(r, i);
    if (t < i) scratch.left[t] = conj(p.y(i, t)), scratch.right[t] = conj(p.u(i, t));
    __syncthreads();
    add_product(-one<T>(), p.v.at(i, 0, all, i), scratch.left, one<T>(), &p.v(i, i), shared);
    add_product(-one<T>(), p.x.at(i, 0, all, i), scratch.right, one<T>(), &p.v(i, i), shared);
    Reflector<T> h = panel_reflector(p.v, i, 0, scratch.sums);
    const T *v = &p.v(i, i);
    T *y = &p.y(i + 1, i);
    dots(h.tau, a.at(i, i + 1), v, y);
    dots(one<T>(), p.v.at(i, 0, all, i), v, scratch.left);
    dots(one<T>(), p.x.at(i, 0, all, i), v, scratch.right);
    add_product(-h.tau, p.y.at(i + 1, 0, all, i), scratch.left, one<T>(), y, shared);
    add_product(-h.tau, p.u.at(i + 1, 0, all, i), scratch.right, one<T>(), y, shared);
    return h;
}

// Compute column i of u from row i of the updated A, and x = taup·A·u.
template <class T, int WIDTH>
__device__ Reflector<T> panel_row(
    Matrix<T> a, Panel<T> p, int i, PanelScratch<T, WIDTH> &scratch, Vector<T> *shared) {
    int t = thread_rank(), all = 1 << 30;
    for (int c = i + 1 + t; c < a.cols; c += thread_count()) p.u(c, i) = conj(a(i, c));
    if (t <= i) scratch.left[t] = conj(p.v(i, t));
    if (t < i) scratch.right[t] = conj(p.x(i, t));
    __syncthreads();
    T *u = &p.u(i + 1, i), *x = &p.x(i + 1, i);
    add_product(-one<T>(), p.y.at(i + 1, 0, all, i + 1), scratch.left, one<T>(), u, shared);
    add_product(-one<T>(), p.u.at(i + 1, 0, all, i), scratch.right, one<T>(), u, shared);
    Reflector<T> h = panel_reflector(p.u, i, 1, scratch.sums);
    add_product(h.tau, a.at(i + 1, i + 1), u, zero<T>(), x, shared);
    dots(one<T>(), p.y.at(i + 1, 0, all, i + 1), u, scratch.left);
    dots(one<T>(), p.u.at(i + 1, 0, all, i), u, scratch.right);
    add_product(-h.tau, p.v.at(i + 1, 0, all, i + 1), scratch.left, one<T>(), x, shared);
    add_product(-h.tau, p.x.at(i + 1, 0, all, i), scratch.right, one<T>(), x, shared);
    return h;
}

// Reduce the first WIDTH columns and rows of a; the rest of a is only read. Vectors also go to
// `to`, with zeros in the rows before the panel's first.
template <class T, int WIDTH>
__device__ void labrd(Matrix<T> a, Panel<T> p, Bidiagonal<T> to, int before,
    PanelScratch<T, WIDTH> &scratch, Vector<T> *shared) {
    for (int i = 0; i < min_(WIDTH, a.cols); ++i) {
        Reflector<T> h = panel_column(a, p, i, scratch, shared);
        if (thread_rank() == 0) to.d[i] = h.beta, to.tauq[i] = h.tau;
        for (int r = thread_rank(); r < to.vq.rows; r += thread_count())
            to.vq(r, i) = r < before + i ? zero<T>() : p.v(r - before, i);
        if (i + 1 == a.cols) break;
        h = panel_row(a, p, i, scratch, shared);
        if (thread_rank() == 0) to.e[i] = h.beta, to.taup[i] = conj(h.tau);
        for (int r = thread_rank(); r < to.vp.rows; r += thread_count())
            to.vp(r, i) = r < before + i ? zero<T>() : conj(p.u(r + 1 - before, i));
    }
}
