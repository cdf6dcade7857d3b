// The assembly tree on the device, and where the blocks of its fronts lie.
//
// Front s has k pivot columns and m update rows (plan.Plan). Rows are cut into tiles of FRONT_TILE:
// ⌈k/64⌉ tiles of pivot rows, then ⌈m/64⌉ tiles of update rows that begin at a tile of their own.
//   panel         of LU: L11 and U11 above L21, column-major; L21 begins at row padded(k)
//                 without LU: L21, m×k, then L11 by rows of tiles, each of them column-major, of as
//                 many columns as it has up to its diagonal tile, and one more; with D, L11 has its
//                 diagonal in the place of the ones
//                 all parts and columns begin at multiples of 16 bytes
//   upper panel   LU only, behind it: the transpose of U12, m×k
//   inverses      of the diagonal tiles of L11, lower triangles. Without LU they are folded into
//                 what the tile has free above its diagonal and one more column, so that columns
//                 stay columns (`folded`). Of LU they take the place of the tile, which can be told
//                 of them: that of L, without its ones, and folded that of the transpose of U. Of
//                 L·Lᴴ the only one takes the place of L11, column by column, with nothing above
//                 its diagonal
//   contribution  without LU: block columns of 64 columns, each from its diagonal tile down, one
//                 after the other; of LU the whole m×m block
// Fronts and contribution blocks: Duff, Reid, "The multifrontal solution of indefinite sparse
// symmetric linear equations" (1983); Liu, "The multifrontal method for sparse matrix solution:
// theory and practice" (1992). Inverses of diagonal tiles for the solves: Raghavan, "Efficient
// parallel sparse triangular solution using selective inversion" (1998).
#pragma once
#include "common/matrix.cuh"
#include "sparse/structs.cuh"

// The method: L·U, or L·D·Lᴴ (L·D·Lᵀ without ADJOINT) with blocks of order 1 and 2 on the diagonal
// of D, or else L·Lᴴ.
#ifndef LU
#define LU 0
#endif
#ifndef LDL
#define LDL 0
#endif
#ifndef ADJOINT
#define ADJOINT 1
#endif
constexpr bool CHOLESKY = !LU && !LDL;
constexpr bool conjugates = !LU && ADJOINT;  // whether the second factor is the adjoint of L

__device__ inline int pivots_of(const Fronts &f, int s) { return f.start[s + 1] - f.start[s]; }
__device__ inline int updates_of(const Fronts &f, int s) {
    return (int)(f.pointer[s + 1] - f.pointer[s]);
}

template <class T> __device__ constexpr int padded(int n) {
    constexpr int wide = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    return (n + wide - 1) / wide * wide;
}

// A lower triangle: of a matrix; or, of L·Lᴴ if it is `packed`, its columns one after the other.
template <class T> struct Triangle {
    T *data;
    int rows, ld;
    bool packed = false;

    // What less there is from a column to the next one than from that before.
    __device__ int shrinks() const { return CHOLESKY && packed; }
    // Where a column begins, less its rows above the diagonal.
    __device__ int column(int c) const { return c * ld - shrinks() * (c * (c - 1) / 2); }
    __device__ T &operator()(int r, int c) const { return data[r + column(c)]; }
};

// Places in a row of a triangle, every N-th.
template <int N, class T> struct AlongRow {
    T *at;
    int step, less;

    __device__ AlongRow(const Triangle<T> &of, int r, int c)
        : at(of.data + r + of.column(c)),
          step(N * of.ld - of.shrinks() * (N * c + N * (N - 1) / 2)), less(N * N * of.shrinks()) {}
    __device__ void advance() { at += step, step -= less; }
};

// The inverse of the diagonal tile of a row of tiles of L11. Column c of it is above the diagonal in
// column w−c of the tile, of w columns, where L has nothing: its entry (r, c) in row r−c.
template <class T> __device__ inline Triangle<T> folded(Matrix<T> row) {
    return {row.data + row.cols * row.ld, row.rows, -(row.ld + 1)};
}
// The same in the place of L11, of w columns, of L·Lᴴ.
template <class T> __device__ inline Triangle<T> packed_inverse(T *own, int w) {
    return {own, w, w - 1, true};
}

// The inverses of LU in a diagonal tile of w columns: of L, with ones on the diagonal that are not
// there, or `upper` of the transpose of U, which begins in the last column.
template <class T>
__device__ inline Triangle<T> inverse_within(T *tile, int w, int ld, bool upper) {
    return upper ? folded(Matrix<T>{tile, w, w - 1, ld}) : Triangle<T>{tile, w, ld};
}

