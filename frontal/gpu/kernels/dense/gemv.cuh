// Matrix-vector products, bound by the bandwidth of reading A: each thread keeps several 16-byte
// reads pending, and every read of a warp lies along columns.
//
// A team of X×Y threads (threadIdx.x, threadIdx.y) computes one tile of one matrix: X lanes along
// the rows, Y groups over the columns. A team that is a whole block synchronizes by __syncthreads;
// in a block of several teams (blockDim.z > 1) each is one warp and synchronizes by __syncwarp.
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// Elements per 16-byte read.
template <class T> constexpr int vector_length = 16 / sizeof(T);
template <class T> struct alignas(16) Vector {
    T e[vector_length<T>];
};

// Destination of sums: y = alpha·sum + beta·y (y is not read if beta = 0), or unscaled `partial` if
// several tiles contribute to one sum. `before` is read early, so that its latency is hidden.
template <class T> struct Sums {
    T alpha, beta;
    T *y, *partial;
    __device__ T before(int i) const { return partial || beta == zero<T>() ? zero<T>() : y[i]; }
    __device__ void store(int i, T sum, T before) const {
        if (partial) partial[i] = sum;
        else y[i] = beta == zero<T>() ? alpha * sum : fma_(beta, before, alpha * sum);
    }
};

__device__ inline void team_sync() {
    if (blockDim.z > 1) __syncwarp();
    else __syncthreads();
}

// Return the number of elements from the last aligned address up to p. Reads begin there, so that a
// warp reads whole 128-byte lines. `step` is the distance in bytes of columns that are read
// together; if it breaks this alignment, or for few rows, the alignment is 16 bytes.
template <class T> __device__ int padding(const T *p, long long step, bool long_columns) {
    int align = long_columns && step % 128 == 0 ? 128 : 16;
    return int((unsigned long long)p % align / sizeof(T));
}

// Rows i, i+1, … of a column in one 16-byte read; i must be aligned and the rows inside.
template <class T> __device__ Vector<T> read_vector(const T *column, int i) {
    return *reinterpret_cast<const Vector<T> *>(column + i);
}

// Rows i, i+by, … of a column, read one by one; rows outside 0…rows-1 yield an arbitrary entry.
template <class T> __device__ Vector<T> read_apart(const T *column, int i, int by, int rows) {
    Vector<T> v;
#pragma unroll
    for (int e = 0; e < vector_length<T>; ++e) v.e[e] = column[max_(0, min_(i + e * by, rows - 1))];
    return v;
}

