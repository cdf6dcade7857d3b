// SVD of a small matrix by one-sided Jacobi: A·V = U·diag(s), by a block in shared memory.
//
// Columns are rotated in pairs until all are orthogonal to working precision. The pairs form a
// round-robin tournament, ORDER/2 pairs at once, LANES lanes each; a lane owns ORDER/LANES rows of
// both columns and keeps them in registers from the sums of the Gram entries to the rotation. Sums
// use the current entries, so that small columns are as accurate as large ones; the larger column
// of a pair moves to the front. Zero columns are completed to a basis.
// Hestenes, "Inversion of matrices by biorthogonalization and related results" (1958); the larger
// first: de Rijk, "A one-sided Jacobi algorithm for computing the singular value decomposition on a
// vector computer" (1989); the tournament: Brent, Luk, "The solution of singular-value and
// symmetric eigenvalue problems on multiprocessor arrays" (1985).
#pragma once
#include "dense/potf2.cuh"
#include "dense/reduce.cuh"

constexpr int jacobi_sweeps = 40;  // six to ten are usual

// Threads and memory of a block: ORDER columns and rows, LANES lanes per pair of columns. `ld`
// prevents bank conflicts between groups of lanes on consecutive columns.
template <int N, int L> struct JacobiBlock {
    static constexpr int order = N, lanes = L, rows = order / lanes;
    static constexpr int threads = order / 2 * lanes, ld = order + lanes, entries = order * ld;
};

// State of a block besides the columns, in shared memory.
template <class Block, class T> struct JacobiState {
    real_t<T> sigma[Block::order], scratch[32], rows[Block::order];  // rows: Σ|U(i, j)|² over j
    T dots[Block::order];
    int place[Block::order], bad, row;
};

// z/|z|, if the square of z is representable.
template <class R> __device__ inline R phase_of(R z) { return z < 0 ? R(-1) : R(1); }
template <class R> __device__ inline complex<R> phase_of(complex<R> z) {
    R inverse;
    pivot_root(abs2(z), inverse);
    return inverse * z;
}

// The rotation c·x − s·y, s̄·x + c·y that makes columns x and y with Gram entries xx, yy, xy
// orthogonal. c is near one, so that 1 − c is stored: the terms added to x and y are then small,
// and many rotations preserve lengths (Rutishauser, "The Jacobi method for real symmetric
// matrices", 1966). `phase` is that of xy.
template <class T> struct Rotation {
    real_t<T> less;  // 1 − c
    T s;
};
template <class T, class R> __device__ inline Rotation<T> rotation(R xx, R yy, T xy, T phase) {
    // Sine and cosine of the double angle are as 2|xy| to yy − xx, here in units of about the
    // larger of xx and yy, so that underflow is negligible.
    R unit = reciprocal_seed(max_(xx, yy)), far = unit * (yy - xx);
    R near = 2 * unit * real(conj(phase) * xy), inverse, part;
    pivot_root(fma_(far, far, near * near), inverse);
    R c = pivot_root(fma_(R(0.5) * abs1(far), inverse, R(0.5)), part);
    R s = R(0.5) * near * inverse * part, less = s * s * pivot_reciprocal(1 + c);
    return {less, (far < 0 ? -s : s) * conj(phase)};
}

template <int ROWS, int LANES, class T>
__device__ inline void rotate(T *first, T *second, T (&x)[ROWS], T (&y)[ROWS], Rotation<T> by) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        first[r * LANES] = x[r] - fma_(by.s, y[r], by.less * x[r]);
        second[r * LANES] = y[r] + fma_(conj(by.s), x[r], -(by.less * y[r]));
    }
}

