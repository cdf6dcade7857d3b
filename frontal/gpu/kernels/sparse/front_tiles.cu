// Factorization of all fronts of an assembly tree that are not small, as tasks of one launch: A =
// L·Lᴴ, or with P inside the diagonal tiles P·A = L·U (LU) or P·A·Pᵀ = L·D·Lᴴ (LDL). The method is
// in front.cuh; fronts as tasks of tiles: Hogg, Reid, Scott, "Design of a multicore sparse Cholesky
// factorization using DAGs" (2010).
//
// A task is a tile (i, j) of 64×64 of a front, from its assembly to its end:
//   C = A(i,j) + Σ children − Σ_{p<j} L(i,p)·L(j,p)ᴴ;   i = j: L(j,j), and its inverse V;
//   i > j: L(i,j) = C·Vᴴ;   j a tile of update rows: C is a tile of the contribution block.
// Without LU the task (i, i) sums only over p < i-1 and stores C; the task (i, i-1), after
// L(i,i-1), subtracts its square and computes L(i,i), for which all others wait. Columns of L(j,j)
// are sent as soon as they are computed: L(i,j) follows (tile_lookahead.cuh) without waiting for V,
// unless there would be too many messages. With D the second factor is L·D, stored beside L while
// the front is factored; if the diagonal tile needs pivots of order 2, L(i,j) waits for V, and is
// C·Vᴴ·D⁻¹ with columns of C interchanged like those of the diagonal tile.
// With LU the second factor is U(p,j), and there are tasks for the transpose of U with the factors
// exchanged: C·Vᵀ with V the inverse of L(j,j). They and the tasks of L follow while the diagonal
// tile needs no interchange.
//
// Deadlock: in the list tasks come after all tasks that they wait for, and are taken by tickets
// (scheduler.cuh); a sender of columns waits for no follower. Flags, zero at first: done[row]
// counts the finished tiles of a row of tiles of L; upper_done[row] those of U, or that C of a
// diagonal tile is stored; finished[front] the tiles of its contribution block; epoch[e] the
// finished tasks of an epoch. A front is stored over contribution blocks that were last read in an
// earlier epoch, which must be complete, as all before it.
// Every tile is summed in one order: results are reproducible.
//
// A block has 128 threads; 2×2 warps own 32×32 parts of the tile in registers (tile.cuh). Dynamic
// shared memory: the slices of the product, then in their place the tile; the assembled tile, then
// in its place an inverse; and scratch, which with LU holds the other inverse if TWO_INVERSES. A
// tile that follows another stays in the place of the assembled one, and the factor takes that of
// the slices. If a device has too little, the second of these parts (OUTSIDE 1), or both (2), are
// each block's part of a workspace in global memory.
#include "sparse/front_gather.cuh"
#include "sparse/getf2_tile.cuh"
#include "common/scheduler.cuh"
#include "common/tile.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_lookahead.cuh"
#include "sparse/tile_inverse.cuh"
#include "sparse/tile_square.cuh"

#ifndef TRACE
#define TRACE 0
#endif
#ifndef TWO_INVERSES
#define TWO_INVERSES 1
#endif

using T = SCALAR;
constexpr int SIZE = TILE_ROWS, ld = tile_ld<T>, threads = TILE_THREADS;
constexpr int residents = sizeof(T) == 16 ? 1 : LU ? 2 : 3;
using Product = Tile<T, SIZE, SIZE, 8, 2, 2, 4, same_type<T, double>>;
// For the operands that need the most memory.
constexpr int slices = Product::template elements_of<NoTrans, (LU ? NoTrans : ConjTrans)>;
constexpr int work_elements = slices > tile_elements<T> ? slices : tile_elements<T>;

// Per diagonal tile: columns, and with LDL the places of rows after each 16 of them.
constexpr int MESSAGES = LU ? 2 * SIZE * SIZE : LDL ? SIZE * (SIZE + 4) : SIZE * SIZE;

using Tasks = TileTasks<T>;