// The blocks of one front.
template <class T> struct Front {
    int s, k, m, pivot_tiles, update_tiles;
    T *panel;
    const Fronts *tree;

    __device__ void set(const Fronts &f, int front, T *factor) {
        s = front, tree = &f;
        set(pivots_of(f, s), updates_of(f, s), factor + f.panel[s]);
    }
    __device__ void set(int pivots, int updates, T *at) {
        k = pivots, m = updates, panel = at;
        pivot_tiles = ceil_div(k, FRONT_TILE), update_tiles = ceil_div(m, FRONT_TILE);
    }

    // Of tile row i of L, and of the upper panel.
    __device__ int ld(int i) const {
        return padded<T>(LU ? padded<T>(k) + m : i < pivot_tiles ? rows(i) : m);
    }
    __device__ int upper_ld() const { return padded<T>(m); }
    // Rows in tile t, and the first of them among the front's k + m.
    __device__ int rows(int t) const {
        return min_(
            FRONT_TILE, t < pivot_tiles ? k - FRONT_TILE * t : m - FRONT_TILE * (t - pivot_tiles));
    }
    __device__ int first(int t) const {
        return t < pivot_tiles ? FRONT_TILE * t : k + FRONT_TILE * (t - pivot_tiles);
    }
    // Tile row i of L, all columns that are kept.
    __device__ Matrix<T> lower(int i) const {
        if (i >= pivot_tiles) {
            int first = (LU ? padded<T>(k) : 0) + FRONT_TILE * (i - pivot_tiles);
            return {panel + first, rows(i), k, ld(i)};
        }
        if (LU) return {panel + FRONT_TILE * i, rows(i), k, ld(i)};
        constexpr long long tile = FRONT_TILE * FRONT_TILE;
        T *own = panel + (long long)k * padded<T>(m);
        return {own + tile * (i * (i + 1) / 2) + FRONT_TILE * i, rows(i),
            min_(FRONT_TILE * (i + 1), k), ld(i)};
    }
    // Whether there is the inverse of L11 in its place.
    __device__ bool inverted() const { return CHOLESKY && pivot_tiles == 1; }
    // The inverse of the diagonal tile of a row of tiles of L11, without LU.
    __device__ Triangle<T> inverse(Matrix<T> row) const {
        return inverted() ? packed_inverse(row.data, row.rows) : folded(row);
    }
    // That of diagonal tile i, of LU that of L or `upper` of the transpose of U.
    __device__ Triangle<T> inverse(int i, bool upper = false) const {
        if (!LU) return inverse(lower(i));
        int first = FRONT_TILE * i;
        return inverse_within(panel + first + (long long)first * ld(i), rows(i), ld(i), upper);
    }
    // Tile row i ≥ pivot_tiles of the transpose of U12, all k columns.
    __device__ Matrix<T> upper(int i) const {
        return {
            panel + (long long)k * ld(0) + FRONT_TILE * (i - pivot_tiles), rows(i), k, upper_ld()};
    }
};

// The contribution block of a front with m update rows.
template <class T> struct Contribution {
    T *data;
    int m;

    // Tile (i, j) of it, i ≥ j without LU, counted from 0.
    __device__ Matrix<T> tile(int i, int j) const {
        int rows = min_(FRONT_TILE, m - FRONT_TILE * i),
            cols = min_(FRONT_TILE, m - FRONT_TILE * j);
        return {data + column(j) + (LU ? FRONT_TILE * i : FRONT_TILE * (i - j)), rows, cols, ld(j)};
    }
    // Where column c begins, less its row 0: entry (r, c) is at(c)[r]; r ≥ c without LU.
    __device__ T *at(int c) const {
        int j = c / FRONT_TILE;
        return data + column(j) + (long long)(c - FRONT_TILE * j) * ld(j) -
               (LU ? 0 : FRONT_TILE * j);
    }

  private:
    __device__ int ld(int j) const { return LU ? m : m - FRONT_TILE * j; }
    __device__ long long column(int j) const {
        constexpr long long tile = FRONT_TILE;
        return LU ? tile * j * m : tile * j * m - tile * tile * j * (j - 1) / 2;
    }
};

// What a factorization reports to the host, zero at first: outcome[0] grows with how early in the
// order of elimination the first pivot of Cholesky lies that is not positive.
__device__ inline void report_failure(int *outcome, int position) {
    atomicMax(outcome, NO_POSITION - position);
}
