// The blocks of order 1 and 2 on the diagonal of D, in L·D·Lᴴ, and their inverses.
//
// D(j,j) is diagonal[j]; D(j+1,j) is coupling[j], zero unless columns j and j + 1 are a 2×2 pivot;
// D(j,j+1) is its conjugate, or without ADJOINT the same. A block is divided by its off-diagonal
// entry before its determinant is formed, so that it does not overflow (LAPACK's sytf2).
#pragma once
#include "dense/getf2.cuh"
#include "sparse/front.cuh"

// The entry on the other side of the diagonal.
template <class T> __device__ inline T mirrored(T a) {
    if constexpr (conjugates) return conj(a);
    else return a;
}

// [first, above; below, second] = [a, b̄; b, g]⁻¹.
template <class T> struct BlockInverse {
    T first, second, below, above;

    __device__ BlockInverse(T a, T b, T g) {
        T x = pivot_reciprocal(b), y = mirrored(x), down = g * x, up = a * y;
        T scale = pivot_reciprocal(fma_(down, up, -one<T>()));
        first = down * (scale * y), second = up * (scale * x), below = -(scale * y),
        above = -(scale * x);
    }
};

// Entry j of the diagonal of L or D, or the reciprocal of that of U.
// SIGNED: return whether a pivot has its sign, if that is not 0, and a safe reciprocal.
template <class T> __device__ inline bool has_sign(T pivot, int sign) {
    real_t<T> d = real(pivot);
    return (sign ? sign * d : abs1(d)) >= least_pivot<real_t<T>>();
}

template <class T> __device__ inline T kept_pivot(const Front<T> &f, int j) {
    int i = j / FRONT_TILE, r = j % FRONT_TILE;
    if (LU) return f.inverse(i, true)(r, r);
    if (f.inverted()) return from_real<T>(pivot_reciprocal(real(f.inverse(0)(j, j))));
    return f.lower(i)(r, j);
}

// A pivot as stored in D: real for L·D·Lᴴ.
template <class T> __device__ inline T pivot_value(T a) {
    if constexpr (conjugates) return from_real<T>(real(a));
    else return a;
}

// Return a pivot that is too small, enlarged to `size`, with its sign.
template <class T> __device__ inline T enlarged(T a, real_t<T> size) {
    real_t<T> own = abs1(a);
    return own < least_pivot<real_t<T>>() ? from_real<T>(size) : (size * pivot_reciprocal(own)) * a;
}

// (v·D⁻¹)(c) = own·v(c) + other·v(partner).
template <class T> struct ColumnInverse {
    T own, other;
    int partner;

    // Set this thread's column of a tile from the tile's parts of D.
    __device__ void set(const T *diagonal, const T *coupling) {
        int c = threadIdx.x;  // the common inputs are loaded together
        T here = diagonal[c], next = coupling[c], before = c > 0 ? coupling[c - 1] : zero<T>();
        partner = c, other = zero<T>();
        if (!(next == zero<T>())) {
            BlockInverse<T> block(here, next, diagonal[c + 1]);
            own = block.first, other = block.below, partner = c + 1;
        } else if (!(before == zero<T>())) {
            BlockInverse<T> block(diagonal[c - 1], before, here);
            own = block.second, other = block.above, partner = c - 1;
        } else own = pivot_reciprocal(here);
    }
};

// The bits of a magnitude, ordered like magnitudes; NaN exceeds all.
__device__ inline unsigned size_bits(float a) { return __float_as_uint(a) & 0x7fffffffu; }
template <class T> __device__ inline unsigned size_of(T a) { return size_bits((float)abs1(a)); }
