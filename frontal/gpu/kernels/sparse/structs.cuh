// Structs and constants that kernels of fronts share with the host.
//
// Made by `python -m tests.structs` of frontal/gpu/sparse/structs.py; not to be edited.
#pragma once
#include "common/scalar.cuh"

// NVRTC 12 knows no __builtin_offsetof.
#ifndef OFFSET_OF
#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, field) __INTADDR__(&((type *)0)->field)
#else
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)
#endif
#endif

// Rows and columns of a tile of a front.
constexpr int FRONT_TILE = 64;
// Larger than any position of a pivot; see report_failure.
constexpr int NO_POSITION = 0x7fffffff;
// Largest entry of L: 1/u of threshold pivoting.
constexpr int LIMIT = 100;
// Bit of a task's epoch: the task is of U.
constexpr int PART_BIT = 0x40000000;
// Columns per block that interchanges rows.
constexpr int PIVOT_COLUMNS = 128;
// Threads of a block of front_tiles.cu and front_pivots.cu.
constexpr int TILE_THREADS = 128;
// Threads of a block of front_small.cu.
constexpr int SMALL_THREADS = 64;
// Columns of a panel of a small front.
constexpr int SMALL_PANEL = 16;
// Children whose index lists are fetched together.
constexpr int SMALL_CHILDREN = 4;
// Bytes of a child's list of row positions in the parent.
constexpr int MAP_BYTES = 64;
// Bits of a row and of a column in a small front.
constexpr int ENTRY_BITS = 6;
// Warps of a block that solves.
constexpr int SOLVE_WARPS = 8;
// Most rows of a front that one warp solves.
constexpr int SMALL_ROWS = 128;
// Leading dimension of their right-hand sides in shared memory.
constexpr int SMALL_LD = 132;
// Threads of a block of system.cu.
constexpr int SYSTEM_THREADS = 256;
// Probes of condition.cu per right-hand side.
constexpr int PROBES = 3;
// Largest accepted backward error of a row, in roundings.
constexpr int ACCEPTED = 16;
// Largest accepted asymmetry, in roundings.
constexpr int SYMMETRY = 16;
// Entries of a row from which its rounding counts less.
constexpr int LONG_ROW = 4096;
// Of row_error.cuh: roundings per unknown,
constexpr int TINY_ROW = 1000;
// at most the inverse of this.
constexpr int TINY_ROW_BOUND = 1000;
// Inverse of a certificate's fraction.
constexpr int LEAST_PART = 100;

// The assembly tree.
struct Fronts {
    // First pivot column of each front, and one more.
    const int *start;
    // First update row of each front, and one more.
    const long long *pointer;
    // Update rows.
    const int *rows;
    // First child of each front, and one more; then the children.
    const int *child_pointer;
    const int *children;
    // Offset of each front's panel in the factor, and of its contribution block in
    // the memory of the factor.
    const long long *panel;
    const long long *block;
    // Number of each front's first tile of rows among those of all fronts.
    const int *tile_row;
    // Of a child c, not of a small front: cuts[cut_pointer[c] + r] is the
    // position in the parent of row r of its m, and cuts[cut_pointer[c] + m + t] the first row
    // that falls in tile t.
    const long long *cut_pointer;
    const int *cuts;
};

// A front, with the number and the first of its children and of its entries of A.
struct alignas(16) SmallFront {
    long long entry;
    long long block;
    long long panel;
    int front;
    int start;
    int k;
    int m;
    int child;
    int children;
    int entries;
    long long spare;
};

// A child of a small front: offset and order of its contribution block, and its number.
struct alignas(16) SmallChild {
    long long block;
    int m;
    int front;
};

// The small fronts of a tree.
struct SmallFronts {
    const SmallFront *fronts;
    const SmallChild *children;
    // MAP_BYTES a child.
    const unsigned char *maps;
    // Entries of A: positions in the values; row and column, ENTRY_BITS each.
    const unsigned *sources;
    const unsigned short *places;
    // 1 for each front that has a contribution block.
    int *finished;
};

// Output of small fronts.
template <class T> struct SmallOutputs {
    T *factor;
    int *pivots;
    // LDL: D(j,j), and D(j+1,j) of 2×2 pivots, zero elsewhere.
    T *diagonal;
    T *coupling;
    // Largest entry of each column of L below its tile if above LIMIT; LDL, small: always.
    float *largest;
    // SIGNED: signs of the pivots, 0 for either.
    const signed char *signs;
    // See report_failure; then the number of replaced pivots.
    int *outcome;
    real_t<T> tiny;
};

// The entries of A of each task: positions in its tile and in the values.
struct Entries {
    // Of each task, and one more.
    const unsigned *begin;
    const unsigned *source;
    // row + FRONT_TILE·column.
    const unsigned short *place;
};

