// SVD of upper bidiagonal matrices B = U·diag(s)·Vᵀ; the method is in bdsqr.cuh.
//
// Tile map: one block per matrix. Warp 0 chases SWEEPS sweeps while the other warps apply the
// rotations of the previous ones: a thread owns rows of U and of V, each with its own chain of
// rotations, and adjacent threads own adjacent rows. Without vectors only warp 0 works. At the end
// a warp owns one column at a time. Blocks do not wait for each other. Memory of a block: d, e and
// two sets of rotations of SWEEPS sweeps, 2 + 8·SWEEPS reals per row; then U and V, 2·n² reals.
//   level      part in shared memory. 0: none, all of it is in `room`, `left` and `right`; 1: d, e
//              and rotations; 2: all
//   u, v       receive columns in the order of s; u may have more rows and columns, filled from the
//              identity
//   exponents  exponents of the powers of two by which the matrices were multiplied before
//   info       a nonzero entry is left unchanged; otherwise becomes the number of columns + 1 if
//              12·n² rotations did not suffice or an entry is not finite
#include "dense/bdsqr.cuh"

using T = SCALAR;
using R = real_t<T>;
constexpr int bdsqr_threads = 512;

// Memory of a block: d, e, two sets of rotations of SWEEPS sweeps, vectors.
struct Work {
    R *room;
    int n;
    Matrix<R> left, right;
    __device__ R *d() const { return room; }
    __device__ R *e() const { return room + n; }
    __device__ R *rotations(int k) const { return room + (2 + 4 * SWEEPS * k) * n; }
};

// Apply rotations to all rows, by the threads of all warps except the first.
__device__ inline void apply(const Work &w, const Sweeps &by, const R *rotations) {
    for (int q = (int)threadIdx.x - 32; q < 2 * w.n; q += (int)blockDim.x - 32) {
        int side = (q >= w.n) != (by.each[0].up != 0);
        R *row = q < w.n ? &w.right(q, 0) : &w.left(q - w.n, 0);
        rotate_row(row, q < w.n ? w.right.ld : w.left.ld, by, rotations, w.n, side);
    }
}

// Chase sweeps of one direction, until SWEEPS can be applied together. By a warp.
__device__ inline void sweep(
    const Work &w, R threshold, long long &budget, Sweep &last, Sweeps &found, R *rotations) {
    int count = 0;
    for (; count < SWEEPS && budget > 0; ++count) {
        Sweep next = next_block(w.d(), w.e(), w.n, threshold, last);
        if (!next.more || (count && next.up != last.up)) break;
        if (threadIdx.x == 0) {
            found.each[count] = next;
            chase(w.d(), w.e(), next, threshold, Rotations<R>{rotations + 4 * count * w.n, w.n});
        }
        __syncwarp();
        last = next, budget -= next.hi - next.lo;
    }
    if (threadIdx.x == 0) found.count = count;
}

// Sweep until no block is left; return whether the iteration converged.
__device__ bool iterate(const Work &w, R threshold, Sweeps (&sweeps)[2]) {
    long long budget = 12ll * w.n * w.n + 1;
    Sweep last{0, 0, 0, 0};
    for (int k = 0;; k ^= 1) {
        if (threadIdx.x < 32) sweep(w, threshold, budget, last, sweeps[k], w.rotations(k));
        else if (sweeps[k ^ 1].count) apply(w, sweeps[k ^ 1], w.rotations(k ^ 1));
        __syncthreads();
        if (!sweeps[k].count) return __syncthreads_or(threadIdx.x == 0 && budget <= 0) == 0;
    }
}

// Compute the rank of each |d| in descending order.
__device__ inline void places(const R *d, int n, int *place) {
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        int before = 0;
        for (int k = 0; k < n; ++k)
            before += abs1(d[k]) > abs1(d[j]) || (abs1(d[k]) == abs1(d[j]) && k < j);
        place[j] = before;
    }
    __syncthreads();
}

// Store the vectors' columns and s, times `scale`, at their ranks.
__device__ inline void store(
    const Work &w, R scale, bool finite, Matrix<R> s, Matrix<T> u, Matrix<T> v, const int *place) {
    R lost = finite ? R(0) : R(__int_as_float(0x7fc00000));
    int n = w.n;
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        s(finite ? place[j] : j, 0) = abs1(w.d()[j]) * scale + lost;
    int lane = threadIdx.x % 32;
    for (int j = threadIdx.x / 32; j < u.cols; j += blockDim.x / 32) {
        int to = j < n && finite ? place[j] : j;
        for (int i = lane; i < u.rows; i += 32) {
            bool inside = i < n && j < n;
            u(i, to) = from_real<T>((inside ? w.left(i, j) : R(i == j)) + lost);
        }
        for (int i = lane; i < n && j < n; i += 32)
            v(i, to) = from_real<T>((w.d()[j] < 0 ? -w.right(i, j) : w.right(i, j)) + lost);
    }
}

template <template <class> class Source>
__device__ void bdsqr(Source<R> diagonal, Source<R> off, Source<R> s, Source<R> room,
    Source<R> left, Source<R> right, Source<T> u, Source<T> v, int vectors, int level,
    const int *exponents, int *info) {
    __shared__ R scratch[32];
    __shared__ Sweeps sweeps[2];
    int b = blockIdx.x, n = diagonal(b).cols;
    R *memory = level ? shared_memory<R>() : room(b).data, *rest = memory + (2 + 8 * SWEEPS) * n;
    Matrix<R> none{nullptr, 0, 0, 1}, l = none, r = none;
    Matrix<T> to_u{nullptr, 0, 0, 1}, to_v = to_u;
    if (vectors) {
        l = level == 2 ? Matrix<R>{rest, n, n, n} : left(b);
        r = level == 2 ? Matrix<R>{rest + n * n, n, n, n} : right(b);
        to_u = u(b), to_v = v(b);
    }
    Work w{memory, n, l, r};
    R most = 0, sum = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        w.d()[j] = diagonal(b)(0, j), w.e()[j] = j + 1 < n ? off(b)(0, j) : R(0);
        most = max_(most, max_(abs1(w.d()[j]), abs1(w.e()[j])));
        sum += abs1(w.d()[j]) + abs1(w.e()[j]);
    }
    if (threadIdx.x < 2) sweeps[threadIdx.x].count = 0;
    each_entry(l, [&](int i, int j) { l(i, j) = r(i, j) = R(i == j); });
    most = block_max(most, scratch);
    bool finite = block_sum(sum, scratch) <= limits<R>::largest;
    R threshold = max_(limits<R>::epsilon * most, limits<R>::least);
    bool ended = !finite || iterate(w, threshold, sweeps);
    int *place = reinterpret_cast<int *>(w.rotations(0));
    places(w.d(), n, place);
    R scale = power_of_two<R>(-exponents[b]);
    store(w, scale, finite, s(b), to_u, to_v, place);
    if (threadIdx.x == 0 && !info[b] && !(finite && ended)) info[b] = n + 1;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(bdsqr_threads) name(Source<R> d, Source<R> e, \
        Source<R> s, Source<R> room, Source<R> left, Source<R> right, Source<T> u, Source<T> v, \
        int vectors, int level, const int *exponents, int *info) { \
        bdsqr(d, e, s, room, left, right, u, v, vectors, level, exponents, info); \
    }

ENTRY(bdsqr_native, Native)
ENTRY(bdsqr_batched, Batched)
ENTRY(bdsqr_vbatched, Vbatched)
