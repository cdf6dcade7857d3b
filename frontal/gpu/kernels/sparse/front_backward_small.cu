// Backward substitution over the small fronts (see front_backward.cu), after all others, each after
// its parent: x1 = Wᴴ·(y1 − L21ᴴ·x2) with the inverse W of the only diagonal tile.
//
// Tile map: a front belongs to one warp, columns across groups of 8 lanes. Shared memory: a vector
// of each warp's front. Deadlock: the list of the forward sweep is processed from its end, parents
// before children, by tickets (scheduler.cuh).
#include "sparse/front_solve_small.cuh"

using T = SCALAR;

// The steps of a small front: 64 update rows of 8 columns each, then 8 columns of the inverse each.
struct SmallSteps {
    int parts, updates, count;
    __device__ explicit SmallSteps(const SolveTask &t)
        : parts(max_(ceil_div(t.m, TILE), 1)), updates(t.m ? ceil_div(t.k, 8) * parts : 0),
          count(updates + ceil_div(t.k, 8)) {}
    __device__ int column(int q) const { return 8 * (q < updates ? q / parts : q - updates); }
    __device__ int row(int q) const { return q % parts * TILE; }
    __device__ bool last(int q) const { return q % parts == parts - 1; }  // of its columns
};

// Fetch y1, then the values of x of the update rows, stored from padded(k) on.
__device__ inline void fetch_vector(
    const Solve<T> &s, const Fronts &tree, const SolveTask &t, T *mine) {
    constexpr int N = SMALL_ROWS / 32;
    int lane = threadIdx.x % 32, row[N];
    const T *y = place_of_y(s, t);
#pragma unroll
    for (int i = 0; i < N; ++i)
        row[i] = lane + 32 * i < t.m ? tree.rows[t.pointer + lane + 32 * i] : -1;
    for (int e = lane; e < t.k * W; e += 32) mine[e % W * SMALL_LD + e / W] = y[e];
    if (LDL) {
        __syncwarp();
        for (int e = lane; e < t.k * W; e += 32)
            divide(s, t, e / W, mine + e % W * SMALL_LD + e / W);
    }
    T *updates = mine + padded<T>(t.k);
    // The first update row is solved for last: one lane polls for it before the others poll.
    if (lane == 0 && t.m) take(s.x + (long long)row[0] * W);
    __syncwarp();
    // The right-hand sides of a row lie across the lanes, SMALL_ROWS / W rows at once.
#pragma unroll
    for (int q = 0; q < W; ++q) {
        if (q * (SMALL_ROWS / W) >= t.m) break;
        int from[N];
        T seen[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            int e = SMALL_ROWS * q + 32 * i + lane;
            from[i] = W == 1 ? row[i] : __shfl_sync(~0u, row[(N * q + i) / W], e / W % 32);
            if (from[i] >= 0) seen[i] = look(s.x + (long long)from[i] * W + e % W);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            int e = SMALL_ROWS * q + 32 * i + lane;
            if (from[i] >= 0)
                updates[e % W * SMALL_LD + e / W] =
                    take(s.x + (long long)from[i] * W + e % W, seen[i]);
        }
    }
    if (lane < W) updates[lane * SMALL_LD + t.m] = zero<T>();
    __syncwarp();
}

__device__ inline void solve_front(
    const Solve<T> &s, const Fronts &tree, Turns<true, T> &turns, T *factor) {
    const SolveTask &t = *turns.task;
    Matrix<T> below = rows_below(t, factor, upper_last);
    T *mine = shared_memory<T>() + threadIdx.x / 32 * (SMALL_LD * W),
      *updates = mine + padded<T>(t.k);
    T e[ahead][16], sum[2][W];
    SmallSteps steps(t);
    auto ask = [&](T(&e)[16], int q) {
        int c = steps.column(q);
        if (q < steps.updates)
            load_columns<paired<T>>(
                e, below.data + steps.row(q) + c * below.ld, below.ld, t.m - steps.row(q), t.k - c);
        else {
            Triangle<const T> inverse =
                inverse_of(t, factor, upper_last);  // here it takes no registers
            load_columns<unit_last>(e, inverse, t.k, c);
        }
    };
    fetch_vector(s, tree, t, mine);
    turns.look_ahead();
    ask_ahead(e, steps.count, ask);
    clear(sum);
    take_turns(e, steps.count, ask, [&](const T(&e)[16], int q) {
        int c = steps.column(q);
        if (q < steps.updates) {  // y1 ← y1 − L21ᴴ·x2
            multiply_columns<paired<T>, SMALL_LD>(
                sum, e, updates + steps.row(q), t.m - steps.row(q));
            if (!steps.last(q)) return;
            each_column(sum, [&](int column, int j, T total) {
                T *y = mine + j * SMALL_LD + c + column;
                if (c + column < t.k) *y = *y - total;
            });
            __syncwarp();
        } else {  // x1 = Wᴴ·y1
            multiply_columns<false, SMALL_LD>(sum, e, mine, t.k);
            each_column(sum, [&](int column, int j, T total) {
                if (c + column >= t.k) return;
                int to = t.start + (moves_last ? s.place[t.start + c + column] : c + column);
                send(s.x + (long long)to * W + j, total);
            });
        }
        clear(sum);
    });
}

extern "C" __global__ void __launch_bounds__(threads, RESIDENTS) front_backward_small(
    const __grid_constant__ Solve<T> solve, T *factor, const __grid_constant__ Fronts tree) {
    Turns<true, T> turns(solve);
    while (turns.advance()) solve_front(solve, tree, turns, factor);
}