// The tasks of front_tiles.cu, and their messages.
template <class T> struct TileTasks {
    // {front, i, j, epoch + PART_BIT·part}
    const int4 *list;
    int count;
    Entries entries;
    // Tasks of each epoch; then the epochs that end before a front may write.
    const int *epoch_count;
    const int *need;
    int *ticket;
    // Tasks of each epoch that have ended; then the number of epochs that are over.
    int *epoch;
    int *over;
    int *finished;
    int *done;
    int *upper_done;
    // Factors of diagonal tiles as messages, 64×64 each; for LU two of them.
    T *sent;
    // First message of each front, and their number.
    const int *first_sent;
    // LDL: L·D of fronts being factorized; `product` has the offset of each front.
    T *products;
    const long long *product;
    int *pivots;
    // LDL: D(j,j), and D(j+1,j) of 2×2 pivots, zero elsewhere.
    T *diagonal;
    T *coupling;
    // Largest entry of each column of L below its tile if above LIMIT; LDL, small: always.
    float *largest;
    // SIGNED: signs of the pivots, 0 for either.
    const signed char *signs;
    // See report_failure; then the number of replaced pivots.
    int *outcome;
    real_t<T> tiny;
    // With TRACE: times at which a task began, was assembled, was summed, and ended.
    long long *trace;
};

// A front that one warp solves, or a part of a larger front.
struct alignas(16) SolveTask {
    // Offsets of the front's panels and update rows.
    long long panel;
    // First row of the front in message_pointer.
    long long rows;
    long long pointer;
    int start;
    int k;
    int m;
    // Forward: tile of rows; backward: tile of pivots.
    int tile;
    // Tiles of update rows, starting at `first` (backward) or `tile` (forward).
    int count;
    int first;
    // Backward: number of sums over update rows by other tasks, and the first sum.
    int parts;
    int partial;
    // Only forward, for a front of one warp.
    int has_children;
    // Rows of y before this front; a front of one warp has none.
    int y;
};

// A sweep over the fronts.
template <class T> struct Solve {
    // Tasks of this launch; those of small fronts from the leaves up.
    const SolveTask *tasks;
    // First message to each row of each front, and one more.
    const int *message_pointer;
    // Slot of the message of each update row.
    const int *slots;
    // LU and LDL: row of the tile that is interchanged into each pivot row.
    const unsigned char *place;
    // LDL: D(j,j), and D(j+1,j) of 2×2 pivots, zero elsewhere.
    const T *diagonal;
    const T *coupling;
    // Messages between the sweeps; fronts of one warp use z.
    T *y;
    // Right-hand sides.
    T *z;
    // The solution as messages, in the memory of those of update rows.
    T *x;
    T *messages;
    T *partial;
    // Initially -1.
    int *ticket;
    // Number of tasks.
    int count;
};

// Systems of one pattern; the index arrays are of the first system.
struct Trees {
    // Update rows; `up` has them for the first sweep, see tasks/warp_partition.py.
    const int *rows;
    const int *up;
    // Fronts of each warp of a team, then the fronts above; `begins` bounds each list.
    const int *order;
    const int *begins;
    // Pivot rows of the fronts above; `tops` is their number.
    const int *top;
    // Entry of a vector at each position of the elimination order.
    const int *into;
    const int *out;
    // Scaling of all systems; null without scaling.
    const double *scale_into;
    const double *scale_out;
    // Rows of op(A): pointers, columns in the order of elimination, and positions.
    const int *pointer;
    const int *column;
    const int *position;
    // Position of each unknown of op(A) in the elimination order.
    const int *place;
    // Values per system.
    long long entries;
    int systems;
    int fronts;
    int n;
    // Update rows per system.
    int updates;
    // Distance of vectors in shared memory, at least n.
    int ld;
    // Whether vectors (and, by conjugate_matrix, values of A) are conjugated.
    int conjugate;
    int conjugate_matrix;
    int tops;
};

// Limits of factors of a batch, see batch_checks.cu.
struct FactorLimits {
    // A number between 0 (symmetric values) and 1 (others).
    double asymmetry;
    double pivot_ratio;
    double unstable_columns;
    double growth;
};

// `ErrorLimits` of numeric/acceptance.py, and the largest products of errors and condition
// numbers without a warning: of the factor, and of a solution itself.
struct SolutionLimits {
    double normwise;
    double componentwise;
    double rowwise;
    double accepted;
    double smallest;
    double largest;
    double product;
    double eps;
    double tiny;
    double silent;
    double warned;
};

