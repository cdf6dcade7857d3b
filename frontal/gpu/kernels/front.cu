// What fronts gather: contribution blocks of their children, entries of A, rows of right-hand sides.
//
// front_assemble: the tile of 32×32 at (i, j) of a part of front item.x: item.w 0 is the panel, 1 the
// contribution block, 2 the transpose of U12; one block of 256 threads a tile. For each child in
// order, the child's rows and columns that fall into the tile are a range each, since row maps
// ascend; their rectangle is added in shared memory, and the tile is written once. So sums have one
// order whatever runs when. LOWER (Cholesky): only the lower triangles count.
// front_entries: a thread an entry of A: factor[target] += values[source]; targets differ.
// front_swap: interchanges columns of the transpose of U12 as rows of the diagonal block were; a
// thread a row.
// front_forward: a block a front and right-hand side. Adds what children take off x: to x in the
// rows that are pivots, to the front's own vector in the others.
// front_backward: likewise; the front's vector becomes the rows of x above it.
// Vectors of `width` right-hand sides are column-major with as many rows as the front has updates.
#include "device/matrix.cuh"

#ifndef LOWER
#define LOWER 1
#endif

using T = SCALAR;
constexpr int SIZE = 32, FRONT_THREADS = 256, TILE_LD = SIZE + 1;

// The assembly tree on the device; see plan.Plan.
struct Fronts {
    const int *start;             // first pivot column of each front, and one more
    const long long *pointer;     // where the update rows of each front begin, and one more
    const int *rows, *relative;   // update rows, and their positions in the parent
    const int *child_pointer, *children;
    const long long *panel, *block, *vector;  // places in the factor and in the arenas

    __device__ int pivots(int s) const { return start[s + 1] - start[s]; }
    __device__ int updates(int s) const { return (int)(pointer[s + 1] - pointer[s]); }
};

// How many of the ascending `count` numbers are below `bound`.
__device__ inline int count_below(const int *numbers, int count, int bound) {
    int low = 0;
    while (low < count) {
        int middle = (low + count) / 2;
        if (numbers[middle] < bound) low = middle + 1;
        else count = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(FRONT_THREADS, 4) front_assemble(
    Fronts f, const int4 *work, T *factor, T *blocks) {
    __shared__ T tile[SIZE * TILE_LD];
    __shared__ int range[4];
    int4 item = work[blockIdx.x];
    int s = item.x, k = f.pivots(s), m = f.updates(s), below = item.w ? k : 0, right = item.w == 1 ? k : 0;
    int i0 = item.y + below, j0 = item.z + right, i1 = min_(i0 + SIZE, k + m), j1 = min_(j0 + SIZE, right ? k + m : k);
    for (int e = threadIdx.x; e < SIZE * TILE_LD; e += FRONT_THREADS) tile[e] = zero<T>();
    for (int q = f.child_pointer[s]; q < f.child_pointer[s + 1]; ++q) {
        int c = f.children[q], size = f.updates(c);
        const int *map = f.relative + f.pointer[c];
        __syncthreads();
        if (threadIdx.x < 4) {
            int bound = threadIdx.x == 0 ? i0 : threadIdx.x == 1 ? i1 : threadIdx.x == 2 ? j0 : j1;
            range[threadIdx.x] = count_below(map, size, bound);
        }
        __syncthreads();
        int r0 = range[0], c0 = range[2], down = range[1] - r0, across = range[3] - c0;
        const T *source = blocks + f.block[c];
        for (int e = threadIdx.x; e < down * across; e += FRONT_THREADS) {
            int r = r0 + e % down, column = c0 + e / down;
            if (LOWER && r < column) continue;
            T &entry = tile[map[r] - i0 + (map[column] - j0) * TILE_LD];
            entry = entry + source[item.w == 2 ? column + (long long)r * size : r + (long long)column * size];
        }
    }
    __syncthreads();
    Matrix<T> target{factor + f.panel[s], k + m, k, k + m};
    if (item.w == 1) target = {blocks + f.block[s], m, m, m};
    if (item.w == 2) target = {factor + f.panel[s] + (long long)k * (k + m), m, k, m};
    target = target.at(item.y, item.z, SIZE, SIZE);
    for (int e = threadIdx.x; e < SIZE * SIZE; e += FRONT_THREADS) {
        int i = e % SIZE, j = e / SIZE;
        if (i < target.rows && j < target.cols) target(i, j) = tile[i + j * TILE_LD];
    }
}

extern "C" __global__ void __launch_bounds__(FRONT_THREADS) front_entries(
    const long long *source, const long long *target, long long count, const T *values, T *factor) {
    long long e = (long long)blockIdx.x * FRONT_THREADS + threadIdx.x;
    if (e < count) factor[target[e]] = factor[target[e]] + values[source[e]];
}

// pivots: from 1, those of front s from start[s] on.
extern "C" __global__ void __launch_bounds__(FRONT_THREADS) front_swap(
    Fronts f, const int4 *work, const int *pivots, T *factor) {
    int4 item = work[blockIdx.x];
    int s = item.x, k = f.pivots(s), m = f.updates(s), row = item.y + threadIdx.x;
    if (row >= m) return;
    T *upper = factor + f.panel[s] + (long long)k * (k + m) + row;
    for (int j = 0; j < k; ++j) {
        int p = pivots[f.start[s] + j] - 1;
        if (p == j) continue;
        T &a = upper[(long long)j * m], &b = upper[(long long)p * m], v = a;
        a = b, b = v;
    }
}

extern "C" __global__ void __launch_bounds__(FRONT_THREADS) front_forward(
    Fronts f, const int *list, T *x, int n, T *vectors, int width) {
    int s = list[blockIdx.x], column = blockIdx.y, k = f.pivots(s), m = f.updates(s);
    T *own = vectors + f.vector[s] * width + (long long)column * m, *pivots = x + f.start[s] + (long long)column * n;
    for (int i = threadIdx.x; i < m; i += FRONT_THREADS) own[i] = zero<T>();
    for (int q = f.child_pointer[s]; q < f.child_pointer[s + 1]; ++q) {
        int c = f.children[q], size = f.updates(c);
        const int *map = f.relative + f.pointer[c];
        const T *source = vectors + f.vector[c] * width + (long long)column * size;
        __syncthreads();
        for (int r = threadIdx.x; r < size; r += FRONT_THREADS) {
            T &entry = map[r] < k ? pivots[map[r]] : own[map[r] - k];
            entry = entry + source[r];
        }
    }
}

extern "C" __global__ void __launch_bounds__(FRONT_THREADS) front_backward(
    Fronts f, const int *list, T *x, int n, T *vectors, int width) {
    int s = list[blockIdx.x], column = blockIdx.y, m = f.updates(s);
    T *own = vectors + f.vector[s] * width + (long long)column * m;
    const int *rows = f.rows + f.pointer[s];
    for (int i = threadIdx.x; i < m; i += FRONT_THREADS) own[i] = x[rows[i] + (long long)column * n];
}
