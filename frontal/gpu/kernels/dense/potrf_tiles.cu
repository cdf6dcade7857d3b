// Cholesky of large matrices, one or a batch of any sizes, as tasks in one launch.
//
// A task is a 64×64 tile (i, j) of the lower triangle (of its mirror image if UPLO is upper):
//   C = A(i,j) - Σ_{k<j} L(i,k)·L(j,k)ᴴ;   i = j: L(j,j) and its inverse V;   i > j: L(i,j) = C·Vᴴ.
// Deadlock: in the list each task comes after all tasks that it needs, and blocks take tasks in
// this order by an atomic ticket, so that none waits forever (scheduler.cuh). done[row] counts the
// finished tiles of a row of tiles; blocks wait for nothing else. A tile is read and written once,
// and always summed in the same order. The tasks are those of Buttari, Langou, Kurzak, Dongarra
// (2009), cited there.
//
// A block has 128 threads; 2×2 warps own 32×32 parts of the tile in registers (tile.cuh). Dynamic
// shared memory: the slices of the product, then in their place the tile and an inverse; if fewer
// than three blocks share a multiprocessor, also A(i,j), which is copied while the block waits for
// others (counted in launch/cholesky.py). If a device has too little, the inverse (OUTSIDE 1), or
// all of these (2), is each block's part of a workspace in global memory. `state`, zeros at first,
// is the ticket and then done[]; `inverses` holds 64×64 elements per row of tiles. Matrices without
// rows have no tasks and no info. A is read from the source that INTO selects (common/matrix.cuh).
#include "dense/potrf_tile.cuh"
#include "common/scheduler.cuh"
#include "common/tile.cuh"

#ifndef UPLO
#define UPLO 0
#endif

using T = SCALAR;
constexpr bool upper = UPLO == 1;
constexpr int SIZE = TILE_ROWS, ld = tile_ld<T>, threads = 128;
#ifndef RESIDENTS
#define RESIDENTS (sizeof(T) == 16 ? 1 : 2)
#endif
constexpr int residents = RESIDENTS;
#ifndef STAGED
#define STAGED (RESIDENTS < 3)
#endif
constexpr bool staged = STAGED;
using Product = Tile<T, SIZE, SIZE, same_type<T, complex<double>> ? 8 : 16, 2, 2, 3>;

// The product's slices; or a tile, an inverse and its 64 scales.
constexpr int two_tiles = 2 * tile_elements<T> + SIZE;
constexpr int potrf_elements =
    Product::shared_elements > two_tiles ? Product::shared_elements : two_tiles;
constexpr int outside_elements = OUTSIDE > 1 ? potrf_elements : tile_elements<T> + SIZE;

// The task list of a launch and the state that tasks share, zero at first except `inverses`.
struct Tasks {
    const int4 *list;  // {matrix, i, j, first row of tiles of the matrix in done}
    int count;
    int *ticket, *done;
    T *inverses, *outside;
};

// Entry (r, c) of tile (i, j) of the lower factor.
__device__ inline T *place(Matrix<T> a, int i, int j, int r, int c) {
    return upper ? &a(j * SIZE + c, i * SIZE + r) : &a(i * SIZE + r, j * SIZE + c);
}

// Entry (r, c) of tile (i, j) of the input A.
__device__ inline T *given(Matrix<T> a, int i, int j, int r, int c) {
    return upper ? source_entry(a, j * SIZE + c, i * SIZE + r)
                 : source_entry(a, i * SIZE + r, j * SIZE + c);
}

__device__ __forceinline__ void accumulate(
    Product &tile, Matrix<T> a, int i, int j, const int *done, T *shared) {
    for (int k = 0; k < j;) {
        int ready = min_(wait_beyond(done + i, done + j, k), j), first = k * SIZE,
            depth = (ready - k) * SIZE;
        if constexpr (upper)
            tile.template multiply<ConjTrans, NoTrans>(
                a.at(first, i * SIZE, depth, SIZE), a.at(first, j * SIZE, depth, SIZE), shared);
        else
            tile.template multiply<NoTrans, ConjTrans>(
                a.at(i * SIZE, first, SIZE, depth), a.at(j * SIZE, first, SIZE, depth), shared);
        k = ready;
    }
}

__device__ inline void stage(Matrix<T> a, int i, int j, T *target) {
    int rows = a.rows - i * SIZE, cols = a.rows - j * SIZE;
#pragma unroll 4
    for (int e = threadIdx.x; e < SIZE * SIZE; e += threads) {
        constexpr bool along = upper == (INTO == 2);  // rows are adjacent in memory
        int r = along ? e % SIZE : e / SIZE, c = along ? e / SIZE : e % SIZE;
        copy_async<sizeof(T)>(
            target + r + c * ld, given(a, i, j, min_(r, rows - 1), min_(c, cols - 1)), true);
    }
    copy_async_commit();
}

