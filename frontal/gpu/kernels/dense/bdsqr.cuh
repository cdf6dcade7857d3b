// SVD of an upper bidiagonal matrix by implicit QR iterations, with or without a shift.
//
// A warp chases bulges and stores the rotations of a sweep for other warps to apply. Entries of at
// most one rounding of the largest count as zero. A block is swept towards its smaller end; an
// upward sweep is the mirror image of a downward one, with left and right exchanged.
// Golub, Kahan, "Calculating the singular values and pseudo-inverse of a matrix" (1965); Demmel,
// Kahan, "Accurate singular values of bidiagonal matrices" (1990).
#pragma once
#include "dense/potf2.cuh"
#include "dense/reduce.cuh"

// A sweep over rows and columns lo…hi of a block, from hi to lo if `up`; no block is left if !more.
struct Sweep {
    int lo, hi, up, more;
};

// r, and c = f·inverse and s = g·inverse, with (c·f + s·g, c·g − s·f) = (r, 0). Rotated entries can
// be multiplied by f and g, scaled as stored here, before the inverse is available.
template <class R> struct Givens {
    R f, g, inverse, r;
    __device__ R c() const { return f * inverse; }
    __device__ R s() const { return g * inverse; }
};
template <class R> __device__ inline Givens<R> givens(R f, R g) {
    constexpr R small = limits<R>::least / limits<R>::epsilon;
    R sum = fma_(f, f, g * g), up = 1;
    if (sum < small) {  // entries of at most 2^-490, or 2^-50, of the largest
        up = power_of_two<R>(limits<R>::scaled / 2 + (sizeof(R) == 8 ? 300 : 30));
        f = up * f, g = up * g, sum = fma_(f, f, g * g);
        if (sum < small) return {1, 0, 1, f / up};
    }
    R inverse, root = pivot_root(sum, inverse);
    return {f, g, inverse, root / up};
}

// Return the smaller singular value of [f g; 0 h].
template <class R> __device__ inline R smaller_value(R f, R g, R h) {
    f = abs1(f), g = abs1(g), h = abs1(h);
    R low = f < h ? f : h, high = f < h ? h : f;
    if (low == 0) return 0;
    R as = 1 + low / high, at = (high - low) / high;
    if (g < high) {
        R au = (g / high) * (g / high);
        return low * (2 / (square_root(fma_(as, as, au)) + square_root(fma_(at, at, au))));
    }
    R au = high / g;
    if (au == 0) return low * high / g;
    as = as * au, at = at * au;
    R c = 1 / (square_root(fma_(as, as, R(1))) + square_root(fma_(at, at, R(1))));
    return 2 * (low * c * au);
}

// Return the last index of 0…top for which (|e| > threshold) == wanted, or -1. By a warp.
template <class R> __device__ inline int last_entry(const R *e, int top, R threshold, bool wanted) {
    int lane = threadIdx.x % 32;
    for (; top >= 0; top -= 32) {
        bool is = top - lane >= 0 && (abs1(e[max_(top - lane, 0)]) > threshold) == wanted;
        unsigned votes = __ballot_sync(full_warp, is);
        if (votes) return top - (__ffs((int)votes) - 1);
    }
    return -1;
}

// Return the block of n rows of d and e to sweep next: the last one. By a warp.
template <class R>
__device__ inline Sweep next_block(const R *d, const R *e, int n, R threshold, Sweep before) {
    int hi = last_entry(e, n - 2, threshold, true) + 1;
    if (hi == 0) return {0, 0, 0, 0};
    int lo = last_entry(e, hi - 2, threshold, false) + 1;
    // The direction of a block is kept: a sweep the other way would undo earlier progress.
    bool apart = before.more == 0 || lo > before.hi || hi < before.lo;
    int up = apart ? int(abs1(d[lo]) < abs1(d[hi])) : before.up;
    __syncwarp();  // all lanes have read the entries that are written next
    return {lo, hi, up, 1};
}

// Rotations of a sweep of at most n pairs of columns, in the order of the sweep: sides 0 and 1 are
// V and U, or U and V in an upward sweep.
template <class R> struct Rotations {
    R *first;
    int n;
    __device__ R *c(int side) const { return first + 2 * side * n; }
    __device__ R *s(int side) const { return first + (2 * side + 1) * n; }
};

// Return the shift of a sweep from d0 on: the smaller singular value of the last two rows, or 0 if
// the shift would make no difference.
template <class R> __device__ inline R shift_of(R d0, R before, R off, R last, R threshold) {
    if (abs1(d0) <= threshold) return 0;
    R shift = smaller_value(before, off, last), ratio = shift / abs1(d0);
    return ratio * ratio < limits<R>::epsilon ? R(0) : shift;
}

