// One tile of C = alpha·op(A)·op(B) + beta·C.
#pragma once
#include "common/tile.cuh"

// Rows i… of op(a), at most `size`; columns j… of op(b), at most `size`.
template <Trans OP, class T>
__device__ inline Matrix<T> operand_rows(Matrix<T> a, int i, int size) {
    return OP == NoTrans ? a.at(i, 0, size) : a.at(0, i, 1 << 30, size);
}
template <Trans OP, class T>
__device__ inline Matrix<T> operand_cols(Matrix<T> b, int j, int size) {
    return OP == NoTrans ? b.at(0, j, 1 << 30, size) : b.at(j, 0, size);
}

// The entries of a tile of C to write: a rectangle.
struct Rectangle {
    int rows, cols;
    bool whole;  // the whole tile is inside
    __device__ bool inside(int i, int j) const { return i < rows && j < cols; }
};

// Prefetch a tile of C into the second-level cache during the products.
template <class Tile, class T> __device__ void prefetch_tile(Matrix<T> c) {
    constexpr int line = 128 / sizeof(T);
    int lines = ceil_div(c.rows, line);
    for (int l = Tile::thread(); l < lines * c.cols; l += Tile::threads)
        prefetch(&c(l % lines * line, l / lines));
}

// tile = factor·c, for a whole tile. The loads need no registers besides the tile's.
template <class Tile, class T> __device__ void load_tile(Tile &tile, T factor, Matrix<T> c) {
    tile.each([&](int i, int j, T &v) { v = c(i, j); });
    tile.each([&](int, int, T &v) { v = factor * v; });
}

// c = alpha·tile + beta·c in the region; c is not read if beta is zero.
template <class Tile, class T, class Region>
__device__ void store_tile(Tile &tile, T alpha, T beta, Matrix<T> c, Region region) {
    tile.each([&](int, int, T &v) { v = alpha * v; });
    if (!(beta == zero<T>())) {
        auto add = [&](int i, int j, T &v) {
            if (region.inside(i, j)) v = fma_(beta, c(i, j), v);
        };
        tile.template each_of<0, 4>(add);
        __syncwarp();  // at most a quarter of c is pending: no registers for more
        tile.template each_of<1, 4>(add);
        __syncwarp();
        tile.template each_of<2, 4>(add);
        __syncwarp();
        tile.template each_of<3, 4>(add);
    }
    if (region.whole) tile.each([&](int i, int j, T &v) { c(i, j) = v; });
    else
        tile.each([&](int i, int j, T &v) {
            if (region.inside(i, j)) c(i, j) = v;
        });
}

// c = alpha·op(a)·op(b) + beta·c in the region of one tile, by Tile::threads threads; `shared` has
// Tile::shared_elements elements. An alpha of ±1 is its own reciprocal: the product can then be
// added to alpha·beta·c, which is read while the first operands are copied.
template <class Tile, Trans TA, Trans TB, class T, class Region>
__device__ void update_tile(T alpha, Matrix<T> a, Matrix<T> b, T beta, Matrix<T> c, Region region,
    T *shared, bool wanted = true) {
    Tile tile;
    tile.clear();
    bool reads = !(beta == zero<T>()), unit = alpha == one<T>() || alpha == -one<T>();
    bool early = reads && unit && region.whole;
    if (reads && !early) prefetch_tile<Tile>(c);
    tile.template multiply<TA, TB>(a, b, shared, wanted, [&] {
        if (early) load_tile(tile, alpha * beta, c);
    });
    store_tile(tile, alpha, early ? zero<T>() : beta, c, region);
}

// Compute the tile of c = alpha·op(a)·op(b) + beta·c whose first entry is (i, j).
template <class Tile, Trans TA, Trans TB, class T>
__device__ void gemm(
    T alpha, Matrix<T> a, Matrix<T> b, T beta, Matrix<T> c, int i, int j, T *shared) {
    c = c.at(i, j, Tile::rows, Tile::cols);
    Rectangle region{c.rows, c.cols, c.rows == Tile::rows && c.cols == Tile::cols};
    update_tile<Tile, TA, TB>(alpha, operand_rows<TA>(a, i, Tile::rows),
        operand_cols<TB>(b, j, Tile::cols), beta, c, region, shared);
}
