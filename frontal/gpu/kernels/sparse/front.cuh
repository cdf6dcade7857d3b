// The assembly tree on the device, and the layout of the blocks of its fronts.
//
// Front s has k pivot columns and m update rows (plan.Plan). Rows are cut into tiles of FRONT_TILE:
// ⌈k/64⌉ tiles of pivot rows, then ⌈m/64⌉ tiles of update rows, beginning with a new tile.
//   panel         LU: L11 and U11 above L21, column-major; L21 begins at row padded(k)
//                 without LU: L21, m×k, then L11 by rows of tiles, each of them column-major, with
//                 the columns up to its diagonal tile and one more; with D, the diagonal of D
//                 replaces the ones of L11
//                 all parts and columns begin at multiples of 16 bytes
//   upper panel   LU only, behind the panel: the transpose of U12, m×k
//   inverses      of the diagonal tiles of L11, lower triangles. Without LU they are folded into
//                 the free entries of the tile above its diagonal and one more column, so that
//                 columns stay contiguous (`folded`). With LU they replace the tile, which they
//                 determine: that of L without its ones, and folded that of the transpose of U.
//                 With L·Lᴴ a single one replaces L11, packed by columns without entries above the
//                 diagonal
//   contribution  without LU: block columns of 64 columns, one after the other, each from its
//                 diagonal tile down; LU: the whole m×m block
// Fronts and contribution blocks: Duff, Reid, "The multifrontal solution of indefinite sparse
// symmetric linear equations" (1983); Liu, "The multifrontal method for sparse matrix solution:
// theory and practice" (1992). Inverses of diagonal tiles for the solves: Raghavan, "Efficient
// parallel sparse triangular solution using selective inversion" (1998).
#pragma once
#include "common/matrix.cuh"
#include "sparse/structs.cuh"

// The method: L·U; or L·D·Lᴴ (L·D·Lᵀ without ADJOINT) with diagonal blocks of D of order 1 and 2;
// or else L·Lᴴ.
#ifndef LU
#define LU 0
#endif
#ifndef LDL
#define LDL 0
#endif
#ifndef SIGNED
#define SIGNED 0
#endif
#ifndef ADJOINT
#define ADJOINT 1
#endif
constexpr bool CHOLESKY = !LU && !LDL;
constexpr bool conjugates = !LU && ADJOINT;  // the second factor is the adjoint of L

__device__ inline int pivots_of(const Fronts &f, int s) { return f.start[s + 1] - f.start[s]; }
__device__ inline int updates_of(const Fronts &f, int s) {
    return (int)(f.pointer[s + 1] - f.pointer[s]);
}

template <class T> __device__ constexpr int padded(int n) {
    constexpr int wide = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    return (n + wide - 1) / wide * wide;
}

// A lower triangle of a matrix or, for L·Lᴴ if `packed`, with its columns one after the other.
template <class T> struct Triangle {
    T *data;
    int rows, ld;
    bool packed = false;

    // The decrease of the column length from one column to the next.
    __device__ int shrinks() const { return CHOLESKY && packed; }
    // The offset of row 0 of a column, which is not stored for c > 0.
    __device__ int column(int c) const { return c * ld - shrinks() * (c * (c - 1) / 2); }
    __device__ T &operator()(int r, int c) const { return data[r + column(c)]; }
};

// Addresses in a row of a triangle, every N-th.
template <int N, class T> struct AlongRow {
    T *at;
    int step, less;

    __device__ AlongRow(const Triangle<T> &of, int r, int c)
        : at(of.data + r + of.column(c)),
          step(N * of.ld - of.shrinks() * (N * c + N * (N - 1) / 2)), less(N * N * of.shrinks()) {}
    __device__ void advance() { at += step, step -= less; }
};

// Return the inverse of the diagonal tile in a row of tiles of L11. Column c of it lies above the
// diagonal in column w−c of the tile, of w columns, where L is zero: its entry (r, c) in row r−c.
template <class T> __device__ inline Triangle<T> folded(Matrix<T> row) {
    return {row.data + row.cols * row.ld, row.rows, -(row.ld + 1)};
}
// Return the packed inverse that replaces L11, of w columns, with L·Lᴴ.
template <class T> __device__ inline Triangle<T> packed_inverse(T *own, int w) {
    return {own, w, w - 1, true};
}

// Return an inverse of LU in a diagonal tile of w columns: of L, with implicit ones on the
// diagonal, or `upper` of the transpose of U, which begins in the last column.
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

    // Leading dimensions of tile row i of L, and of the upper panel.
    __device__ int ld(int i) const {
        return padded<T>(LU ? padded<T>(k) + m : i < pivot_tiles ? rows(i) : m);
    }
    __device__ int upper_ld() const { return padded<T>(m); }
    // The number of rows of tile t, and its first row among the front's k + m.
    __device__ int rows(int t) const {
        return min_(
            FRONT_TILE, t < pivot_tiles ? k - FRONT_TILE * t : m - FRONT_TILE * (t - pivot_tiles));
    }
    __device__ int first(int t) const {
        return t < pivot_tiles ? FRONT_TILE * t : k + FRONT_TILE * (t - pivot_tiles);
    }
    // Tile row i of L, all stored columns.
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
    // Return whether the inverse of L11 replaces L11.
    __device__ bool inverted() const { return CHOLESKY && pivot_tiles == 1; }
    // The inverse of the diagonal tile in a row of tiles of L11, without LU.
    __device__ Triangle<T> inverse(Matrix<T> row) const {
        return inverted() ? packed_inverse(row.data, row.rows) : folded(row);
    }
    // The inverse of diagonal tile i; with LU that of L or, if `upper`, of the transpose of U.
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

    // Tile (i, j), i ≥ j without LU, counted from 0.
    __device__ Matrix<T> tile(int i, int j) const {
        int rows = min_(FRONT_TILE, m - FRONT_TILE * i),
            cols = min_(FRONT_TILE, m - FRONT_TILE * j);
        return {data + column(j) + (LU ? FRONT_TILE * i : FRONT_TILE * (i - j)), rows, cols, ld(j)};
    }
    // The address of row 0 of column c: entry (r, c) is at(c)[r]; r ≥ c without LU.
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

// Report a failure to the host. outcome[0], zero at first, becomes larger the earlier in the
// elimination order the first nonpositive pivot of Cholesky lies.
__device__ inline void report_failure(int *outcome, int position) {
    atomicMax(outcome, NO_POSITION - position);
}
