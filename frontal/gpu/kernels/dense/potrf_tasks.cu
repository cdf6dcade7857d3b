// Cholesky of large matrices, or of batches of them: A = L·Lᴴ, or A = Uᴴ·U, with tiles as tasks.
//
// Task map: tile (i, j) of TILE×TILE of matrix b is the task {b, i, j, f}, f the number of the
// matrix's first block row among those of all matrices. Deadlock: blocks take tasks in the order of
// the list by an atomic ticket, and a task waits only for earlier ones, so that none waits forever
// (scheduler.cuh). Every entry is written once: results do not depend on the order of execution.
//   i > j   C = A(i,j) − Σ_{k<j} L(i,k)·L(j,k)ᴴ in registers, then C·L(j,j)⁻ᴴ by 32×32 inverses
//   i = j   the same sum, then the factor of the tile and the inverses of its diagonal blocks.
// state[0] is the ticket and state[1 + f + i] the number of finished block columns in block row i
// (i + 1 with the diagonal); all zero at first. operands: for each block row the blocks of L(j,j)
// below the diagonal and the inverses on it, OPERANDS blocks of 32×32.
// Dynamic shared memory: slices of the tile product, then in their place a tile and the operands;
// POTF2_SCRATCH. Matrices must be square; their other triangle is not read. A is read from the
// source that INTO selects (common/matrix.cuh). Progress of block rows: Kurzak, Buttari, Dongarra,
// "Solving systems of linear equations on the CELL processor using Cholesky factorization" (2008).
#include "dense/potrf_blocks.cuh"
#include "common/scheduler.cuh"
#include "common/tile.cuh"

#ifndef UPLO
#define UPLO 0
#endif

using T = SCALAR;
constexpr int TILE = 128, WARPS = 8, THREADS = 32 * WARPS;
using Product = Tile<T, TILE, TILE, same_type<T, complex<double>> ? 8 : 16, WARPS / 2, 2, 3>;
constexpr int SIDE = TILE / BLOCK, LD = TILE + leading_pad<T, false>(), LDO = BLOCK_LD<T>;
constexpr int OPERAND = BLOCK * LDO, OPERANDS = SIDE * (SIDE + 1) / 2;
constexpr int SLICES = (Product::shared_elements + 31) / 32 * 32,
              SOLVE = TILE * LD + OPERANDS * OPERAND;
constexpr int REGION = SLICES > SOLVE ? SLICES : SOLVE;

// The task, and the data that the tasks of its matrix share.
struct Factor {
    Matrix<T> a, from;  // L, and the input A
    int *rows;          // counters of its block rows
    T *operands;        // of its block rows
    int *info;
    int i, j;  // the task

    __device__ int n(int i) const { return min_(TILE, a.cols - i * TILE); }
    __device__ T get(int i, int j) const {
        return UPLO == Lower ? *source_entry(from, i, j) : conj(*source_entry(from, j, i));
    }
    __device__ void put(int i, int j, T v) const {
        if constexpr (UPLO == Lower) a(i, j) = v;
        else a(j, i) = conj(v);
    }
    __device__ void clear(int i, int j) const {
        if constexpr (UPLO == Lower) a(j, i) = zero<T>();
        else a(i, j) = zero<T>();
    }
    // Block columns k…k+count-1 of block row i.
    __device__ Matrix<T> part(int i, int k, int count) const {
        return UPLO == Lower ? a.at(i * TILE, k * TILE, TILE, count * TILE)
                             : a.at(k * TILE, i * TILE, count * TILE, TILE);
    }
    // Wait until more than `done` block columns are finished in both rows; return their number, at
    // most `limit`.
    __device__ int wait(int i, int j, int done, int limit) const {
        return wait_beyond(rows + i, rows + j, done, limit);
    }
};

__device__ inline T *work() { return shared_memory<T>(); }
__device__ inline T *operand(int r, int c) {
    return work() + TILE * LD + (r * (r + 1) / 2 + c) * OPERAND;
}

// Call f(r, c) for the entries of an m×n tile; the threads of a warp access adjacent memory.
template <class F> __device__ inline void each_in_tile(int m, int n, F f) {
    int lane = threadIdx.x & 31, warp = threadIdx.x / 32, outer = UPLO == Lower ? n : m,
        inner = UPLO == Lower ? m : n;
#pragma unroll 4
    for (int q = warp; q < outer; q += WARPS)
#pragma unroll
        for (int p = 0; p < TILE; p += 32)
            if (p + lane < inner) UPLO == Lower ? f(p + lane, q) : f(q, p + lane);
}