static_assert(sizeof(Fronts) == 80);
static_assert(OFFSET_OF(Fronts, start) == 0);
static_assert(OFFSET_OF(Fronts, pointer) == 8);
static_assert(OFFSET_OF(Fronts, rows) == 16);
static_assert(OFFSET_OF(Fronts, child_pointer) == 24);
static_assert(OFFSET_OF(Fronts, children) == 32);
static_assert(OFFSET_OF(Fronts, panel) == 40);
static_assert(OFFSET_OF(Fronts, block) == 48);
static_assert(OFFSET_OF(Fronts, tile_row) == 56);
static_assert(OFFSET_OF(Fronts, cut_pointer) == 64);
static_assert(OFFSET_OF(Fronts, cuts) == 72);

static_assert(sizeof(SmallFront) == 64);
static_assert(OFFSET_OF(SmallFront, entry) == 0);
static_assert(OFFSET_OF(SmallFront, block) == 8);
static_assert(OFFSET_OF(SmallFront, panel) == 16);
static_assert(OFFSET_OF(SmallFront, front) == 24);
static_assert(OFFSET_OF(SmallFront, start) == 28);
static_assert(OFFSET_OF(SmallFront, k) == 32);
static_assert(OFFSET_OF(SmallFront, m) == 36);
static_assert(OFFSET_OF(SmallFront, child) == 40);
static_assert(OFFSET_OF(SmallFront, children) == 44);
static_assert(OFFSET_OF(SmallFront, entries) == 48);
static_assert(OFFSET_OF(SmallFront, spare) == 56);

static_assert(sizeof(SmallChild) == 16);
static_assert(OFFSET_OF(SmallChild, block) == 0);
static_assert(OFFSET_OF(SmallChild, m) == 8);
static_assert(OFFSET_OF(SmallChild, front) == 12);

static_assert(sizeof(SmallFronts) == 48);
static_assert(OFFSET_OF(SmallFronts, fronts) == 0);
static_assert(OFFSET_OF(SmallFronts, children) == 8);
static_assert(OFFSET_OF(SmallFronts, maps) == 16);
static_assert(OFFSET_OF(SmallFronts, sources) == 24);
static_assert(OFFSET_OF(SmallFronts, places) == 32);
static_assert(OFFSET_OF(SmallFronts, finished) == 40);

static_assert(sizeof(SmallOutputs<SCALAR>) == 64);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, factor) == 0);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, pivots) == 8);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, diagonal) == 16);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, coupling) == 24);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, largest) == 32);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, signs) == 40);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, outcome) == 48);
static_assert(OFFSET_OF(SmallOutputs<SCALAR>, tiny) == 56);

static_assert(sizeof(Entries) == 24);
static_assert(OFFSET_OF(Entries, begin) == 0);
static_assert(OFFSET_OF(Entries, source) == 8);
static_assert(OFFSET_OF(Entries, place) == 16);

static_assert(sizeof(TileTasks<SCALAR>) == 200);
static_assert(OFFSET_OF(TileTasks<SCALAR>, list) == 0);
static_assert(OFFSET_OF(TileTasks<SCALAR>, count) == 8);
static_assert(OFFSET_OF(TileTasks<SCALAR>, entries) == 16);
static_assert(OFFSET_OF(TileTasks<SCALAR>, epoch_count) == 40);
static_assert(OFFSET_OF(TileTasks<SCALAR>, need) == 48);
static_assert(OFFSET_OF(TileTasks<SCALAR>, ticket) == 56);
static_assert(OFFSET_OF(TileTasks<SCALAR>, epoch) == 64);
static_assert(OFFSET_OF(TileTasks<SCALAR>, over) == 72);
static_assert(OFFSET_OF(TileTasks<SCALAR>, finished) == 80);
static_assert(OFFSET_OF(TileTasks<SCALAR>, done) == 88);
static_assert(OFFSET_OF(TileTasks<SCALAR>, upper_done) == 96);
static_assert(OFFSET_OF(TileTasks<SCALAR>, sent) == 104);
static_assert(OFFSET_OF(TileTasks<SCALAR>, first_sent) == 112);
static_assert(OFFSET_OF(TileTasks<SCALAR>, products) == 120);
static_assert(OFFSET_OF(TileTasks<SCALAR>, product) == 128);
static_assert(OFFSET_OF(TileTasks<SCALAR>, pivots) == 136);
static_assert(OFFSET_OF(TileTasks<SCALAR>, diagonal) == 144);
static_assert(OFFSET_OF(TileTasks<SCALAR>, coupling) == 152);
static_assert(OFFSET_OF(TileTasks<SCALAR>, largest) == 160);
static_assert(OFFSET_OF(TileTasks<SCALAR>, signs) == 168);
static_assert(OFFSET_OF(TileTasks<SCALAR>, outcome) == 176);
static_assert(OFFSET_OF(TileTasks<SCALAR>, tiny) == 184);
static_assert(OFFSET_OF(TileTasks<SCALAR>, trace) == 192);