// The current task, for all threads.
struct Task {
    Front<T> front;
    Matrix<T> row;     // tile row i of L
    Matrix<T> other;   // without LU: tile row j of the second factor,
    Triangle<T> kept;  // and the inverse in tile row j of L
    T *sent;           // messages of the front's first diagonal tiles
    T *product;        // L·D
    int number, i, j, epoch, need, sent_tiles;
    Part part;
};

#if OUTSIDE
// The address of this block's part of the workspace.
__device__ inline T *&outside() {
    __shared__ T *part;
    return part;
}
#endif
__device__ inline T *work() {
#if OUTSIDE > 1
    return outside() + tile_elements<T>;
#else
    return shared_memory<T>();
#endif
}
__device__ inline T *assembled() {
#if OUTSIDE
    return outside();
#else
    return work() + work_elements;
#endif
}
// Scratch: 64 reals, or the memory of LU or LDL.
__device__ inline T *scratch() {
#if OUTSIDE
    return shared_memory<T>() + (OUTSIDE > 1 ? 0 : work_elements);
#else
    return assembled() + tile_elements<T>;
#endif
}

// The messages of diagonal tile j: of L, and with LU behind them of the transpose of U.
__device__ inline T *messages(const Task &task, int j) { return task.sent + j * MESSAGES; }

__device__ inline void stamp(const Tasks &tasks, int task, int phase) {
    if (TRACE && threadIdx.x == 0) tasks.trace[4 * task + phase] = nanoseconds();
}

// Return the part of child number q of the tree's list, when it is finished; for one thread.
__device__ inline ChildPart wait_for_child(const Task &task, const Tasks &tasks, int q) {
    const Fronts &tree = *task.front.tree;
    int c = tree.children[q];
    ChildPart p = child_part(tree, c, task.part, task.i, task.j);
    int tiles = ceil_div(p.m, FRONT_TILE);
    if (p.r0 < p.r1 && p.c0 < p.c1)
        wait_for(tasks.finished + c, LU ? tiles * tiles : tiles * (tiles + 1) / 2);
    return p;
}

// Wait until all readers of the memory that the front takes have finished. For one thread; the
// others wait for it.
__device__ inline void wait_for_place(const Task &task, const Tasks &tasks) {
    if (!task.need) return;
    int over = acquire(tasks.over), need = task.need;
    if (over >= need) return;
    for (; over < need; ++over) wait_for(tasks.epoch + over, tasks.epoch_count[over]);
    release_max(tasks.over, need);  // spares later tasks the check of each epoch
}

__device__ inline void assemble(
    const Task &task, const Tasks &tasks, const T *factor, const T *values) {
    const Front<T> &f = task.front;
    const Fronts &tree = *f.tree;
    constexpr int TOGETHER = 32;
    __shared__ ChildPart parts[TOGETHER];
    int begin = tree.child_pointer[f.s], last = tree.child_pointer[f.s + 1];
    T *tile = assembled();
    clear_tile<ld>(tile);
    __syncthreads();
    if (threadIdx.x == threads - 1 && task.j < f.pivot_tiles) wait_for_place(task, tasks);
    // one warp waits for the first children while the others add entries
    if (threadIdx.x >= 32) add_entries<ld>(tile, tasks.entries, task.number, values, 32);
    for (int first = begin; first < last; first += TOGETHER) {
        if (first > begin) __syncthreads();  // all have added the previous children
        if (threadIdx.x < min_(TOGETHER, last - first))
            parts[threadIdx.x] = wait_for_child(task, tasks, first + threadIdx.x);
        __syncthreads();
        for (int q = 0; q < min_(TOGETHER, last - first); ++q) {
            if (parts[q].r0 == parts[q].r1 || parts[q].c0 == parts[q].c1) continue;
            extend_add<ld>(tile, f, parts[q], task.part, task.i, task.j, factor);
            __syncthreads();
        }
    }
    __syncthreads();
}

// The part of L·D that corresponds to a part of L.
__device__ inline Matrix<T> times_d(const Task &task, Matrix<T> lower) {
    lower.data = task.product + (lower.data - task.front.panel);
    return lower;
}

