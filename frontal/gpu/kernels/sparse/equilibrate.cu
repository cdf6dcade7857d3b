// Powers of two that bring the largest entry of each row and column of A near 1, with the bits of
// symbolic/equilibrate.py; and the scaled values, with statistics of their spread.
//
// Separate rows and columns: equilibrate_rows, _columns, _powers, with integer exponents. Symmetric
// scaling: repeated equilibrate_sweep, then _mean, with sums of doubles; fused operations give the
// same bits, because products with powers of two are exact. Maxima do not depend on the order of
// threads. Scalings are by Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in
// matrices" (2001).
//
// Each entry point states what a team of threads or a thread owns, and the static shared memory of
// a block; blocks do not wait for each other.
#include "sparse/rows.cuh"

#ifndef NARROW
#define NARROW 0
#endif

using Bits = unsigned long long;
using Exponent = long long;

// The scalar type of the scaled values: T or, if NARROW, its single-precision counterpart.
template <class S> struct single_of {
    using type = float;
};
template <class R> struct single_of<complex<R>> {
    using type = complex<float>;
};
template <bool Narrow, class S> struct out_of {
    using type = S;
};
template <class S> struct out_of<true, S> {
    using type = typename single_of<S>::type;
};
using Out = out_of<NARROW, T>::type;

constexpr Exponent FRACTION = (1ll << 52) - 1, ENDLESS = 0x7ffll << 52, ROOT = 0x6a09e667f3bcd,
                   NONE = -(1 << 20), ONE = 0x3ffll << 52;
constexpr int LARGEST = 1022, BIAS = 1 << 20;
constexpr double FAR = 0x1p-10, NEAR = 0.5;

// The larger of |re| and |im|.
template <class S> __device__ inline double larger_part(S a) {
    if constexpr (is_complex<S>) return fmax(fabs((double)a.re), fabs((double)a.im));
    else return fabs((double)a);
}
// Return the bits of a positive number with a full fraction: negative for small subnormal numbers.
__device__ inline Exponent normal(Exponent bits) {
    if (bits > FRACTION) return bits;
    int places = __clzll(bits) - 11;
    return (bits << places) - ((Exponent)places << 52);
}
// Return the exponent of the power of two nearest to |a|, NONE for zero.
__device__ inline Exponent exponent_of(double size) {
    Exponent bits = __double_as_longlong(size);
    if (bits >= ENDLESS) return bits == ENDLESS ? 0 : NONE;
    if (bits == 0) return NONE;
    bits = normal(bits);
    return (bits >> 52) - 1022 - ((bits & FRACTION) < ROOT);
}
__device__ inline double nothing() { return __longlong_as_double(-(1ll << 52)); }  // -infinity
// Return the logarithm to base 2, with an error of at most 0.09; -infinity for zero, infinity and
// NaN.
__device__ inline double logarithm(double size) {
    Exponent bits = __double_as_longlong(size);
    if (bits <= 0 || bits >= ENDLESS) return nothing();
    return (double)normal(bits) * 0x1p-52 - 1023;
}
// Return the bits of 2^exponent, limited so that the inverse is a normal number, too.
__device__ inline Exponent power(Exponent exponent) {
    exponent = exponent < -LARGEST ? -LARGEST : exponent > LARGEST ? LARGEST : exponent;
    return ONE + exponent * (1ll << 52);
}
__device__ inline Exponent begun(const Exponent *begin, long long i) {
    return begin ? begin[i] : 0;
}

