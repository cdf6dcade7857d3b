// Residuals of op(A) X = B, with the norms for the acceptance of X.
#pragma once
#include "sparse/norms.cuh"
#include "sparse/row_error.cuh"
#include "sparse/rows.cuh"

// r = b - op(A) x, and maxima over rows of q = 0: |r|, 2: |b|, 3: |r| / (|op(A)||x| + |b|), 4:
// rowwise errors, and of the row sums of |op(A)|, which also go to `sums` unless it is null.
// Precondition: q = 1 holds the largest |x| (system_peak).
//
// Tile map: a team of threads takes a row of op(A) and C columns of `width` from C·blockIdx.y on,
// so that A is read once for them. Sums of a row have a fixed order for any grid. Static shared
// memory: 4C + 1 norms.
template <int C, bool MIRROR>
__device__ __forceinline__ void residual_of(int s, int flags, int order, int count, int width,
    int lanes, const Position *pointer, const int *index, const Position *position, const T *values,
    const V *x, const V *b, V *r, double *sums, Bits *norms) {
    int first = C * blockIdx.y, columns = min_(C, width - first);
    long long n = (long long)order * count;
    auto place = [=](int c, int q) { return (5ll * (first + c) + q) * count + s; };
    Bits best[4 * C + 1] = {};
    R largest[C];
#pragma unroll
    for (int c = 0; c < C; ++c)
        largest[c] = c < columns ? (R)__longlong_as_double((long long)norms[place(c, 1)]) : 0;
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(order); ++round, team.row += team.step) {
        bool there = team.row < order;
        long long row = (long long)s * order + team.row;
        long long begin = there ? pointer[row] : 0, end = there ? pointer[row + 1] : 0;
        V sum[C];
        R size[C], norm = 0;
#pragma unroll
        for (int c = 0; c < C; ++c) sum[c] = zero<V>(), size[c] = 0;
#pragma unroll(C == 1 ? UNROLLED : 1)
        for (long long p = begin + team.lane; p < end; p += lanes) {
            long long at = p;
            if (MIRROR) at = mirrored_place(pointer, index, (int)row, begin, p);
            else if (position) at = position[p];
            V a = as<V>(values[at]);
            if (flags & CONJUGATED) a = conj(a);
            R magnitude = modulus(a);
            norm += magnitude;
            const V *entry = x + first * n + index[p];
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (c < columns) {
                    V other = entry[c * n];
                    sum[c] = fma_(a, other, sum[c]);
                    size[c] = fma_(magnitude, modulus(other), size[c]);
                }
        }
        norm = sum_of_team(norm, lanes);
#pragma unroll
        for (int c = 0; c < C; ++c)
            sum[c] = sum_of_team(sum[c], lanes), size[c] = sum_of_team(size[c], lanes);
        if (!there || team.lane) continue;
        best[4 * C] = max(best[4 * C], wide(bits(norm)));
        if (sums && first == 0) sums[row] = norm;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (c >= columns) continue;
            long long i = (first + c) * n + row;
            V rest = b[i] - sum[c];
            R left = modulus(rest), given = modulus(b[i]);
            r[i] = rest;
            double scale = (double)size[c] + given, component = left == 0 ? 0 : left / scale;
            double error =
                row_error<V>(component, left, scale, given, norm, largest[c], end - begin, order);
            best[c] = max(best[c], wide(bits(left)));
            best[C + c] = max(best[C + c], wide(bits(given)));
            best[2 * C + c] = max(best[2 * C + c], bits(component));
            best[3 * C + c] = max(best[3 * C + c], bits(error));
        }
    }
    collect(best, norms, [=](int i) {
        if (i == 4 * C) return 5ll * width * count + s;
        int c = i % C, q = i / C;
        return c < columns ? place(c, q ? q + 1 : 0) : -1ll;
    });
}

template <int C, class... Given>
__device__ __forceinline__ void residual(int flags, int order, int count, Given... given) {
    for (int s = blockIdx.z; s < count; s += gridDim.z)
        if (flags & MIRRORED) residual_of<C, true>(s, flags, order, count, given...);
        else residual_of<C, false>(s, flags, order, count, given...);
}