static_assert(sizeof(SolveTask) == 64);
static_assert(OFFSET_OF(SolveTask, panel) == 0);
static_assert(OFFSET_OF(SolveTask, rows) == 8);
static_assert(OFFSET_OF(SolveTask, pointer) == 16);
static_assert(OFFSET_OF(SolveTask, start) == 24);
static_assert(OFFSET_OF(SolveTask, k) == 28);
static_assert(OFFSET_OF(SolveTask, m) == 32);
static_assert(OFFSET_OF(SolveTask, tile) == 36);
static_assert(OFFSET_OF(SolveTask, count) == 40);
static_assert(OFFSET_OF(SolveTask, first) == 44);
static_assert(OFFSET_OF(SolveTask, parts) == 48);
static_assert(OFFSET_OF(SolveTask, partial) == 52);
static_assert(OFFSET_OF(SolveTask, has_children) == 56);
static_assert(OFFSET_OF(SolveTask, y) == 60);

static_assert(sizeof(Solve<SCALAR>) == 104);
static_assert(OFFSET_OF(Solve<SCALAR>, tasks) == 0);
static_assert(OFFSET_OF(Solve<SCALAR>, message_pointer) == 8);
static_assert(OFFSET_OF(Solve<SCALAR>, slots) == 16);
static_assert(OFFSET_OF(Solve<SCALAR>, place) == 24);
static_assert(OFFSET_OF(Solve<SCALAR>, diagonal) == 32);
static_assert(OFFSET_OF(Solve<SCALAR>, coupling) == 40);
static_assert(OFFSET_OF(Solve<SCALAR>, y) == 48);
static_assert(OFFSET_OF(Solve<SCALAR>, z) == 56);
static_assert(OFFSET_OF(Solve<SCALAR>, x) == 64);
static_assert(OFFSET_OF(Solve<SCALAR>, messages) == 72);
static_assert(OFFSET_OF(Solve<SCALAR>, partial) == 80);
static_assert(OFFSET_OF(Solve<SCALAR>, ticket) == 88);
static_assert(OFFSET_OF(Solve<SCALAR>, count) == 96);

static_assert(sizeof(Trees) == 144);
static_assert(OFFSET_OF(Trees, rows) == 0);
static_assert(OFFSET_OF(Trees, up) == 8);
static_assert(OFFSET_OF(Trees, order) == 16);
static_assert(OFFSET_OF(Trees, begins) == 24);
static_assert(OFFSET_OF(Trees, top) == 32);
static_assert(OFFSET_OF(Trees, into) == 40);
static_assert(OFFSET_OF(Trees, out) == 48);
static_assert(OFFSET_OF(Trees, scale_into) == 56);
static_assert(OFFSET_OF(Trees, scale_out) == 64);
static_assert(OFFSET_OF(Trees, pointer) == 72);
static_assert(OFFSET_OF(Trees, column) == 80);
static_assert(OFFSET_OF(Trees, position) == 88);
static_assert(OFFSET_OF(Trees, place) == 96);
static_assert(OFFSET_OF(Trees, entries) == 104);
static_assert(OFFSET_OF(Trees, systems) == 112);
static_assert(OFFSET_OF(Trees, fronts) == 116);
static_assert(OFFSET_OF(Trees, n) == 120);
static_assert(OFFSET_OF(Trees, updates) == 124);
static_assert(OFFSET_OF(Trees, ld) == 128);
static_assert(OFFSET_OF(Trees, conjugate) == 132);
static_assert(OFFSET_OF(Trees, conjugate_matrix) == 136);
static_assert(OFFSET_OF(Trees, tops) == 140);

static_assert(sizeof(FactorLimits) == 32);
static_assert(OFFSET_OF(FactorLimits, asymmetry) == 0);
static_assert(OFFSET_OF(FactorLimits, pivot_ratio) == 8);
static_assert(OFFSET_OF(FactorLimits, unstable_columns) == 16);
static_assert(OFFSET_OF(FactorLimits, growth) == 24);

static_assert(sizeof(SolutionLimits) == 88);
static_assert(OFFSET_OF(SolutionLimits, normwise) == 0);
static_assert(OFFSET_OF(SolutionLimits, componentwise) == 8);
static_assert(OFFSET_OF(SolutionLimits, rowwise) == 16);
static_assert(OFFSET_OF(SolutionLimits, accepted) == 24);
static_assert(OFFSET_OF(SolutionLimits, smallest) == 32);
static_assert(OFFSET_OF(SolutionLimits, largest) == 40);
static_assert(OFFSET_OF(SolutionLimits, product) == 48);
static_assert(OFFSET_OF(SolutionLimits, eps) == 56);
static_assert(OFFSET_OF(SolutionLimits, tiny) == 64);
static_assert(OFFSET_OF(SolutionLimits, silent) == 72);
static_assert(OFFSET_OF(SolutionLimits, warned) == 80);