// Write the maxima of a block's threads to out[i], i < N. Static shared memory: N of them.
template <int N> __device__ __forceinline__ void collect(const Bits (&own)[N], Bits *out) {
    __shared__ Bits best[N];
    if (threadIdx.x < N) best[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (own[i]) atomicMax(&best[i], own[i]);
    __syncthreads();
    if (threadIdx.x < N) atomicMax(&out[threadIdx.x], best[threadIdx.x]);
}

template <class S> __device__ inline S largest_of_team(S a, int lanes) {
    for (int flip = lanes / 2; flip > 0; flip /= 2) {
        S other = __shfl_xor_sync(~0u, a, flip);
        a = other > a ? other : a;
    }
    return a;
}

// row[i], zero at first: BIAS + the exponent of the largest entry of row i, of the values with
// their initial scaling; 0 if all are zero. Tile map: a team per column.
extern "C" __global__ void __launch_bounds__(threads)
    equilibrate_rows(int n, int lanes, const Position *pointer, const int *index, const T *values,
        const Exponent *row_begin, const Exponent *column_begin, Bits *row) {
    Teams team(lanes);
    for (; team.row < n; team.row += team.step)
        for (long long p = pointer[team.row] + team.lane; p < pointer[team.row + 1]; p += lanes) {
            Exponent size = exponent_of(larger_part(values[p])) + begun(row_begin, index[p]) +
                            begun(column_begin, team.row);
            if (size > NONE / 2) atomicMax(row + index[p], (Bits)(BIAS + size));
        }
}

// Return the exponent by which equilibrate_rows scales row i down.
__device__ inline Exponent gain(const Bits *row, long long i) {
    Bits found = row[i];
    return found ? (Exponent)found - BIAS : 0;
}

// column[j]: the exponent of column j's scaling; extremes, zero at first: the largest row exponent
// and the largest negated one, then those of columns, each plus BIAS. Tile map: a team per column;
// a thread owns rows. Static shared memory: four maxima.
extern "C" __global__ void __launch_bounds__(threads) equilibrate_columns(int n, int lanes,
    const Position *pointer, const int *index, const T *values, const Exponent *row_begin,
    const Exponent *column_begin, const Bits *row, Exponent *column, Bits *extremes) {
    Bits best[4] = {};
    auto note = [&](int side, Exponent found) {
        Bits high = (Bits)(BIAS + found), low = (Bits)(BIAS - found);
        best[2 * side] = high > best[2 * side] ? high : best[2 * side];
        best[2 * side + 1] = low > best[2 * side + 1] ? low : best[2 * side + 1];
    };
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads)
        note(0, begun(row_begin, i) - gain(row, i));
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        bool there = team.row < n;
        long long begin = there ? pointer[team.row] : 0, end = there ? pointer[team.row + 1] : 0;
        Exponent own = there ? begun(column_begin, team.row) : 0, largest = NONE;
#pragma unroll UNROLLED
        for (long long p = begin + team.lane; p < end; p += lanes) {
            long long i = index[p];
            Exponent size =
                exponent_of(larger_part(values[p])) + begun(row_begin, i) + own - gain(row, i);
            largest = size > largest ? size : largest;
        }
        largest = largest_of_team(largest, lanes);
        if (!there || team.lane) continue;
        column[team.row] = own - (largest > NONE / 2 ? largest : 0);
        note(1, column[team.row]);
    }
    collect(best, extremes);
}

// Replace both exponents by powers of two, in place; if they are too large, a common shift moves a
// part of one side's exponents to the other. A thread owns rows and columns.
extern "C" __global__ void __launch_bounds__(threads) equilibrate_powers(
    int n, const Exponent *row_begin, Bits *row, Exponent *column, const Bits *extremes) {
    Exponent largest = (Exponent)extremes[0] - BIAS, least = BIAS - (Exponent)extremes[1],
             highest = (Exponent)extremes[2] - BIAS, lowest = BIAS - (Exponent)extremes[3];
    bool large = largest > LARGEST || -least > LARGEST || highest > LARGEST || -lowest > LARGEST;
    Exponent shift = large ? (largest + least - highest - lowest) >> 2 : 0;
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads) {
        row[i] = (Bits)power(begun(row_begin, i) - gain(row, i) - shift);
        column[i] = power(column[i] + shift);
    }
}

