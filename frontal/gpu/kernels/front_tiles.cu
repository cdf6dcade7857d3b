// Factorization of all fronts of an assembly tree that are too large to be factored whole, as tasks
// of one launch: A = L·Lᴴ, or P·A = L·U with P inside the diagonal tiles (LU).
//
// A task is a tile (i, j) of 64×64 of a front (device/front.cuh), from its assembly to its end:
//   C = A(i,j) + Σ children − Σ_{p<j} L(i,p)·L(j,p)ᴴ;   i = j: L(j,j), and its inverse V;
//   i > j: L(i,j) = C·Vᴴ;   j a tile of update rows: C is a tile of the contribution block.
// For LU the second factor is U(p,j), and there are tasks for the transpose of U, whose factors are
// those of L exchanged: C·Vᵀ with V the inverse of L(j,j); those of L take the inverse of U(j,j).
// Tasks lie in a list, each after all that it needs, and blocks take them in that order by an atomic
// ticket: however few blocks are resident, the first unfinished task can always go on, so nothing can
// lock. Every tile is summed and written once, always in the same order: results are reproducible.
//
// What blocks tell each other (all zero at first): done[row] counts the finished tiles of a row of
// tiles of L, done of the rows of U alike; finished[front] the tiles of its contribution block;
// level[l] the tasks of a level. A contribution block takes the place of those that were last read
// two levels below, so its first write waits for that level.
//
// A block has 128 threads; 2×2 warps own 32×32 parts of the tile in registers (tile.cuh). Dynamic
// shared memory: the slices of the product, then in their place the tile; the assembled tile, then in
// its place an inverse; and scratch, in which LU has the other inverse if ROOMY.
#include "device/front_gather.cuh"
#include "device/getf2_tile.cuh"
#include "device/tile.cuh"

#ifndef TRACE
#define TRACE 0
#endif
#ifndef ROOMY
#define ROOMY 1
#endif

using T = SCALAR;
constexpr int SIZE = TILE_ROWS, ld = tile_ld<T>, threads = 128;
constexpr int residents = sizeof(T) == 16 ? 1 : LU ? 2 : 3;
using Product = Tile<T, SIZE, SIZE, 8, 2, 2, 4, same_type<T, double>>;
constexpr int slices = Product::template elements_of<NoTrans, LU ? NoTrans : ConjTrans>;  // the most of all
constexpr int work_elements = slices > tile_elements<T> ? slices : tile_elements<T>;

struct Tasks {
    const int4 *list;  // {front, i, j, level + PART_BIT·part}
    int count;
    Entries entries;
    const int *level_count;
    int *ticket, *level, *finished, *done, *upper_done;
    T *inverses, *upper_inverses;
    int *pivots;
    int *outcome;  // see tell_failure; then how many pivots were replaced
    real_t<T> tiny;
    long long *trace;  // with TRACE: when each task began, was assembled, was summed, and ended
};
constexpr int PART_BIT = 1 << 30;

// One task, as all threads know it.
struct Task {
    Front<T> front;
    int number, i, j, level;
    Part part;
};

__device__ inline T *work() { return shared_memory<T>(); }
__device__ inline T *assembled() { return work() + work_elements; }
__device__ inline T *scratch() { return assembled() + tile_elements<T>; }  // 64 reals, or what LU takes

__device__ inline void stamp(const Tasks &tasks, int task, int phase) {
    if (TRACE && threadIdx.x == 0) tasks.trace[4 * task + phase] = nanoseconds();
}

// Wait until *flag ≥ wanted: one thread asks, and a barrier must follow.
__device__ inline void wait_for(const int *flag, int wanted) {
    while (glance(flag) < wanted) {}
    acquire(flag);
}