// Sweep with a shift; the first rotation combines f and E[0]. The entries of the next rows are read
// before those of this row are written, and products with f and g are formed before the inverse is
// known: the chain from rotation to rotation determines the time of a sweep.
template <class R>
__device__ inline void chase_with_shift(R *D, R *E, int count, int step, R f, Rotations<R> out) {
    R dk = D[0], ek = E[0], g = ek, dn = D[step], en = count > 1 ? E[step] : R(0);
    for (int k = 0; k < count; ++k) {
        bool more = k + 1 < count;
        R dnn = more ? D[(k + 2) * step] : R(0), enn = k + 2 < count ? E[(k + 2) * step] : R(0);
        Givens<R> right = givens(f, g);
        R sum = fma_(right.f, dk, right.g * ek), rest = fma_(right.f, ek, -right.g * dk);
        R below = right.g * dn, beside = right.f * dn;
        f = sum * right.inverse, ek = rest * right.inverse, dn = beside * right.inverse;
        Givens<R> left = givens(f, below * right.inverse);
        sum = fma_(left.f, ek, left.g * dn), rest = fma_(left.f, dn, -left.g * ek);
        below = left.g * en, beside = left.f * en;
        f = sum * left.inverse, g = below * left.inverse;
        if (k) E[(k - 1) * step] = right.r;
        D[k * step] = left.r;
        out.c(0)[k] = right.c(), out.s(0)[k] = right.s();
        out.c(1)[k] = left.c(), out.s(1)[k] = left.s();
        dk = rest * left.inverse, ek = beside * left.inverse, dn = dnn, en = enn;
    }
    D[count * step] = dk, E[(count - 1) * step] = f;
}

// Sweep a block of more than one row. By one thread.
template <class R> __device__ void chase(R *d, R *e, Sweep of, R threshold, Rotations<R> out) {
    int count = of.hi - of.lo, step = of.up ? -1 : 1;
    R *D = d + (of.up ? of.hi : of.lo), *E = e + (of.up ? of.hi - 1 : of.lo);
    R *last = D + count * step, *off = E + (count - 1) * step;
    R dk = D[0], ek = E[0], shift = shift_of(dk, last[-step], *off, *last, threshold);
    if (shift > 0) {
        R first = (abs1(dk) - shift) * ((dk < 0 ? -1 : 1) + shift / dk);
        chase_with_shift(D, E, count, step, first, out);
        return;
    }
    R c = 1, oldc = 1, olds = 0;
    for (int k = 0; k < count; ++k) {
        R dn = D[(k + 1) * step], en = k + 1 < count ? E[(k + 1) * step] : R(0);
        Givens<R> right = givens(dk * c, ek);
        c = right.c();
        R before = olds * right.r;
        Givens<R> left = givens(oldc * right.r, dn * right.s());
        oldc = left.c(), olds = left.s();
        if (k) E[(k - 1) * step] = before;
        D[k * step] = left.r;
        out.c(0)[k] = c, out.s(0)[k] = right.s();
        out.c(1)[k] = oldc, out.s(1)[k] = olds;
        dk = dn, ek = en;
    }
    *last = dk * c * oldc, *off = dk * c * olds;
}

// Up to SWEEPS sweeps of one direction, in their order. Sweep q has its 4·n rotation reals at
// 4·n·q.
constexpr int SWEEPS = 4;
struct Sweeps {
    Sweep each[SWEEPS];
    int count;
};

// Rotate the columns of one row of a matrix, row[j·ld], by all sweeps in one pass: each sweep is
// one pair of columns behind the previous one, so that a window of columns stays in registers.
// `side` selects the rotations.
template <class R>
__device__ inline void rotate_row(
    R *row, int ld, const Sweeps &by, const R *rotations, int n, int side) {
    int lo = by.each[0].lo, hi = by.each[0].hi, up = by.each[0].up;
    for (int q = 1; q < by.count; ++q) lo = min_(lo, by.each[q].lo), hi = max_(hi, by.each[q].hi);
    int first[SWEEPS], last[SWEEPS], length = hi - lo;
#pragma unroll
    for (int q = 0; q < SWEEPS; ++q) {  // pairs, counted from the end where sweeps begin
        const Sweep &of = by.each[q];
        first[q] = q < by.count ? (up ? hi - of.hi : of.lo - lo) : 0;
        last[q] = q < by.count ? first[q] + of.hi - of.lo : 0;
    }
    long long step = up ? -(long long)ld : ld;
    R *at = row + (up ? hi : lo) * (long long)ld, window[SWEEPS + 1] = {};
    window[1] = at[0];
    constexpr int ahead = 4;  // pending reads
    for (int t0 = 0; t0 < length + SWEEPS; t0 += ahead) {
        R next[ahead];
#pragma unroll
        for (int b = 0; b < ahead; ++b) next[b] = t0 + b < length ? at[(t0 + b + 1) * step] : R(0);
#pragma unroll
        for (int b = 0; b < ahead; ++b) {
            int t = t0 + b;
            window[0] = next[b];
#pragma unroll
            for (int q = 0; q < SWEEPS; ++q) {
                int pair = t - q;
                if (pair < first[q] || pair >= last[q]) continue;
                const R *c = rotations + (4 * q + 2 * side) * n + pair - first[q];
                R x = window[q + 1], y = window[q];
                window[q + 1] = fma_(c[0], x, c[n] * y), window[q] = fma_(c[0], y, -c[n] * x);
            }
            if (t + 1 >= SWEEPS && t + 1 - SWEEPS <= length)
                at[(t + 1 - SWEEPS) * step] = window[SWEEPS];
#pragma unroll
            for (int q = SWEEPS; q > 0; --q) window[q] = window[q - 1];
        }
    }
}