__device__ __forceinline__ void accumulate(Product &tile, const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int i = task.i, j = task.j, base = f.tree->tile_row[f.s], limit = min_(j, f.pivot_tiles);
    if (!LU && i == j && 0 < j && j < f.pivot_tiles) --limit;  // the task (i, i-1) takes the last
    const int *lower = tasks.done + base, *upper = (LU ? tasks.upper_done : tasks.done) + base;
    bool swapped = task.part == UPPER_PART;
    for (int p = 0; p < limit;) {
        int ready =
            wait_beyond((swapped ? upper : lower) + i, (swapped ? lower : upper) + j, p, limit);
        int first = p * SIZE, depth = (ready - p) * SIZE;
        auto columns = [&](Matrix<T> row) { return row.at(0, first, SIZE, depth); };
        if constexpr (!LU) {
            tile.template multiply<NoTrans, (conjugates ? ConjTrans : Transposed), true>(
                columns(task.row), columns(task.other), work());
        } else {
            auto above = [&](int c) {  // U(p…, c) in the diagonal block
                return Matrix<T>{f.panel + (long long)SIZE * c * f.ld(c), f.k, f.rows(c), f.ld(c)}
                    .at(first, 0, depth);
            };
            if (swapped && i < f.pivot_tiles)
                tile.template multiply<Transposed, Transposed, true>(
                    above(i), columns(f.lower(j)), work());
            else if (!swapped && j < f.pivot_tiles)
                tile.template multiply<NoTrans, NoTrans, true>(
                    columns(f.lower(i)), above(j), work());
            else
                tile.template multiply<NoTrans, Transposed, true>(
                    columns(swapped ? f.upper(i) : f.lower(i)),
                    columns(swapped ? f.lower(j) : f.upper(j)), work());
        }
        p = ready;
    }
}

// block = assembled − tile. Rows and columns beyond a partial tile become those of the identity, or
// zeros.
__device__ inline void subtract(Product &tile, const Task &task, T *block) {
    const Front<T> &f = task.front;
    int rows = f.rows(task.i), cols = f.rows(task.j), diagonal = task.i == task.j;
    tile.each([&](int r, int c, T &v) {
        bool inside = r < rows && c < cols;
        v = inside ? assembled()[r + c * ld] - v : diagonal && r == c ? one<T>() : zero<T>();
        block[r + c * ld] = v;
    });
    __syncthreads();
}

// Publish tile j of the task's row, of L or of U.
__device__ inline void publish(const Task &task, const Tasks &tasks, int j, bool of_upper = false) {
    int row = task.front.tree->tile_row[task.front.s] + task.i;
    publish((of_upper ? tasks.upper_done : tasks.done) + row, j + 1);
}

__device__ inline void wait_for_diagonal(const Task &task, const Tasks &tasks) {
    int row = task.front.tree->tile_row[task.front.s] + task.j;
    if (threadIdx.x == 0) wait_for(tasks.done + row, task.j + 1);
    __syncthreads();
}

// Return whether L(i,j), or its counterpart of U, follows the factor of the diagonal tile.
__device__ inline bool follows(const Task &task) {
    return task.i > task.j && task.j < task.sent_tiles;
}

#include "sparse/tile_trailing.cuh"
#if LDL
#include "sparse/ldl_tasks.cuh"
#elif LU
#include "sparse/lu_tasks.cuh"
#else
#include "sparse/cholesky_tasks.cuh"
#endif

// Store the assembled tile minus the product for other tasks, and increase `flag` by one.
__device__ inline void store_difference(Product &tile, Matrix<T> target, int *flag) {
    tile.each([&](int r, int c, T &v) {
        if (r < target.rows && c < target.cols) target(r, c) = assembled()[r + c * ld] - v;
    });
    __syncthreads();
    if (threadIdx.x == 0) release_add(flag, 1);
}