// Σ read(column j)·x(j) over every Y-th column, with the reads of U columns pending.
template <int U, class T, class Read>
__device__ Vector<T> sum_of_columns(Matrix<T> a, const T *x, Read read) {
    int Y = blockDim.y;
    Vector<T> sum{};
#pragma unroll 1
    for (int j = threadIdx.y; j < a.cols; j += U * Y) {
        Vector<T> v[U];
        T factor[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {  // beyond the last column: read column j again, do not add it
            int k = j + u * Y < a.cols ? j + u * Y : j;
            v[u] = read(&a(0, k));
            factor[u] = x[k];
        }
#pragma unroll
        for (int u = 0; u < U; ++u)
#pragma unroll
            for (int e = 0; e < vector_length<T>; ++e)
                sum.e[e] = j + u * Y < a.cols ? fma_(v[u].e[e], factor[u], sum.e[e]) : sum.e[e];
    }
    return sum;
}

// a·x by strips of X vectors of rows; a thread owns the rows of one vector. `shared` holds one
// vector for each thread of the team, and is not used if Y = 1.
template <int U, bool ALIGNED, class T>
__device__ void gemv_n_strips(Matrix<T> a, const T *x, Sums<T> out, Vector<T> *shared, int begin) {
    constexpr int V = vector_length<T>;
    int X = blockDim.x, Y = blockDim.y, tx = threadIdx.x, ty = threadIdx.y;
    for (int first = begin; first < a.rows; first += X * V) {
        int i = first + (ALIGNED ? V : 1) * tx, by = ALIGNED ? 1 : X;
        auto stores = [&](int row) { return ty == 0 && row >= 0 && row < a.rows; };
        Vector<T> before{}, sum;
        for (int e = 0; e < V; ++e)
            if (stores(i + e * by)) before.e[e] = out.before(i + e * by);
        if (ALIGNED && i >= 0 && i + V <= a.rows)
            sum = sum_of_columns<U>(a, x, [&](const T *column) { return read_vector(column, i); });
        else
            sum = sum_of_columns<U>(
                a, x, [&](const T *column) { return read_apart(column, i, by, a.rows); });
        if (Y > 1) {
            shared[tx + ty * X] = sum;
            team_sync();
            if (ty == 0)
#pragma unroll 2
                for (int y = 1; y < Y; ++y)
                    for (int e = 0; e < V; ++e) sum.e[e] = sum.e[e] + shared[tx + y * X].e[e];
        }
        for (int e = 0; e < V; ++e)
            if (stores(i + e * by)) out.store(i + e * by, sum.e[e], before.e[e]);
        if (Y > 1) team_sync();
    }
}

// out = a·x. Strips begin at an aligned address before the matrix if all columns have the same
// alignment and one strip more is negligible.
template <int U, class T>
__device__ void gemv_n(Matrix<T> a, const T *x, Sums<T> out, Vector<T> *shared) {
    long long step = a.ld * (long long)sizeof(T);
    bool long_columns = a.rows > 4 * (int)blockDim.x * vector_length<T>;
    int before = padding(a.data, step, long_columns);
    if (step % 16 == 0 && (before == 0 || long_columns))
        gemv_n_strips<U, true>(a, x, out, shared, -before);
    else gemv_n_strips<U, false>(a, x, out, shared, 0);
}

// sums[u] += Σ op(a(i+e, column u))·x(i+e) over one vector of rows, all inside if WHOLE.
template <bool WHOLE, int U, class T>
__device__ void add_dots(
    T (&sum)[U], const T *const (&column)[U], const T *x, int i, int rows, bool conjugate) {
    Vector<T> v[U], factor;
#pragma unroll
    for (int u = 0; u < U; ++u)
        v[u] = WHOLE ? read_vector(column[u], i) : read_apart(column[u], i, 1, rows);
    factor = read_apart(x, i, 1, rows);
#pragma unroll
    for (int e = 0; e < vector_length<T>; ++e)
#pragma unroll
        for (int u = 0; u < U; ++u)
            if (WHOLE || (i + e >= 0 && i + e < rows))
                sum[u] = fma_(conjugate ? conj(v[u].e[e]) : v[u].e[e], factor.e[e], sum[u]);
}

// out = op(a)·x, op the transpose or the conjugate transpose; X is a power of two from U to 32. A
// group of X lanes takes U columns together, at distances of V columns, V the elements of a vector:
// these have the same alignment for any leading dimension, and so the same entries of x. Each
// column is read from the last aligned address before it; entries outside are not counted.
template <int U, class T>
__device__ void gemv_t(Matrix<T> a, const T *x, Sums<T> out, bool conjugate) {
    constexpr int V = vector_length<T>;
    int X = blockDim.x, Y = blockDim.y, tx = threadIdx.x;
    int groups = ceil_div(a.cols, V * U) * V;
    bool long_columns = a.rows > 8 * X * V;
    // Every group makes the same number of rounds, since lanes shuffle together.
    for (int q0 = 0; q0 < groups; q0 += Y) {
        int q = q0 + (int)threadIdx.y, base = q / V * (V * U) + q % V;
        int rows = base < a.cols ? a.rows : 0;
        T sum[U];
        const T *column[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {  // beyond the last column: read the first, do not store
            int j = base + u * V < a.cols ? base + u * V : min_(base, a.cols - 1);
            sum[u] = zero<T>(), column[u] = &a(0, j);
        }
        // The column that this lane stores.
        int mine = tx < U && base + tx * V < a.cols ? base + tx * V : -1;
        T before = mine >= 0 ? out.before(mine) : zero<T>(), total = zero<T>();
        int i = V * tx - padding(column[0], V * a.ld * (long long)sizeof(T), long_columns);
        if (i < 0 && rows) add_dots<false>(sum, column, x, i, rows, conjugate), i += V * X;
        for (; i + V <= rows; i += V * X) add_dots<true>(sum, column, x, i, rows, conjugate);
        if (i < rows) add_dots<false>(sum, column, x, i, rows, conjugate);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            for (int step = X / 2; step > 0; step /= 2)
                sum[u] = sum[u] + shuffle_xor(sum[u], step, X);
            if (tx == u) total = sum[u];
        }
        if (mine >= 0) out.store(mine, total, before);
    }
}