// Rotate columns i and j of w, and of v unless it is null, if they are not orthogonal. All lanes of
// a warp must call; groups without a pair pass `active` = false and change no column. Returns
// whether the columns were rotated.
template <class Block, class T>
__device__ inline bool orthogonalize(T *w, T *v, int i, int j, bool active, real_t<T> tolerance) {
    using R = real_t<T>;
    constexpr int rows = Block::rows;
    int lane = threadIdx.x % Block::lanes;
    T *first = w + i * Block::ld + lane, *second = w + j * Block::ld + lane, x[rows], y[rows];
    R xx = 0, yy = 0;
    T xy = zero<T>();
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        x[r] = active ? first[r * Block::lanes] : zero<T>();  // else another group writes there
        y[r] = active ? second[r * Block::lanes] : zero<T>();
        xx = xx + abs2(x[r]), yy = yy + abs2(y[r]), xy = fma_(conj(x[r]), y[r], xy);
    }
    xx = lane_sum<Block::lanes>(xx), yy = lane_sum<Block::lanes>(yy);
    xy = lane_sum<Block::lanes>(xy);
    constexpr R floor = limits<R>::least / limits<R>::epsilon;
    if (!(xx > floor && yy > floor)) return false;
    T cosine = root_seed(yy) * (root_seed(xx) * xy);
    if (!(abs2(cosine) > tolerance * tolerance)) return false;
    Rotation<T> by = rotation(xx, yy, xy, phase_of(cosine));
    bool swap = (yy > xx) == (i < j);
    int shift = (j - i) * Block::ld;
    rotate<rows, Block::lanes>(swap ? second : first, swap ? first : second, x, y, by);
    if (v) {
        first = v + i * Block::ld + lane, second = first + shift;
#pragma unroll
        for (int r = 0; r < rows; ++r)
            x[r] = first[r * Block::lanes], y[r] = second[r * Block::lanes];
        rotate<rows, Block::lanes>(swap ? second : first, swap ? first : second, x, y, by);
    }
    return true;
}

// Sweep over all pairs of n columns until none is rotated; return false if that does not happen.
template <class Block, class T> __device__ bool sweep(T *w, T *v, int n, real_t<T> tolerance) {
    int players = n + n % 2, others = players - 1, k = threadIdx.x / Block::lanes;
    for (int count = 0; count < jacobi_sweeps; ++count) {
        bool rotated = false;
#pragma unroll 1
        for (int round = 0; round < others; ++round) {
            int i = k == 0 ? others : (round + k) % others;
            int j = k == 0 ? round : (round - k + others) % others;
            bool active = k < players / 2 && i < n && j < n;
            if (!active) i = j = 0;
            rotated |= orthogonalize<Block>(w, v, i, j, active, tolerance);
            __syncthreads();
        }
        if (!__syncthreads_or(rotated)) return true;
    }
    return false;
}

// Make column c of u, of m rows, a unit vector orthogonal to all other columns, which are unit
// vectors or zero: the unit vector least contained in their span, orthogonalized twice.
template <class Block, class T>
__device__ void complete(T *u, int m, int c, JacobiState<Block, T> &of) {
    using R = real_t<T>;
    constexpr int ld = Block::ld;
    int t = threadIdx.x;
    T *column = u + c * ld;
    if (t == 0) {
        of.row = 0;
        for (int i = 1; i < m; ++i)
            if (of.rows[i] < of.rows[of.row]) of.row = i;
    }
    __syncthreads();
    if (t < m) column[t] = zero<T>();
    __syncthreads();
    if (t == 0) column[of.row] = one<T>();
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int j = t; j < Block::order; j += blockDim.x) {
            T dot = zero<T>();
#pragma unroll 4
            for (int i = 0; i < m && j != c; ++i) dot = fma_(conj(u[i + j * ld]), column[i], dot);
            of.dots[j] = dot;
        }
        __syncthreads();
        for (int i = t; i < m; i += blockDim.x) {
            T sum = column[i];
#pragma unroll 4
            for (int j = 0; j < Block::order; ++j) sum = fma_(-of.dots[j], u[i + j * ld], sum);
            column[i] = sum;
        }
        __syncthreads();
    }
    R part = 0;
    for (int i = t; i < m; i += blockDim.x) part = part + abs2(column[i]);
    R inverse;
    pivot_root(block_sum(part, of.scratch), inverse);
    for (int i = t; i < m; i += blockDim.x) {
        column[i] = inverse * column[i];
        of.rows[i] = of.rows[i] + abs2(column[i]);
    }
    __syncthreads();
}

// Normalize the orthogonal columns of w; store their lengths and the ranks of these in descending
// order.
template <class Block, class T>
__device__ void singular_values(T *w, int n, JacobiState<Block, T> &of) {
    using R = real_t<T>;
    constexpr R floor = limits<R>::least / limits<R>::epsilon;
    int lane = threadIdx.x % Block::lanes;
    for (int j = threadIdx.x / Block::lanes; j < Block::order; j += Block::order / 2) {
        T *column = w + j * Block::ld + lane;
        R sum = 0;
        for (int r = 0; r < Block::rows; ++r) sum = sum + abs2(column[r * Block::lanes]);
        sum = lane_sum<Block::lanes>(sum);
        bool null = !(sum > floor) || j >= n;
        R inverse, length = pivot_root(null ? R(1) : sum, inverse);
        if (null) length = inverse = 0;
        for (int r = 0; r < Block::rows; ++r)
            column[r * Block::lanes] = inverse * column[r * Block::lanes];
        if (lane == 0) of.sigma[j] = length;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        int before = 0;
        for (int k = 0; k < n; ++k)
            before += of.sigma[k] > of.sigma[j] || (of.sigma[k] == of.sigma[j] && k < j);
        of.place[j] = before;
    }
    __syncthreads();
}