// Store a tile of the contribution block: written once, over blocks without further readers.
__device__ inline void finish_contribution(
    Product &tile, const Task &task, const Tasks &tasks, T *factor) {
    const Front<T> &f = task.front;
    if (threadIdx.x == 0) wait_for_place(task, tasks);
    __syncthreads();
    Contribution<T> block{factor + f.tree->block[f.s], f.m};
    store_difference(
        tile, block.tile(task.i - f.pivot_tiles, task.j - f.pivot_tiles), tasks.finished + f.s);
}

// Subtract the product from the assembled tile. The result goes to work(); below a diagonal tile,
// whose factor or inverse will take work(), it stays in place; or it is stored for other tasks.
__device__ __noinline__ void sum_up(const Task &task, const Tasks &tasks, T *factor) {
    const Front<T> &f = task.front;
    int j = task.j;
    Product tile;
    tile.clear();
    accumulate(tile, task, tasks);
    stamp(tasks, task.number, 2);
    if (j >= f.pivot_tiles) return finish_contribution(tile, task, tasks, factor);
    if (!LU && task.i == j && j)
        return store_difference(
            tile, task.row.at(0, j * SIZE), tasks.upper_done + f.tree->tile_row[f.s] + j);
    subtract(tile, task, task.i > j ? assembled() : work());
}

__device__ inline void run(const Task &task, const Tasks &tasks, T *factor, const T *values) {
    int i = task.i, j = task.j, pivots = task.front.pivot_tiles;
    stamp(tasks, task.number, 0);
    assemble(task, tasks, factor, values);
    stamp(tasks, task.number, 1);
    sum_up(task, tasks, factor);
    if (j >= pivots) return;
#if LU
    if (i == j) return finish_lu(task, tasks);
    int done = follows(task) ? follow(task, tasks) : 0;
    if (done < task.front.rows(j)) finish_beside(task, tasks, done);
#elif LDL
    if (i == j && j) return;
    bool next = i == j + 1 && i < pivots, put = false;
    if (i > j) {
        int done = follows(task) ? follow(task, tasks, next) : 0;
        put = next && done == SIZE;
        if (done < task.front.rows(j)) {
            finish_below(task, tasks, done);
            if (next) prepare_diagonal(task, tasks);
        }
        if (!next) return;
    }
    finish_ldl(task, tasks);
    if (put) put_lower(task, tasks, kept_reciprocals(), ld, SIZE);
    return;
#else
    if (i == j && j) return;
    bool next = i == j + 1 && i < pivots;
    if (next) prepare_diagonal(task, tasks);
    if (next || i == j) return finish_cholesky(task, tasks);
    if (follows(task)) return follow(task, tasks);
    finish_below(task, tasks);
#endif
}

extern "C" __global__ void __launch_bounds__(threads, residents)
    front_tiles(const __grid_constant__ Fronts tree, const __grid_constant__ Tasks tasks, T *factor,
        const T *values, T *workspace) {
    __shared__ Task task;  // in shared memory it takes no registers
#if OUTSIDE
    constexpr int own = tile_elements<T> + (OUTSIDE > 1 ? work_elements : 0);
    if (threadIdx.x == 0) outside() = workspace + (long long)blockIdx.x * own;
#endif
    auto fetch = [&] {
        int4 item = tasks.list[task.number];
        task.front.set(tree, item.x, factor);
        const int *sent = tasks.first_sent + 2 * item.x;
        task.sent = tasks.sent + (long long)sent[0] * MESSAGES, task.sent_tiles = sent[1];
        if (LDL) task.product = tasks.products + tasks.product[item.x];
        task.i = item.y, task.j = item.z, task.epoch = item.w % PART_BIT,
        task.part = Part(item.w / PART_BIT), task.need = tasks.need[item.x];
        task.row = task.front.lower(task.i);
        if (!LU) task.other = task.front.lower(task.j), task.kept = task.front.inverse(task.other);
        if (LDL) task.other = times_d(task, task.other);
    };
    auto end = [&] {
        if (threadIdx.x == 0) release_add(tasks.epoch + task.epoch, 1);
        stamp(tasks, task.number, 3);
    };
    each_task(
        task.number, tasks.ticket, tasks.count, fetch, [&] { run(task, tasks, factor, values); },
        end);
}