__device__ inline void assemble(const Task &task, const Tasks &tasks, const T *blocks, const T *values) {
    const Front<T> &f = task.front;
    const Fronts &tree = *f.tree;
    constexpr int TOGETHER = 32;
    __shared__ Piece pieces[TOGETHER];
    int last = tree.child_pointer[f.s + 1];
    T *tile = assembled();
    clear_tile<ld>(tile);
    __syncthreads();
    gather_entries<ld>(tile, tasks.entries, task.number, values);
    for (int first = tree.child_pointer[f.s]; first < last; first += TOGETHER) {
        __syncthreads();  // all are done with the pieces before
        if (threadIdx.x < min_(TOGETHER, last - first)) {
            int c = tree.children[first + threadIdx.x];
            Piece p = piece_of(tree, c, task.part, task.i, task.j);
            int tiles = ceil_div(p.m, FRONT_TILE);
            if (p.r0 < p.r1 && p.c0 < p.c1) wait_for(tasks.finished + c, LU ? tiles * tiles : tiles * (tiles + 1) / 2);
            pieces[threadIdx.x] = p;
        }
        __syncthreads();
        for (int q = 0; q < min_(TOGETHER, last - first); ++q) {
            if (pieces[q].r0 == pieces[q].r1 || pieces[q].c0 == pieces[q].c1) continue;
            gather_piece<ld>(tile, f, pieces[q], task.part, task.i, task.j, blocks);
            __syncthreads();
        }
    }
    __syncthreads();
}

// How many tiles are done in both rows: more than `done`, `limit` at most; to all threads.
__device__ inline int wait_beyond(const int *row, const int *other, int done, int limit) {
    __shared__ int ready;
    if (threadIdx.x == 0) ready = min_(acquire_beyond(row, other, done), limit);
    __syncthreads();
    int found = ready;
    __syncthreads();
    return found;
}

__device__ __forceinline__ void accumulate(Product &tile, const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int i = task.i, j = task.j, base = f.tree->tile_row[f.s], limit = min_(j, f.pivot_tiles);
    const int *lower = tasks.done + base, *upper = (LU ? tasks.upper_done : tasks.done) + base;
    bool swapped = task.part == UPPER_PART;
    for (int p = 0; p < limit;) {
        int ready = wait_beyond((swapped ? upper : lower) + i, (swapped ? lower : upper) + j, p, limit);
        int first = p * SIZE, depth = (ready - p) * SIZE;
        auto columns = [&](Matrix<T> row) { return row.at(0, first, SIZE, depth); };
        if constexpr (!LU) {
            tile.template multiply<NoTrans, ConjTrans>(columns(f.lower(i)), columns(f.lower(j)), work());
        } else {
            auto above = [&](int c) {  // U(p…, c) where it lies in the diagonal block
                return Matrix<T>{f.panel + (long long)SIZE * c * f.ld(), f.k, f.rows(c), f.ld()}.at(first, 0, depth);
            };
            if (swapped && i < f.pivot_tiles)
                tile.template multiply<Transposed, Transposed>(above(i), columns(f.lower(j)), work());
            else if (!swapped && j < f.pivot_tiles)
                tile.template multiply<NoTrans, NoTrans>(columns(f.lower(i)), above(j), work());
            else
                tile.template multiply<NoTrans, Transposed>(
                    columns(swapped ? f.upper(i) : f.lower(i)), columns(swapped ? f.lower(j) : f.upper(j)), work());
        }
        p = ready;
    }
}

// block = assembled − tile, with the columns of a tile of U interchanged as the rows of the diagonal
// tile were. What a partial tile has too much are rows and columns of the identity, or zeros.
__device__ inline void subtract(Product &tile, const Task &task, const Tasks &tasks, T *block) {
    const Front<T> &f = task.front;
    int rows = f.rows(task.i), cols = f.rows(task.j), diagonal = task.i == task.j;
    const int *place = tasks.pivots + f.tree->start[f.s] + f.first(task.j);
    bool moves = LU && task.part == UPPER_PART;
    tile.each([&](int r, int c, T &v) {
        bool inside = r < rows && c < cols;
        v = inside ? assembled()[r + c * ld] - v : diagonal && r == c ? one<T>() : zero<T>();
        block[r + (moves && inside ? place[c] : c) * ld] = v;
    });
    __syncthreads();
}