// Read a into w, scaled, with zeros around it, and set v = I; return the exponent of the scale.
// of.bad becomes the first column with an entry that is not finite, or the number of columns. If
// `upper`, entries below the diagonal are not read.
template <class Block, class T>
__device__ int load_scaled(Matrix<T> a, bool upper, T *w, T *v, JacobiState<Block, T> &of) {
    using R = real_t<T>;
    if (threadIdx.x == 0) of.bad = a.cols;
    __syncthreads();
    R most = 0;
#pragma unroll 1
    for (int k = threadIdx.x; k < Block::order * Block::order; k += blockDim.x) {
        int i = k % Block::order, j = k / Block::order;
        bool inside = i < a.rows && j < a.cols && (!upper || i <= j);
        T value = inside ? a(i, j) : zero<T>();
        R part = largest_part(value);
        if (!(abs1(real(value)) <= limits<R>::largest && abs1(imag(value)) <= limits<R>::largest))
            atomicMin(&of.bad, j);
        most = max_(most, part);
        w[i + j * Block::ld] = value;
        if (v) v[i + j * Block::ld] = i == j ? one<T>() : zero<T>();
    }
    int exponent = scale_exponent(block_max(most, of.scratch));
    R scale = power_of_two<R>(exponent);
    for (int k = threadIdx.x; k < Block::order * Block::order; k += blockDim.x) {
        T *entry = w + k % Block::order + k / Block::order * Block::ld;
        *entry = scale * *entry;
    }
    __syncthreads();
    return exponent;
}

// Compute s, u and v of a = u·diag(s)·vᵀ: v is the conjugate of the usual V. `u` has as many
// columns as a has columns or rows; without `vectors` neither u nor v is accessed. Singular values
// are also divided by 2^exponent. Returns 0; or the first column, from 1, with an entry that is not
// finite, with all results NaN; or the number of columns + 1 if Jacobi did not converge.
template <class Block, class T>
__device__ int jacobi_svd(Matrix<T> a, bool upper, int exponent, Matrix<real_t<T>> s, Matrix<T> u,
    Matrix<T> v, bool vectors, T *memory, JacobiState<Block, T> &of) {
    using R = real_t<T>;
    T *w = memory, *right = vectors ? memory + Block::entries : nullptr;
    int n = a.cols, m = a.rows, scaled = load_scaled(a, upper, w, right, of), bad = of.bad;
    R inverse, tolerance = limits<R>::epsilon * pivot_root(R(max_(m, 1)), inverse);
    bool converged = bad < n || sweep<Block>(w, right, n, tolerance);
    singular_values(w, n, of);
    R less = power_of_two<R>(-scaled), again = power_of_two<R>(-exponent);
    R lost = bad < n ? R(__int_as_float(0x7fc00000)) : R(0);
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        s(bad < n ? j : of.place[j], 0) = of.sigma[j] * less * again + lost;
    if (vectors) {
        for (int i = threadIdx.x; i < m; i += blockDim.x) {
            R sum = 0;
            for (int j = 0; j < n; ++j) sum = sum + abs2(w[i + j * Block::ld]);
            of.rows[i] = sum;
        }
        __syncthreads();
        for (int j = 0; j < u.cols && bad >= n; ++j)
            if (j >= n || !(of.sigma[j] > 0)) complete<Block>(w, m, j, of);
        for (int k = threadIdx.x; k < m * u.cols; k += blockDim.x) {
            int i = k % m, j = k / m, to = j < n && bad >= n ? of.place[j] : j;
            u(i, to) = w[i + j * Block::ld] + from_real<T>(lost);
        }
        for (int k = threadIdx.x; k < n * n; k += blockDim.x) {
            int i = k % n, j = k / n, to = bad >= n ? of.place[j] : j;
            v(i, to) = conj(right[i + j * Block::ld]) + from_real<T>(lost);
        }
    }
    return bad < n ? bad + 1 : converged ? 0 : n + 1;
}
