// Both substitutions for many systems of one pattern, whose fronts are all small: what front_solve.cuh
// and system.cu do for one matrix, by one warp for a whole system, whose vector stays in shared
// memory from the right-hand side to the residual.
//
// Tile map: a warp takes every (number of warps)-th system, and goes through the fronts of its tree
// up and down. Nobody waits for anybody else. Shared memory of a warp: WIDTH vectors of the system, in
// the order of elimination, then WIDTH vectors of a front, SMALL_LD apart. Sums have an order of
// their own, whatever the grid.
#include "sparse/front_solve_small.cuh"
#include "sparse/moduli.cuh"

using T = SCALAR;
using R = real_t<T>;

// A task of a system's fronts, in shared memory, while the next one is on its way.
struct Tasks {
    static constexpr int words = sizeof(SolveTask) / sizeof(int4);
    const SolveTask *list;
    SolveTask *task;
    int4 later;

    __device__ explicit Tasks(const SolveTask *list) : list(list) {
        __shared__ SolveTask all[warps];
        task = all + threadIdx.x / 32;
    }
    __device__ void ask(int f) {
        int lane = threadIdx.x % 32;
        if (lane < words) later = ((const int4 *)(list + f))[lane];
    }
    __device__ const SolveTask &take(int next, bool more) {
        int lane = threadIdx.x % 32;
        __syncwarp();
        if (lane < words) ((int4 *)task)[lane] = later;
        __syncwarp();
        if (more) ask(next);
        return *task;
    }
};

// A system as its warp knows it.
struct System {
    const Solve<T> &s;
    const Trees &of;
    T *factor, *whole, *mine;  // whole: vectors of the system, `of.ld` apart; mine: of a front
    int number;

    __device__ long long first() const { return (long long)number * of.n; }
    // The vectors from a front's pivots on; and rows of the system that are its update rows.
    __device__ T *pivots(const SolveTask &t) const { return whole + (int)(t.start - first()); }
    __device__ const int *rows(const SolveTask &t) const {
        return of.rows + (t.pointer - (long long)number * of.updates);
    }
    __device__ int place(const SolveTask &t, int row) const { return s.place[t.start + row]; }
};

// mine ← the front's part of the vectors, rows interchanged where the first sweep does that.
__device__ inline void fetch_up(const System &a, const SolveTask &t) {
    T *from = a.pivots(t);
    for (int r = threadIdx.x % 32; r < t.k; r += 32) {
        int row = moves_first ? a.place(t, r) : r;
#pragma unroll
        for (int j = 0; j < W; ++j) a.mine[j * SMALL_LD + r] = from[j * a.of.ld + row];
    }
    __syncwarp();
}

// y1 = W·b1, and the update rows of the system less L21·y1: first 8 columns of the inverse a step,
// then 8 columns of 64 update rows.
__device__ inline void solve_up(const System &a, const SolveTask &t) {
    Matrix<const T> inverse = inverse_of(t, a.factor, upper_first);
    Matrix<T> below = rows_below(t, a.factor, upper_first);
    T e[ahead][16], sum[2][W];
    int pivots = ceil_div(t.k, 8), count = pivots * (1 + ceil_div(t.m, TILE));
    auto ask = [&](T(&e)[16], int q) {
        int c = q % pivots * 8, first = (q / pivots - 1) * TILE;
        if (first < 0)
            load_rows<false, unit_first>(
                e, inverse.data + c * inverse.ld, inverse.ld, t.k, t.k - c, c);
        else
            load_rows<paired<T>>(
                e, below.data + first + c * below.ld, below.ld, t.m - first, t.k - c);
    };
    ask_ahead(e, count, ask);
    fetch_up(a, t);
    clear(sum);
    take_turns(e, count, ask, [&](const T(&e)[16], int q) {
        int c = q % pivots * 8, first = (q / pivots - 1) * TILE;
        multiply_rows<SMALL_LD>(sum, e, a.mine + c, t.k - c);
        if (c + 8 < t.k) return;
        if (first < 0) __syncwarp();
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int r = first < 0 ? lane_row<false>(h) : first + lane_row<paired<T>>(h);
            if (r >= (first < 0 ? t.k : t.m)) continue;
            T *to = first < 0 ? a.pivots(t) + r : a.whole + a.rows(t)[r];
#pragma unroll
            for (int j = 0; j < W; ++j, to += a.of.ld) {
                *to = first < 0 ? sum[h][j] : *to - sum[h][j];
                if (first < 0) a.mine[j * SMALL_LD + r] = sum[h][j];
            }
        }
        if (first < 0) __syncwarp();
        clear(sum);
    });
}