// kept ← the lower triangle of the w×w inverse.
__device__ inline void keep_inverse(const T *inverse, T *kept, int w) {
    if (w == SIZE) {
        constexpr int wide = Pack16<T>::count;
#pragma unroll 8
        for (int e = threadIdx.x * wide; e < SIZE * SIZE; e += threads * wide) {
            int r = e % SIZE, c = e / SIZE;
            auto pack = *reinterpret_cast<const Pack16<T> *>(inverse + r + c * ld);
#pragma unroll
            for (int i = 0; i < wide; ++i)
                if (r + i < c) pack.v[i] = zero<T>();
            *reinterpret_cast<Pack16<T> *>(kept + e) = pack;
        }
        return;
    }
#pragma unroll 4
    for (int e = threadIdx.x; e < SIZE * w; e += threads) {
        int r = e % SIZE, c = e / SIZE;
        if (r < w) kept[r + c * w] = r >= c ? inverse[r + c * ld] : zero<T>();
    }
}
__device__ inline void fetch_inverse(T *inverse, const T *kept, int w) {
    constexpr int wide = 16 / sizeof(T);
    if (w == SIZE) {
#pragma unroll 8
        for (int e = threadIdx.x * wide; e < SIZE * SIZE; e += threads * wide)
            copy_async<16>(inverse + e % SIZE + e / SIZE * ld, kept + e, true);
    } else {
        for (int e = threadIdx.x; e < SIZE * SIZE; e += threads) {
            int r = e % SIZE, c = e / SIZE;
            bool valid = r < w && c < w;
            copy_async<sizeof(T)>(inverse + r + c * ld, kept + (valid ? r + c * w : 0), valid);
        }
    }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
}

// Tell the tasks that need tile j of row i.
__device__ inline void publish(const Task &task, const Tasks &tasks) {
    int row = task.front.tree->tile_row[task.front.s] + task.i;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!LU || task.part == LOWER_PART) release(tasks.done + row, task.j + 1);
        if (LU && (task.part == UPPER_PART || task.i == task.j)) release(tasks.upper_done + row, task.j + 1);
    }
}

__device__ inline void wait_for_diagonal(const Task &task, const Tasks &tasks) {
    int row = task.front.tree->tile_row[task.front.s] + task.j;
    if (threadIdx.x == 0) wait_for(tasks.done + row, task.j + 1);
    __syncthreads();
}

// The others wait for the inverses alone, so they go out first. This function and those after it are
// kept apart from the code around them, which the compiler would else give too many registers.
__device__ __noinline__ void finish_cholesky(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j);
    T *block = work(), *inverse = assembled();
    int failed = potrf_tile(block, inverse, reinterpret_cast<real_t<T> *>(scratch()), w);
    keep_inverse(inverse, tasks.inverses + f.tree->inverse[f.s] + (long long)j * SIZE * SIZE, w);
    if (threadIdx.x == 0 && failed) tell_failure(tasks.outcome, f.tree->start[f.s] + j * SIZE + failed - 1);
    publish(task, tasks);
    Matrix<T> target = f.lower(j).at(0, j * SIZE);
#pragma unroll 8
    for (int e = threadIdx.x; e < SIZE * SIZE; e += threads) {
        int r = e % SIZE, c = e / SIZE;
        if (r >= c && r < w) target(r, c) = block[r + c * ld];
    }
}

#if LU
// For LU, where rows go: pivots[start + …] holds the place of each row of a diagonal tile until all
// is done (front_pivots makes LAPACK's interchanges of it).
__device__ __noinline__ void finish_lu(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j), row = threadIdx.x % SIZE;
    T *block = work(), *lower = assembled(), *ones = scratch(), *scales = ones + SIZE, *upper = scales + SIZE;
    LuTile<T> &lu = *reinterpret_cast<LuTile<T> *>(upper + (ROOMY ? tile_elements<T> : 0));
    int replaced = lu.factor(block, w, tasks.tiny);
    int *place = tasks.pivots + f.tree->start[f.s] + j * SIZE;
    if (threadIdx.x < w) place[threadIdx.x] = lu.place[threadIdx.x];
    if (threadIdx.x < SIZE) ones[row] = one<T>(), scales[row] = pivot_reciprocal(block[row * (ld + 1)]);
    __syncthreads();
    if constexpr (ROOMY) invert_both(block, lower, upper, ones, scales, w);
    else invert_lower(block, lower, ones, w);
    long long offset = f.tree->inverse[f.s] + (long long)j * SIZE * SIZE;
    keep_inverse(lower, tasks.inverses + offset, w);
    if constexpr (!ROOMY) {
        __syncthreads();
        invert_lower<true>(block, lower, scales, w);
        upper = lower;
    }
    keep_inverse(upper, tasks.upper_inverses + offset, w);
    if (threadIdx.x == 0 && replaced) atomicAdd(tasks.outcome + 1, replaced);
    publish(task, tasks);
    Matrix<T> target = f.lower(j).at(0, j * SIZE);
#pragma unroll 8
    for (int c = threadIdx.x / SIZE; c < w; c += threads / SIZE)
        if (row < w) target(row, c) = block[row + c * ld];
}
#endif

