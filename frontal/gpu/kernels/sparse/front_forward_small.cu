// Forward substitution over the small fronts (see front_forward.cu), before all others.
//
// Tile map: a front belongs to one warp: y1 = W·b1 with the inverse W of its only diagonal tile,
// and the messages u = messages of the children − L21·y1, rows across the lanes. Shared memory: a
// vector of each warp's front. Deadlock: the list has children before parents, only parents wait
// for them, and a warp ends a front before it begins the next, whose ticket it already has
// (scheduler.cuh).
#include "sparse/front_solve_small.cuh"

using T = SCALAR;

// The steps of a small front: 8 columns of the inverse each, then 8 columns of 64 update rows each.
// A front without pivots has one step of no column, which passes the children's messages.
struct SmallSteps {
    int pivots, count;
    __device__ explicit SmallSteps(const SolveTask &t)
        : pivots(max_(ceil_div(t.k, 8), 1)), count(pivots * (1 + ceil_div(t.m, TILE))) {}
    __device__ int column(int q) const { return q % pivots * 8; }
    __device__ int row(int q) const { return (q / pivots - 1) * TILE; }  // negative: of the inverse
};

// Store y1 = W·b1 over b1 in `mine`, and in y.
__device__ inline void put_pivots(
    const Solve<T> &s, const SolveTask &t, const T (&sum)[2][W], T *mine) {
    T *y = place_of_y(s, t);
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        int r = lane_row<false>(h);
#pragma unroll
        for (int j = 0; j < W; ++j) {
            if (r >= t.k) continue;
            mine[j * SMALL_LD + r] = sum[h][j];
            y[r * W + j] = sum[h][j];
        }
    }
    __syncwarp();
}

// Send the messages of update rows to the parent; `mine` holds the children's messages from t.k on.
__device__ inline void put_updates(
    const Solve<T> &s, const SolveTask &t, const T (&sum)[2][W], int first, const T *mine) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        int r = first + lane_row<paired<T>>(h);
        if (r >= t.m) continue;
        T *message = s.messages + (long long)s.slots[t.pointer + r] * W;
#pragma unroll
        for (int j = 0; j < W; ++j) send(message + j, mine[j * SMALL_LD + t.k + r] - sum[h][j]);
    }
}

// Fetch the vector of a front, rows of one right-hand side together: pivot rows of b, then zeros,
// plus the children's messages. A lane takes four entries at once.
__device__ inline void fetch_vector(const Solve<T> &s, const SolveTask &t, T *mine) {
    constexpr int N = 4;
    for (int e = threadIdx.x % 32; e < (t.k + t.m) * W; e += 32 * N) {
        int row[N], rhs[N];
        T sum[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            int r = (e + 32 * i) / W;
            row[i] = r < t.k + t.m ? r : -1, rhs[i] = (e + 32 * i) % W;
            sum[i] = r < t.k ? pivot_row(s, t, row[i], rhs[i]) : zero<T>();
        }
        receive(sum, s, t, row, rhs);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            int r = (e + 32 * i) / W;
            if (row[i] >= 0) mine[rhs[i] * SMALL_LD + r] = sum[i];
        }
    }
    __syncwarp();
}

__device__ inline void solve_front(const Solve<T> &s, Turns<false, T> &turns, T *factor) {
    const SolveTask &t = *turns.task;
    Triangle<const T> inverse = inverse_of(t, factor, upper_first);
    Matrix<T> below = rows_below(t, factor, upper_first);
    T *mine = shared_memory<T>() + threadIdx.x / 32 * (SMALL_LD * W);
    T e[ahead][16], sum[2][W];
    SmallSteps steps(t);
    auto ask = [&](T(&e)[16], int q) {
        int c = steps.column(q), first = steps.row(q);
        if (first < 0) load_rows<unit_first>(e, inverse, t.k, c);
        else
            load_rows<paired<T>>(
                e, below.data + first + c * below.ld, below.ld, t.m - first, t.k - c);
    };
    fetch_vector(s, t, mine);
    turns.look_ahead();
    ask_ahead(e, steps.count, ask);
    clear(sum);
    take_turns(e, steps.count, ask, [&](const T(&e)[16], int q) {
        int c = steps.column(q), first = steps.row(q);
        multiply_rows<SMALL_LD>(sum, e, mine + c, t.k - c);
        if (c + 8 < t.k) return;
        if (first < 0) put_pivots(s, t, sum, mine);
        else put_updates(s, t, sum, first, mine);
        clear(sum);
    });
}

extern "C" __global__ void __launch_bounds__(threads, RESIDENTS)
    front_forward_small(const __grid_constant__ Solve<T> solve, T *factor) {
    Turns<false, T> turns(solve);
    while (turns.advance()) solve_front(solve, turns, factor);
}
