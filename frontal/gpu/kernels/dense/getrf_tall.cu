// A panel of LU with partial pivoting that is too tall for one block: `gridDim.x` ≤ 32 blocks share
// the panel of one matrix; a launch has `gridDim.y` matrices.
//
// As getrf_panel.cu, with one row per thread; block x owns rows x·blockDim.x…. For each column,
// every block writes its candidate and the candidate's row to global memory and waits for the other
// blocks.
// Deadlock: a block waits only for blocks of its own panel, and increments the counter before it
// waits, so all make progress once the whole panel is resident. Precondition: the host launches no
// more blocks than fit on the device together. Two sets of candidates alternate: no block writes
// those of column k+2 before all have written those of k+1, and so have read those of k.
//   order, first  matrices of this launch: order[first + blockIdx.y]; null for their own order
//   exchange      for each matrix of the launch 2·gridDim.x candidates and as many rows
//   arrived       a counter for each matrix and panel, zero at first, as is the length of each list
//                 of `moves`
#include "dense/getf2.cuh"
#include "dense/laswp.cuh"

#ifndef PANEL
#define PANEL 16
#endif

using T = SCALAR;
constexpr int TALL_THREADS = 512;

// Read a value that another block wrote.
__device__ inline float fresh(const float *p) { return __ldcg(p); }
__device__ inline double fresh(const double *p) { return __ldcg(p); }
template <class R> __device__ inline complex<R> fresh(const complex<R> *p) {
    return {fresh(&p->re), fresh(&p->im)};
}

// The exchange by which the blocks of a panel choose a pivot. One warp of each block communicates;
// `chosen` and `row` are in shared memory.
struct Meeting {
    Candidate *candidates;  // [2][blocks] of this matrix, and as many rows
    int *arrived;
    Candidate *chosen;
    T *row;

    __device__ const T *operator()(int k, Candidate &c, const T *own) const {
        int blocks = gridDim.x, lane = threadIdx.x & 31;
        Candidate *slots = candidates + k % 2 * blocks;
        T *rows = reinterpret_cast<T *>(candidates + 2 * blocks) + k % 2 * blocks * PANEL;
        if (threadIdx.x < 32) {
            if (lane < PANEL) rows[blockIdx.x * PANEL + lane] = own[lane];
            if (lane == 0) slots[blockIdx.x] = c;
            __syncwarp();
            if (lane == 0) {
                __threadfence();
                atomicAdd(arrived, 1);
                while (acquire(arrived) < blocks * (k + 1)) {}
            }
            __syncwarp();
            const int *slot = reinterpret_cast<const int *>(slots + (lane < blocks ? lane : 0));
            Candidate other{
                (unsigned)__ldcg(slot), (unsigned)__ldcg(slot + 1), __ldcg(slot + 2), 0};
            int winner = Panel<T, PANEL, 1>::best_of(blocks, other);
            if (lane < PANEL) row[lane] = fresh(rows + max_(winner, 0) * PANEL + lane);
            if (lane == 0) *chosen = other;
        }
        __syncthreads();
        c = *chosen;
        return row;
    }
};

template <class Source, class Pivots>
__device__ void getrf_tall(Source source, Pivots pivots, const int *order, int first, int j0,
    int *moves, int panels, int *info, unsigned char *exchange, int *arrived, real_t<T> tiny) {
    __shared__ int found[PANEL];
    __shared__ Candidate chosen;
    __shared__ __align__(16) unsigned char pivot_row[PANEL * sizeof(T)];
    int b = order ? order[first + blockIdx.y] : first + blockIdx.y, panel = j0 / PANEL;
    Matrix<T> a = source(b);
    int steps = min_(PANEL, min_(a.rows, a.cols) - j0);
    if (steps <= 0) return;
    a = a.at(j0, j0, a.rows, steps);
    int row = blockIdx.x * blockDim.x + threadIdx.x, position[1] = {row < a.rows ? row : -1};
    T entries[1][PANEL], *entry = a.data + row;
#pragma unroll
    for (int k = 0; k < PANEL; ++k, entry += a.ld)
        entries[0][k] = position[0] >= 0 && k < steps ? *entry : zero<T>();
    int bytes = 2 * gridDim.x * (int)(sizeof(Candidate) + PANEL * sizeof(T));
    Meeting meeting{reinterpret_cast<Candidate *>(exchange + (long long)blockIdx.y * bytes),
        arrived + (long long)b * panels + panel, &chosen, reinterpret_cast<T *>(pivot_row)};
    int failure = Panel<T, PANEL, 1>::factor(
        entries, position, steps, shared_memory<unsigned char>(), found, tiny, meeting);
    entry = a.data + position[0];
#pragma unroll
    for (int k = 0; k < PANEL; ++k, entry += a.ld)
        if (position[0] >= 0 && k < steps) *entry = entries[0][k];
    add_move(moves + ((long long)b * panels + panel) * moves_size<PANEL>, position[0], row);
    __syncthreads();
    if (blockIdx.x > 0) return;
    if ((int)threadIdx.x < steps)
        pivots(b)(j0 + threadIdx.x, 0) = j0 + found[threadIdx.x] + FIRST_ROW;
    if (threadIdx.x == 0) info[b] = combined_info(j0 ? info[b] : 0, failure, j0);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TALL_THREADS, 1) \
        name(Source<T> a, Source<int> pivots, const int *order, int first, int j0, int *moves, \
            int panels, int *info, unsigned char *exchange, int *arrived, real_t<T> tiny) { \
        getrf_tall(a, pivots, order, first, j0, moves, panels, info, exchange, arrived, tiny); \
    }

ENTRY(getrf_tall_native, Native)
ENTRY(getrf_tall_batched, Batched)
ENTRY(getrf_tall_vbatched, Vbatched)