// to = from minus half of the logarithm of each column's largest entry so scaled; a null `from`
// counts as zeros. far[turn], zero at first, becomes the largest change; after a turn below NEAR
// nothing changes. Tile map: a team per column; static shared memory: a maximum.
extern "C" __global__ void __launch_bounds__(threads)
    equilibrate_sweep(int n, int lanes, const Position *pointer, const int *index, const T *values,
        const double *from, double *to, Bits *far, int turn) {
    bool over = turn > 0 && __longlong_as_double((long long)far[turn - 1]) < NEAR;
    Bits best[1] = {};
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        bool there = team.row < n;
        bool read = there && !over;
        long long begin = read ? pointer[team.row] : 0, end = read ? pointer[team.row + 1] : 0;
        double own = there && from ? from[team.row] : 0, largest = nothing();
#pragma unroll UNROLLED
        for (long long p = begin + team.lane; p < end; p += lanes) {
            double size = logarithm(larger_part(values[p])) + (from ? from[index[p]] : 0);
            largest = size > largest ? size : largest;
        }
        largest = largest_of_team(largest, lanes);
        if (!there || team.lane) continue;
        double off = largest > nothing() ? 0.5 * (largest + own) : 0;
        to[team.row] = own - off;
        Bits size = (Bits)__double_as_longlong(fabs(off));
        best[0] = size > best[0] ? size : best[0];
    }
    collect(best, far + turn);
}

// scale[i]: the power of two nearest to 2^exponent[i]. A thread owns rows.
extern "C" __global__ void __launch_bounds__(threads)
    equilibrate_mean(int n, const double *exponent, Exponent *scale) {
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads)
        scale[i] = power((Exponent)rint(exponent[i]));
}

// a·first·last in double precision, then converted.
template <class To, class From> __device__ inline To twice(double first, double last, From a) {
    if constexpr (is_complex<From>) {
        using Part = real_t<To>;
        return To{(Part)(first * a.re * last), (Part)(first * a.im * last)};
    } else return (To)(first * a * last);
}
// a·2^e, rounded once, for powers of two whose product 2^e may overflow or underflow.
__device__ inline Out scaled(double row, double column, T a) {
    Exponent e =
        (__double_as_longlong(row) >> 52) + (__double_as_longlong(column) >> 52) - 2 * 1023;
    if (e >= -LARGEST && e <= LARGEST) return times<Out>(row * column, a);
    // The product with the first factor is exact, or the result is no number.
    double first = __longlong_as_double(power(e > 0 ? e - LARGEST : e + LARGEST));
    return twice<Out>(first, e > 0 ? 0x1p1022 : 0x1p-1022, a);
}

// out = diag(row) A diag(column), values by columns. told, zero at first: the number of nonzero
// entries far below 1, and the largest distance of the bits of a diagonal entry from those of 1.
// Tile map: a team per column. Static shared memory: a number and a maximum.
extern "C" __global__ void __launch_bounds__(threads)
    equilibrate_values(int n, int lanes, const Position *pointer, const int *index,
        const double *row, const double *column, const T *values, Out *out, Bits *told) {
    __shared__ unsigned far;
    if (threadIdx.x == 0) far = 0;
    unsigned mine = 0;
    Bits best[1] = {};
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        bool there = team.row < n;
        long long begin = there ? pointer[team.row] : 0, end = there ? pointer[team.row + 1] : 0;
        double by = there ? column[team.row] : 1, diagonal = 0;
        for (long long p = begin + team.lane; p < end; p += lanes) {
            T a = values[p];
            double factor = row[index[p]], size = larger_part(a), product = size * factor * by;
            out[p] = scaled(factor, by, a);
            mine += size > 0 && product < FAR;
            if (index[p] == team.row) diagonal = product;
        }
        diagonal = largest_of_team(diagonal, lanes);
        if (!there || team.lane) continue;
        Exponent under = ONE - __double_as_longlong(diagonal);
        if (under > 0 && (Bits)under > best[0]) best[0] = (Bits)under;
    }
    collect(best, told + 1);
    if (mine) atomicAdd(&far, mine);
    __syncthreads();
    if (threadIdx.x == 0 && far) atomicAdd(told, (Bits)far);
}