// mine ← y1, with D⁻¹·y1 in its place, then the solution of the update rows from padded(k) on.
__device__ inline void fetch_down(const System &a, const SolveTask &t) {
    int lane = threadIdx.x % 32;
    T *from = a.pivots(t), *updates = a.mine + padded<T>(t.k);
    for (int r = lane; r < t.k; r += 32)
#pragma unroll
        for (int j = 0; j < W; ++j) a.mine[j * SMALL_LD + r] = from[j * a.of.ld + r];
    for (int r = lane; r < t.m; r += 32) {
        int row = a.rows(t)[r];
#pragma unroll
        for (int j = 0; j < W; ++j) updates[j * SMALL_LD + r] = a.whole[j * a.of.ld + row];
    }
    if (lane < W) updates[lane * SMALL_LD + t.m] = zero<T>();
    __syncwarp();
    if (LDL) {
        for (int e = lane; e < t.k * W; e += 32)
            divide(a.s, t, e / W, a.mine + e % W * SMALL_LD + e / W);
        __syncwarp();
    }
}

// x1 = Wᴴ·(y1 − L21ᴴ·x2): first 64 update rows of 8 columns a step, then 8 columns of the inverse.
__device__ inline void solve_down(const System &a, const SolveTask &t) {
    Matrix<T> below = rows_below(t, a.factor, upper_last);
    T *updates = a.mine + padded<T>(t.k);
    T e[ahead][16], sum[2][W];
    int parts = max_(ceil_div(t.m, TILE), 1), over = t.m ? ceil_div(t.k, 8) * parts : 0;
    int count = over + ceil_div(t.k, 8);
    auto column = [&](int q) { return 8 * (q < over ? q / parts : q - over); };
    auto ask = [&](T(&e)[16], int q) {
        int c = column(q), row = q % parts * TILE;
        if (q < over)
            load_columns<paired<T>>(
                e, below.data + row + c * below.ld, below.ld, t.m - row, t.k - c);
        else {
            Matrix<const T> inverse = inverse_of(t, a.factor, upper_last);
            load_columns<false, unit_last>(
                e, inverse.data + c * inverse.ld, inverse.ld, t.k, t.k - c, c);
        }
    };
    ask_ahead(e, count, ask);
    fetch_down(a, t);
    clear(sum);
    take_turns(e, count, ask, [&](const T(&e)[16], int q) {
        int c = column(q), row = q % parts * TILE;
        if (q < over) {  // y1 ← y1 − L21ᴴ·x2
            multiply_columns<paired<T>, SMALL_LD>(sum, e, updates + row, t.m - row);
            if (q % parts != parts - 1) return;
            each_column(sum, [&](int i, int j, T total) {
                T *y = a.mine + j * SMALL_LD + c + i;
                if (c + i < t.k) *y = *y - total;
            });
            __syncwarp();
        } else {  // x1 = Wᴴ·y1
            multiply_columns<false, SMALL_LD>(sum, e, a.mine, t.k);
            each_column(sum, [&](int i, int j, T total) {
                if (c + i >= t.k) return;
                int to = moves_last ? a.place(t, c + i) : c + i;
                a.pivots(t)[j * a.of.ld + to] = total;
            });
        }
        clear(sum);
    });
}

// Maxima of a system for one right-hand side, of all lanes, to sizes[0]…: 0: |r|, 1: |x|, 2: |b|, 3:
// |r| / (|op(A)| |x| + |b|).
__device__ inline void put_sizes(R (&size)[4], int step, double *sizes) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int flip = 16; flip > 0; flip /= 2)
            size[q] = larger(size[q], shuffle_xor(size[q], flip));
        if (threadIdx.x % 32 == 0) sizes[(long long)step * q] = (double)size[q];
    }
}

