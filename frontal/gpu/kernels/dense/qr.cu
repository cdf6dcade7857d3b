// Householder QR and its auxiliaries: scaling, factors T of blocks, the identity, triangles.
//
// Tile map: one block of `qr_threads` threads per matrix; for larft, one per panel of NB columns. A
// warp owns a column at a time, or reduces four, a lane every 32nd row. Shared memory: for geqrf
// the staged part, dynamic; for larft twice NB×NB elements, static. Matrices may have any size,
// none included, and blocks do not wait for each other.
// Blocks of reflectors I − V·T·Vᴴ: Schreiber, Van Loan, "A storage-efficient WY representation for
// products of Householder transformations" (1989).
#include "dense/householder.cuh"

#ifndef NB
#define NB 32
#endif

using T = SCALAR;
using R = real_t<T>;
constexpr int qr_threads = 256;

// Multiply each matrix by a power of two, with exponent in `exponents`, so that squares of all
// significant entries are representable. info: 0, or the first column, from 1, with an entry that
// is not finite; all entries of that matrix become NaN.
template <class Source> __device__ void rescale(Source source, int *exponents, int *info) {
    __shared__ R scratch[32];
    __shared__ int bad;
    Matrix<T> a = source(blockIdx.x);
    if (threadIdx.x == 0) bad = a.cols;
    __syncthreads();
    R most = 0;
    each_entry(a, [&](int i, int j) {
        T value = a(i, j);
        most = max_(most, largest_part(value));
        if (!(abs1(real(value)) <= limits<R>::largest && abs1(imag(value)) <= limits<R>::largest))
            atomicMin(&bad, j);
    });
    int exponent = scale_exponent(block_max(most, scratch));
    bool finite = bad == a.cols;
    R scale = finite ? power_of_two<R>(exponent) : R(__int_as_float(0x7fc00000));
    if (exponent || !finite) each_entry(a, [&](int i, int j) { a(i, j) = scale * a(i, j); });
    if (threadIdx.x == 0) exponents[blockIdx.x] = finite ? exponent : 0;
    if (threadIdx.x == 0) info[blockIdx.x] = finite ? 0 : bad + 1;
}

// QR of a part of each matrix: R on and above the diagonal, entries below it are overwritten;
// reflectors go to the same part of v, scalars to tau. If `staged`, dynamic shared memory must hold
// the entries of the part.
template <class Source>
__device__ void geqrf(Source a, Window part, Source v, Source tau, int staged) {
    __shared__ R scratch[32];
    Matrix<T> whole = a(blockIdx.x).at(part), held = whole;
    Matrix<T> vectors = v(blockIdx.x).at(part);
    if (whole.cols == 0 || whole.rows == 0) return;
    if (staged) {
        held = Matrix<T>{shared_memory<T>(), whole.rows, whole.cols, whole.rows};
        each_entry(whole, [&](int i, int j) { held(i, j) = whole(i, j); });
        __syncthreads();
    }
    qr_columns(held, tau(blockIdx.x).data + part.j, scratch);
    store_reflectors(held, vectors);
    if (staged)
        each_entry(whole, [&](int i, int j) {
            if (i <= j) whole(i, j) = held(i, j);
        });
}

// Compute the upper triangular factors T of panels first, first + 1, … of NB reflectors, into the
// diagonal blocks of t. Block (b, p) has panel first + p of matrix b; a warp computes dot products
// of a column with four others, then a lane a row of T.
template <class Source> __device__ void larft(Source v, Source tau, Source t, int first) {
    __shared__ T gram[NB * NB], factor[NB * NB];
    int j0 = (first + blockIdx.y) * NB, b = blockIdx.x, lane = threadIdx.x % 32;
    Matrix<T> a = v(b).at(j0, j0, 1 << 30, NB), out = t(b).at(j0, j0, NB, NB);
    const T *scalars = tau(b).data + j0;
    constexpr int each = 4;
    int groups = ceil_div(a.cols, each);
    for (int k = threadIdx.x / 32; k < a.cols * groups; k += blockDim.x / 32) {
        int i = k % groups * each, j = k / groups;
        if (i >= j) continue;
        T dot[each] = {};
#pragma unroll 4
        for (int r = j + lane; r < a.rows; r += 32) {
            T y = a(r, j);
#pragma unroll
            for (int u = 0; u < each; ++u)  // beyond the last: read it again, do not store
                dot[u] = fma_(conj(a(r, min_(i + u, j))), y, dot[u]);
        }
#pragma unroll
        for (int u = 0; u < each; ++u) {
            dot[u] = lane_sum<32>(dot[u]);
            if (lane == 0 && i + u < j) gram[i + u + j * NB] = dot[u];
        }
    }
    __syncthreads();
    if (threadIdx.x < 32)
        for (int j = 0; j < a.cols; ++j) {
            T sum = zero<T>(), scalar = scalars[j];
            for (int l = lane; l < j; ++l) sum = fma_(factor[lane + l * NB], gram[l + j * NB], sum);
            factor[lane + j * NB] = lane < j ? -(scalar * sum) : lane == j ? scalar : zero<T>();
            __syncwarp();
        }
    __syncthreads();
    each_entry(out, [&](int i, int j) { out(i, j) = factor[i + j * NB]; });
}