// work() ← A(i,j) − Σ_{k<j} L(i,k)·L(j,k)ᴴ. Ends with a barrier.
__device__ inline void update(const Factor &f) {
    int i = f.i, j = f.j;
    Product product;
    product.clear();
    for (int k = 0; k < j;) {
        int ready = f.wait(i, j, k, j);
        Matrix<T> left = f.part(i, k, ready - k), right = f.part(j, k, ready - k);
        if constexpr (UPLO == Lower)
            product.template multiply<NoTrans, ConjTrans>(left, right, work());
        else product.template multiply<ConjTrans, NoTrans>(left, right, work());
        k = ready;
    }
    product.store_shared(work(), LD);
    __syncthreads();
    each_in_tile(f.n(i), f.n(j), [&](int r, int c) {
        T &v = work()[r + c * LD];
        if (i != j || r >= c) v = f.get(i * TILE + r, j * TILE + c) - v;
    });
    __syncthreads();
}

// Multiply the rows of the tile in work() by L(j,j)⁻ᴴ, in strips of 16 rows. Ends with a barrier.
__device__ inline void solve(const Factor &f, int j, int m) {
    f.wait(j, j, j, j + 1);
    const T *source = f.operands + (long long)j * OPERANDS * OPERAND;
    constexpr int chunk = 16 / sizeof(T);
    for (int p = threadIdx.x * chunk; p < OPERANDS * OPERAND; p += THREADS * chunk)
        copy_async<16>(operand(0, 0) + p, source + p, true);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    for (int s = threadIdx.x / 32 * STRIP; s < m; s += WARPS * STRIP) {
        T *x = work() + s;
        for (int c = 0; c < SIDE; ++c) {
            if (c > 0) {
                WarpProduct<T, STRIP, BLOCK> sum;
                sum.clear();
                for (int k = 0; k < c; ++k)
                    sum.template add<BLOCK, false, false, false, true>(
                        x + BLOCK * k * LD, LD, operand(c, k), LDO);
                sum.each([&](int r, int q, T &v) {
                    x[r + (BLOCK * c + q) * LD] = x[r + (BLOCK * c + q) * LD] - v;
                });
                __syncwarp();
            }
            multiply_strip(x + BLOCK * c * LD, LD, operand(c, c), LDO);
        }
    }
    __syncthreads();
}

// L(i,j) ← the tile in work().
__device__ inline void store_tile(const Factor &f, int i, int j) {
    each_in_tile(
        f.n(i), TILE, [&](int r, int c) { f.put(i * TILE + r, j * TILE + c, work()[r + c * LD]); });
}

// Publish the blocks of the factored tile and the inverses in operand(c, c), then store the tile.
__device__ __noinline__ void publish_diagonal(const Factor &f, int j, Blocks<T> tile, int failure) {
    int n = f.n(j), first = j * TILE;
    T *target = f.operands + (long long)j * OPERANDS * OPERAND;
    for (int r = 0; first + TILE < f.a.cols && r < SIDE; ++r)
        for (int c = 0; c <= r; ++c) {
            const T *source = r == c ? operand(c, c) : tile.at(r, c);
            int ld = r == c ? LDO : LD;
            for (int p = threadIdx.x; p < BLOCK * BLOCK; p += THREADS)
                target[(r * (r + 1) / 2 + c) * OPERAND + p % BLOCK + p / BLOCK * LDO] =
                    source[p % BLOCK + p / BLOCK * ld];
        }
    if (threadIdx.x == 0 && (j == 0 || (failure && *f.info == 0)))
        *f.info = failure ? first + failure : 0;
    publish(f.rows + j, j + 1);
    each_entry<UPLO>(n, threadIdx.x / 32, WARPS, [&](int i, int k) {
        f.put(first + i, first + k, tile.data[i + k * LD]);
        if (INTO && i > k) f.clear(first + i, first + k);
    });
}

__device__ inline void run_task(const Factor &f) {
    update(f);
    int i = f.i, j = f.j;
    if (i == j) {
        Blocks<T> blocks{work(), LD};
        int failure =
            potrf_blocks(blocks, f.n(j), [](int c) { return operand(c, c); }, work() + REGION);
        __syncthreads();
        return publish_diagonal(f, j, blocks, failure);
    }
    solve(f, j, f.n(i));
    store_tile(f, i, j);
    publish(f.rows + i, j + 1);
    if (INTO)
        each_in_tile(f.n(i), TILE, [&](int r, int c) { f.clear(i * TILE + r, j * TILE + c); });
}

template <class Source>
__device__ void potrf_tasks(
    Source from, Source to, const int4 *tasks, int count, int *state, T *operands, int *info) {
    __shared__ Factor f;  // in shared memory it takes no registers
    __shared__ int number;
    auto fetch = [&] {
        int4 task = tasks[number];
        f = {(INTO ? to : from)(task.x), from(task.x), state + 1 + task.w,
            operands + (long long)task.w * OPERANDS * OPERAND, info + task.x, task.y, task.z};
    };
    each_task(number, state, count, fetch, [&] { run_task(f); }, [] {});
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) name(Source<T> a, Source<T> to, \
        const int4 *tasks, int count, int *state, T *operands, int *info) { \
        potrf_tasks(a, to, tasks, count, state, operands, info); \
    }

ENTRY(potrf_tasks_native, Native)
ENTRY(potrf_tasks_batched, Batched)
ENTRY(potrf_tasks_vbatched, Vbatched)