// As system_enter: scale·given in the order of elimination, zeros beyond `width`.
__device__ inline void enter(const System &a, int width, const T *given) {
    long long total = (long long)a.of.n * a.of.systems;
    given += a.first();
#pragma unroll 1
    for (int r = threadIdx.x % 32; r < a.of.n; r += 32) {
        int i = a.of.into[r];
#pragma unroll
        for (int j = 0; j < W; ++j) {
            T v = j < width ? given[j * total + i] : zero<T>();
            if (a.of.scale_into) v = times<T>(a.of.scale_into[a.first() + i], v);
            a.whole[j * a.of.ld + r] = a.of.conjugate ? conj(v) : v;
        }
    }
    __syncwarp();
}

// As system_leave, for a right-hand side: x = before + scale·y; the vector becomes x, still in the
// order of elimination. Returns the largest |x| of this lane.
__device__ inline R leave(const System &a, T *y, const T *before, T *x) {
    R most = 0;
#pragma unroll 2
    for (int r = threadIdx.x % 32; r < a.of.n; r += 32) {
        int i = a.of.out[r];
        T v = a.of.conjugate ? conj(y[r]) : y[r];
        if (a.of.scale_out) v = times<T>(a.of.scale_out[a.first() + i], v);
        if (before) v = before[i] + v;
        x[i] = y[r] = v;
        most = larger(modulus(v), most);
    }
    __syncwarp();
    return most;
}

// r = b − op(A)·x for x in the order of elimination, a lane a row; `size` as put_sizes has it.
__device__ inline void measure(
    const System &a, const T *values, const T *x, const T *b, T *r, R (&size)[4]) {
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < a.of.n; i += 32) {
        T sum = zero<T>(), given = b[i];
        R most = 0;
#pragma unroll 2
        for (int p = (int)a.of.pointer[i]; p < (int)a.of.pointer[i + 1]; ++p) {
            T v = values[a.of.position ? a.of.position[p] : p], other = x[a.of.column[p]];
            if (a.of.conjugate_matrix) v = conj(v);
            sum = fma_(v, other, sum);
            most = fma_(modulus(v), modulus(other), most);
        }
        T rest = given - sum;
        R left = modulus(rest), own = modulus(given);
        r[i] = rest;
        size[0] = larger(left, size[0]), size[2] = larger(own, size[2]);
        size[3] = larger(left == 0 ? left : left / (most + own), size[3]);
    }
}

// x = before + op(A)⁻¹·given by the factor, for each system; `before` may be null. And r = b −
// op(A)·x with its sizes.
extern "C" __global__ void __launch_bounds__(threads, RESIDENTS) front_trees(
    const __grid_constant__ Solve<T> solve, const __grid_constant__ Trees of, T *factor, int width,
    const T *values, const T *given, const T *before, const T *b, T *x, T *r, double *sizes) {
    int warp = threadIdx.x / 32, team = blockDim.x / 32, fronts = of.fronts;
    T *room = shared_memory<T>() + (long long)warp * (of.ld + SMALL_LD) * W;
    for (int number = blockIdx.x * team + warp; number < of.systems; number += gridDim.x * team) {
        System a{solve, of, factor, room, room + of.ld * W, number};
        Tasks tasks(solve.tasks + (long long)number * fronts);
        tasks.ask(0);
        enter(a, width, given);
        for (int f = 0; f < fronts; ++f) {
            const SolveTask &t = tasks.take(f + 1, f + 1 < fronts);
            solve_up(a, t);
        }
        tasks.ask(fronts - 1);
        for (int f = fronts - 1; f >= 0; --f) {
            const SolveTask &t = tasks.take(f - 1, f > 0);
            solve_down(a, t);
        }
        __syncwarp();
#pragma unroll 1
        for (int j = 0; j < width; ++j) {
            long long at = (long long)j * of.n * of.systems + a.first();
            T *y = a.whole + j * of.ld;
            R size[4] = {};
            size[1] = leave(a, y, before ? before + at : nullptr, x + at);
            measure(a, values + number * of.entries, y, b + at, r + at, size);
            put_sizes(size, of.systems, sizes + number + 4LL * of.systems * j);
        }
        __syncwarp();
    }
}