// Write the identity, cut off to the size of the matrix.
template <class Source> __device__ void identity(Source source) {
    Matrix<T> a = source(blockIdx.x);
    each_entry(a, [&](int i, int j) { a(i, j) = i == j ? one<T>() : zero<T>(); });
}

// to = the upper triangle of the leading part of a, divided by 2^exponent; zeros below.
template <class Source> __device__ void upper(Source source, Source target, const int *exponents) {
    Matrix<T> a = source(blockIdx.x), to = target(blockIdx.x);
    R scale = exponents ? power_of_two<R>(-exponents[blockIdx.x]) : R(1);
    each_entry(to, [&](int i, int j) { to(i, j) = i <= j ? scale * a(i, j) : zero<T>(); });
}

// Conjugate the columns of v and divide them by the singular values that exceed relative[b] times
// the largest; clear all other columns. `rank` becomes the number of divided columns.
template <template <class> class Source>
__device__ void divide(Source<T> source, Source<R> values, const R *relative, int *rank) {
    Matrix<T> v = source(blockIdx.x);
    Matrix<R> s = values(blockIdx.x);
    R least = s.rows ? relative[blockIdx.x] * s(0, 0) : R(0);
    for (int j = threadIdx.x / 32; j < v.cols; j += blockDim.x / 32) {
        R value = s(j, 0), inverse = value <= least ? R(0) : 1 / value;  // NaN stays
        for (int i = threadIdx.x % 32; i < v.rows; i += 32) v(i, j) = inverse * conj(v(i, j));
    }
    if (threadIdx.x == 0) {
        int count = 0;
        while (count < s.rows && s(count, 0) > least) ++count;
        rank[blockIdx.x] = count;
    }
}

#define RESCALE(name, Source) \
    extern "C" __global__ void __launch_bounds__(qr_threads) \
        name(Source<T> a, int *exponents, int *info) { \
        rescale(a, exponents, info); \
    }
#define ENTRY RESCALE

ENTRY(rescale_native, Native)
ENTRY(rescale_batched, Batched)
ENTRY(rescale_vbatched, Vbatched)

#define GEQRF(name, Source) \
    extern "C" __global__ void __launch_bounds__(qr_threads) \
        name(Source<T> a, Window part, Source<T> v, Source<T> tau, int staged) { \
        geqrf(a, part, v, tau, staged); \
    }
#undef ENTRY
#define ENTRY GEQRF

ENTRY(geqrf_native, Native)
ENTRY(geqrf_batched, Batched)
ENTRY(geqrf_vbatched, Vbatched)

#define LARFT(name, Source) \
    extern "C" __global__ void __launch_bounds__(qr_threads) \
        name(Source<T> v, Source<T> tau, Source<T> t, int first) { \
        larft(v, tau, t, first); \
    }
#undef ENTRY
#define ENTRY LARFT

ENTRY(larft_native, Native)
ENTRY(larft_batched, Batched)
ENTRY(larft_vbatched, Vbatched)

#define IDENTITY(name, Source) \
    extern "C" __global__ void __launch_bounds__(qr_threads) name(Source<T> a) { identity(a); }
#undef ENTRY
#define ENTRY IDENTITY

ENTRY(identity_native, Native)
ENTRY(identity_batched, Batched)
ENTRY(identity_vbatched, Vbatched)

#define UPPER(name, Source) \
    extern "C" __global__ void __launch_bounds__(qr_threads) \
        name(Source<T> a, Source<T> to, const int *exponents) { \
        upper(a, to, exponents); \
    }
#undef ENTRY
#define ENTRY UPPER

ENTRY(upper_native, Native)
ENTRY(upper_batched, Batched)
ENTRY(upper_vbatched, Vbatched)

#define DIVIDE(name, Source) \
    extern "C" __global__ void __launch_bounds__(qr_threads) \
        name(Source<T> v, Source<R> s, const R *relative, int *rank) { \
        divide(v, s, relative, rank); \
    }
#undef ENTRY
#define ENTRY DIVIDE

ENTRY(divide_native, Native)
ENTRY(divide_batched, Batched)
ENTRY(divide_vbatched, Vbatched)
