// One tile of 64 rows of a front for a block of 8 warps, in the substitutions of front_solve.cuh.
//
// A warp owns 8 columns of each tile of 64×64, in registers. Dynamic shared memory is TileMemory:
// the tile's vectors and sums, and an inverse, which with IN_PLACE is read from global memory
// instead. Tiles of a dense triangle by ordered tickets: Hogg, "A fast dense triangular solve in
// CUDA" (2013).
#pragma once
#include "sparse/front_solve.cuh"

#ifndef IN_PLACE
#define IN_PLACE 0
#endif

// Shared memory of a tile.
template <class T> struct TileMemory {
    T *staged;  // two tiles of the vector in a product
    T *sums;    // those by rows of each warp, and those by columns
    T *b;       // the tile's own rows
    T *inverse;
    Triangle<const T> kept;  // IN_PLACE: the inverse

    __device__ static TileMemory here() {
        T *p = shared_memory<T>();
        return {p, p + 2 * VALUES, p + (warps + 3) * VALUES, p + (warps + 4) * VALUES, {}};
    }
    template <bool UNIT> __device__ T inverse_at(int r, int c) const {
        if (!IN_PLACE) return inverse[r + c * INVERSE_LD];
        if (UNIT && r == c) return one<T>();
        return r < kept.rows && c <= r ? kept(r, c) : zero<T>();
    }
};

// Call f(row, right-hand side, offset in shared memory, number) for each value of a tile.
constexpr int values_each = (VALUES + threads - 1) / threads;
template <class F> __device__ inline void each_value(F f) {
#pragma unroll
    for (int i = 0; i < values_each; ++i) {
        int e = threadIdx.x + i * threads;
        if (e < VALUES) f(e / W, e % W, e % W * TILE + e / W, i);
    }
}

// v ← the values of a tile at place(row, right-hand side, number), or zero if that is null: all are
// requested before any is waited for.
template <class T, class Place> __device__ __forceinline__ void take_values(T *v, Place place) {
    const T *from[values_each];
    T seen[values_each];
    each_value([&](int r, int j, int, int n) {
        from[n] = place(r, j, n);
        if (from[n]) seen[n] = look(from[n]);
    });
    each_value(
        [&](int, int, int at, int n) { v[at] = from[n] ? take(from[n], seen[n]) : zero<T>(); });
}

// Begin to fetch the inverse of a pivot tile, a lower triangle, with zeros around it, and ones on
// its diagonal if UNIT.
template <bool UNIT, class T>
__device__ inline void fetch_inverse(TileMemory<T> &memory, Triangle<const T> kept) {
    if (IN_PLACE) {
        memory.kept = kept;
        return;
    }
    T *inverse = memory.inverse;
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE * TILE; e += threads) {
        int r = e % TILE, c = e / TILE;
        bool valid = r < kept.rows && c + UNIT <= r;
        T *to = inverse + r + c * INVERSE_LD;
        if (UNIT && r == c) *to = one<T>();
        else copy_async<sizeof(T)>(to, kept.data + (valid ? r + kept.column(c) : 0), valid);
    }
    copy_async_commit();
}

// Store sums in shared memory: by rows for each warp, by columns behind them.
template <class T> __device__ inline void put_rows(T *sums, const T (&sum)[2][W]) {
    sums += threadIdx.x / 32 * VALUES;
#pragma unroll
    for (int j = 0; j < W; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) sums[j * TILE + lane_row<paired<T>>(h)] = sum[h][j];
}
template <class T> __device__ inline void put_columns(T *sums, T (&sum)[2][W]) {
    sums += warps * VALUES + threadIdx.x / 32 * 8;
    each_column(sum, [&](int c, int j, T total) { sums[j * TILE + c] = total; });
}
template <class T> __device__ inline T sum_of_warps(const T *sums, int at) {
    T total = zero<T>();
#pragma unroll
    for (int w = 0; w < warps; ++w) total = total + sums[w * VALUES + at];
    return total;
}

// Multiply b by the inverse (its transpose if TRANSPOSE, conjugated if the second factor is the
// adjoint): four terms of each result, which product_at adds.
template <bool TRANSPOSE, bool UNIT, class T>
__device__ inline void multiply_inverse(const TileMemory<T> &memory) {
    int r = threadIdx.x % TILE, quarter = threadIdx.x / TILE;
    T sum[W];
#pragma unroll
    for (int j = 0; j < W; ++j) sum[j] = zero<T>();
#pragma unroll
    for (int i = 0; i < TILE / 4; ++i) {
        int c = quarter * (TILE / 4) + i;
        T a = memory.template inverse_at<UNIT>(TRANSPOSE ? c : r, TRANSPOSE ? r : c);
        if constexpr (TRANSPOSE && conjugates) a = conj(a);
#pragma unroll
        for (int j = 0; j < W; ++j) sum[j] = fma_(a, memory.b[j * TILE + c], sum[j]);
    }
#pragma unroll
    for (int j = 0; j < W; ++j) memory.sums[quarter * VALUES + j * TILE + r] = sum[j];
}
template <class T> __device__ inline T product_at(const TileMemory<T> &memory, int at) {
    const T *p = memory.sums + at;
    return (p[0] + p[VALUES]) + (p[2 * VALUES] + p[3 * VALUES]);
}

template <class T> using Tickets = BlockTickets<SolveTask, Solve<T>>;