// L(i,j), or its like of the transpose of U: the block times the transpose of an inverse.
__device__ __noinline__ void finish_below(const Task &task, const Tasks &tasks) {
    constexpr int H = SIZE / 2;
    const Front<T> &f = task.front;
    T *block = work(), *inverse = assembled();
    int i = task.i, j = task.j, w = f.rows(j), m = f.rows(i);
    const T *kept = LU && task.part == LOWER_PART ? tasks.upper_inverses : tasks.inverses;
    fetch_inverse(inverse, kept + f.tree->inverse[f.s] + (long long)j * SIZE * SIZE, w);
    int warp = threadIdx.x / 32, i0 = warp % 2 * H, j0 = warp / 2 * H;
    WarpProduct<T, H, H> x;
    x.clear();  // the inverse is lower triangular: its first rows end after 32 columns
    x.template add<H, false, false, false, !LU>(block + i0, ld, inverse + j0, ld);
    if (j0) x.template add<H, false, false, false, !LU>(block + i0 + H * ld, ld, inverse + j0 + H * ld, ld);
    bool within = LU && task.part == UPPER_PART && i < f.pivot_tiles;  // U11, which is not transposed
    Matrix<T> target = (LU && task.part == UPPER_PART && !within ? f.upper(i) : f.lower(within ? j : i));
    target = target.at(0, (within ? i : j) * SIZE);
    x.each([&](int r, int c, T &v) {
        if (i0 + r < m && j0 + c < w) (within ? target(j0 + c, i0 + r) : target(i0 + r, j0 + c)) = v;
    });
    publish(task, tasks);
}

// A tile of the contribution block: written once, in the place of blocks that nobody reads any more.
__device__ inline void finish_contribution(Product &tile, const Task &task, const Tasks &tasks, T *blocks) {
    const Front<T> &f = task.front;
    if (threadIdx.x == 0 && task.level >= 2) wait_for(tasks.level + task.level - 2, tasks.level_count[task.level - 2]);
    __syncthreads();
    Contribution<T> block{blocks + f.tree->block[f.s], f.m};
    Matrix<T> target = block.tile(task.i - f.pivot_tiles, task.j - f.pivot_tiles);
    tile.each([&](int r, int c, T &v) {
        if (r < target.rows && c < target.cols) target(r, c) = assembled()[r + c * ld] - v;
    });
    __syncthreads();
    if (threadIdx.x == 0) release_add(tasks.finished + f.s, 1);
}

__device__ inline void run(const Task &task, const Tasks &tasks, T *blocks, const T *values) {
    const Front<T> &f = task.front;
    int i = task.i, j = task.j;
    Product tile;
    tile.clear();
    stamp(tasks, task.number, 0);
    assemble(task, tasks, blocks, values);
    stamp(tasks, task.number, 1);
    accumulate(tile, task, tasks);
    stamp(tasks, task.number, 2);
    if (j >= f.pivot_tiles) return finish_contribution(tile, task, tasks, blocks);
    bool moves = LU && task.part == UPPER_PART;  // by interchanges that the diagonal tile tells
    if (moves) wait_for_diagonal(task, tasks);
    subtract(tile, task, tasks, work());
    if (i > j) {
        if (!moves) wait_for_diagonal(task, tasks);
        return finish_below(task, tasks);
    }
#if LU
    finish_lu(task, tasks);
#else
    finish_cholesky(task, tasks);
#endif
}

extern "C" __global__ void __launch_bounds__(threads, residents) front_tiles(
    const __grid_constant__ Fronts tree, const __grid_constant__ Tasks tasks, T *factor, T *blocks, const T *values) {
    __shared__ Task task;  // in shared memory it takes no registers while others are needed
    for (;;) {
        if (threadIdx.x == 0) {
            task.number = atomicAdd(tasks.ticket, 1);
            if (task.number < tasks.count) {
                int4 item = tasks.list[task.number];
                task.front.set(tree, item.x, factor);
                task.i = item.y, task.j = item.z, task.level = item.w % PART_BIT, task.part = Part(item.w / PART_BIT);
            }
        }
        __syncthreads();
        if (task.number >= tasks.count) return;
        run(task, tasks, blocks, values);
        __syncthreads();
        if (threadIdx.x == 0) release_add(tasks.level + task.level, 1);
        stamp(tasks, task.number, 3);
    }
}