// block = A(i, j) - tile. Rows and columns of a tile beyond the matrix become those of the
// identity, or zeros. All loads come first, always from inside the matrix, so that they overlap.
__device__ inline void subtract(
    Product &tile, Matrix<T> a, int i, int j, const T *waiting, T *block) {
    int rows = a.rows - i * SIZE, cols = a.rows - j * SIZE;
    if (staged) {
        copy_async_wait<0>();
        __syncthreads();
    }
    tile.each([&](int r, int c, T &v) {
        T old =
            staged ? waiting[r + c * ld] : *given(a, i, j, min_(r, rows - 1), min_(c, cols - 1));
        v = (upper ? conj(old) : old) - v;
    });
    tile.each([&](int r, int c, T &v) {
        if (r >= rows || c >= cols) v = i == j && r == c ? one<T>() : zero<T>();
        block[r + c * ld] = v;
    });
    __syncthreads();
}

// Finish a diagonal tile. Other tasks wait only for the inverse, so it is published first. This
// function and the next are not inlined, because the compiler would assign too many registers to
// the caller.
__device__ __noinline__ void finish_diagonal(
    Matrix<T> a, int j, T *block, T *inverse, T *kept, int *done, int *info) {
    int n = min_(SIZE, a.rows - j * SIZE);
    int failed =
        potrf_tile(block, inverse, reinterpret_cast<real_t<T> *>(inverse + tile_elements<T>));
#pragma unroll 8
    for (int e = threadIdx.x; e < SIZE * SIZE; e += threads)
        kept[e] = inverse[e % SIZE + e / SIZE * ld];
    if (threadIdx.x == 0 && (j == 0 || (failed && *info == 0)))
        *info = failed ? j * SIZE + failed : 0;
    publish(done + j, j + 1);
#pragma unroll 8
    for (int e = threadIdx.x; e < SIZE * SIZE; e += threads) {
        int r = e % SIZE, c = e / SIZE;
        T v = block[r + c * ld];
        if (r >= c && r < n) *place(a, j, j, r, c) = upper ? conj(v) : v;
        else if (INTO && r < c && c < n) *place(a, j, j, r, c) = zero<T>();
    }
}

__device__ __noinline__ void finish_below(
    Matrix<T> a, int i, int j, const T *block, T *inverse, const T *kept) {
    constexpr int wide = 16 / sizeof(T), H = SIZE / 2;
    for (int e = threadIdx.x * wide; e < SIZE * SIZE; e += threads * wide)
        copy_async<16>(inverse + e % SIZE + e / SIZE * ld, kept + e, true);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    int warp = threadIdx.x / 32, i0 = warp % 2 * H, j0 = warp / 2 * H;
    WarpProduct<T, H, H> x;
    x.clear();  // the inverse is lower triangular: its first rows end after 32 columns
    x.template add<H, false, false, false, true>(block + i0, ld, inverse + j0, ld);
    if (j0)
        x.template add<H, false, false, false, true>(
            block + i0 + H * ld, ld, inverse + j0 + H * ld, ld);
    int rows = a.rows - i * SIZE - i0;
    x.each([&](int r, int c, T &v) {
        if (r < rows) *place(a, i, j, i0 + r, j0 + c) = upper ? conj(v) : v;
    });
}

// Write zeros to the tile that mirrors (i, j).
__device__ inline void clear_mirror(Matrix<T> a, int i, int j) {
    Matrix<T> part =
        upper ? a.at(i * SIZE, j * SIZE, SIZE, SIZE) : a.at(j * SIZE, i * SIZE, SIZE, SIZE);
    for (int e = threadIdx.x; e < SIZE * SIZE; e += threads)
        if (e % SIZE < part.rows && e / SIZE < part.cols) part(e % SIZE, e / SIZE) = zero<T>();
}

__device__ __forceinline__ void run(
    Matrix<T> from, Matrix<T> a, int4 task, const Tasks &tasks, int *info) {
    T *block = OUTSIDE > 1 ? tasks.outside : shared_memory<T>();
    T *inverse = OUTSIDE == 1 ? tasks.outside : block + tile_elements<T>;
    T *waiting = block + potrf_elements;
    int i = task.y, j = task.z, *done = tasks.done + task.w;
    T *kept = tasks.inverses + (long long)(task.w + j) * SIZE * SIZE;
    Product tile;
    tile.clear();
    if (staged) stage(from, i, j, waiting);
    accumulate(tile, a, i, j, done, block);
    subtract(tile, from, i, j, waiting, block);
    if (i == j) return finish_diagonal(a, j, block, inverse, kept, done, info + task.x);
    wait_beyond(done + j, done + j, j);
    finish_below(a, i, j, block, inverse, kept);
    publish(done + i, j + 1);
    if (INTO) clear_mirror(a, i, j);
}

template <class Source>
__device__ void potrf_tiles(Source from, Source to, Tasks tasks, int *info) {
    __shared__ int number;
    auto run_next = [&] {
        int4 task = tasks.list[number];
        Matrix<T> a = from(task.x);
        run(a, INTO ? to(task.x) : a, task, tasks, info);
    };
    each_task(number, tasks.ticket, tasks.count, [] {}, run_next, [] {});
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(threads, residents) \
        name(Source<T> a, Source<T> to, const int4 *list, int count, int *state, T *inverses, \
            int *info, T *workspace) { \
        T *own = OUTSIDE ? workspace + (long long)blockIdx.x * outside_elements : nullptr; \
        potrf_tiles(a, to, Tasks{list, count, state, state + 1, inverses, own}, info); \
    }

ENTRY(potrf_tiles_native, Native)
ENTRY(potrf_tiles_batched, Batched)
ENTRY(potrf_tiles_vbatched, Vbatched)
