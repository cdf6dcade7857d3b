// One tile of C = alpha·A·Aᴴ + beta·C or alpha·Aᴴ·A + beta·C, one triangle of C. The host does not
// list tiles that lie entirely in the other triangle.
#pragma once
#include "dense/gemm.cuh"

// The entries of a tile of C to write: those of a triangle with diagonal entries (i, i + shift) of
// the tile.
struct Triangle {
    int rows, cols, shift;
    bool lower, whole;
    __device__ bool inside(int i, int j) const {
        return i < rows && j < cols && (lower ? i + shift >= j : i + shift <= j);
    }
};

// Compute the tile whose first entry is (i, j), of A·Aᴴ (NoTrans) or Aᴴ·A. HERMITIAN selects HERK,
// with a real diagonal, or SYRK. The other triangle is neither read nor written, and warps whose
// part of the tile lies entirely in it compute nothing.
template <class Tile, Trans OP, bool HERMITIAN, class T>
__device__ void herk(
    T alpha, Matrix<T> a, T beta, Matrix<T> c, Uplo uplo, int i, int j, T *shared) {
    constexpr Trans other = HERMITIAN ? ConjTrans : Transposed;
    constexpr Trans first = OP == NoTrans ? NoTrans : other,
                    second = OP == NoTrans ? other : NoTrans;
    bool lower = uplo == Lower;
    int row = i + Tile::part_i(), column = j + Tile::part_j(), shift = i - j;
    bool wanted = lower ? row + Tile::part_rows > column : row < column + Tile::part_cols;
    bool clear = lower ? shift + 1 >= Tile::cols : shift + Tile::rows <= 1;  // no diagonal entries
    c = c.at(i, j, Tile::rows, Tile::cols);
    Triangle region{
        c.rows, c.cols, shift, lower, clear && c.rows == Tile::rows && c.cols == Tile::cols};
    update_tile<Tile, first, second>(alpha, operand_rows<first>(a, i, Tile::rows),
        operand_cols<second>(a, j, Tile::cols), beta, c, region, shared, wanted);
    if constexpr (HERMITIAN && is_complex<T>) {
        Tile::sync();  // other threads wrote entries of the diagonal
        for (int k = Tile::thread(); k < c.rows; k += Tile::threads)
            if (k + shift >= 0 && k + shift < c.cols) c(k, k + shift).im = 0;
    }
}
