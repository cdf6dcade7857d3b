// X·Lᴴ = B for a tile B of 64×64 in shared memory while another block still factors the tile that L
// comes from: its columns arrive as messages (messages.cuh), and B follows at a short distance, 16
// columns at a time. The product of the columns before is subtracted from them, 16 rows a warp, and
// they are solved for, a row a thread. By 128 threads.
//
// With LDL the diagonal of L is one, and the reciprocals of D are sent in its place. That goes on
// as long as the diagonal tile needs no interchange; where it does, zeros are sent instead. For LU
// the same is done with L, whose ones are sent, and with the transpose of U; X·Lᵀ = B is then for
// transposes.
#pragma once
#include "common/messages.cuh"
#include "common/tile.cuh"
#include "sparse/pivot_blocks.cuh"

// The first row of columns from p on that is sent; no less is wanted.
__device__ inline int first_sent(int p) { return p / 8 * 8; }

// Send a row of columns p…p+N−1 to sent[i + 64·j], with `own` in the place of the diagonal.
template <int N, class T>
__device__ inline void send_row(T *sent, int row, int p, const T (&v)[N], T own) {
#pragma unroll
    for (int k = 0; k < N; ++k) send(sent + row + (p + k) * TILE_ROWS, row == p + k ? own : v[k]);
}

// Send N columns of a factored tile, with the reciprocals of its diagonal (or of D). By the threads
// that have no row to factor.
template <int N, class T> __device__ inline void send_columns(T *sent, const T *tile, int p) {
    int row = (int)threadIdx.x - TILE_ROWS;
    if (row < first_sent(p)) return;
    // All are loaded before one is stored. Of rows behind, the diagonal is still being computed.
    T v[N], own = row < p + N ? tile[row * (tile_ld<T> + 1)] : one<T>();
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = tile[row + (p + k) * tile_ld<T>];
    if constexpr (conjugates) own = from_real<T>(pivot_reciprocal(real(own)));
    else own = pivot_reciprocal(own);
    send_row(sent, row, p, v, own);
}

// Send a row of what says that columns p…last−1 will not come.
template <class T> __device__ inline void send_nothing(T *sent, int row, int p, int last) {
    if (row < first_sent(p)) return;
    for (; p < last; ++p) send(sent + row + p * TILE_ROWS, zero<T>());
}

// Columns p…p+15 of L, from row p on, as they are sent. A thread has eight entries of them.
template <class T> struct Arrival {
    T seen[8];

    __device__ static int row() { return threadIdx.x % TILE_ROWS; }
    // The first of them; then every other.
    __device__ static int column() { return threadIdx.x / TILE_ROWS; }
    __device__ static bool wanted(int p, int q) { return row() >= p + (q < 4 ? 0 : 8); }
    __device__ static const T *source(const T *sent, int p) {
        return sent + row() + (p + column()) * TILE_ROWS;
    }

    // Ask for them; they may not be there yet.
    __device__ void ask(const T *sent, int p) {
        const T *from = source(sent, p);
#pragma unroll
        for (int q = 0; q < 8; ++q)
            if (wanted(p, q)) seen[q] = look(from + 2 * q * TILE_ROWS);
    }
    // Wait for them, and put them into `lower`. No barrier.
    __device__ void take_all(const T *sent, int p, T *lower) {
        while (any_unset(p)) {
            __nanosleep(20);
            ask(sent, p);
        }
        T *to = lower + row() + (p + column()) * tile_ld<T>;
#pragma unroll
        for (int q = 0; q < 8; ++q)
            if (wanted(p, q)) to[2 * q * tile_ld<T>] = seen[q];
    }

  private:
    __device__ bool any_unset(int p) const {
        bool found = false;
#pragma unroll
        for (int q = 0; q < 8; ++q) found = found || (wanted(p, q) && unset(seen[q]));
        return found;
    }
};

// Columns p…p+15 of a row, whose columns before p are solved for.
template <class T> __device__ inline void solve_sixteen(T (&x)[16], const T *lower, int p) {
    columns<0, 16>(16, [&](auto index) {
        constexpr int k = decltype(index)::value;
        broadcast<k, 16>(lower + p + (p + k) * tile_ld<T>, [&](int j, T v) {
            if (j != k) x[j] = fma_(-x[k], mirrored(v), x[j]);
            else if (CHOLESKY) x[k] = real(v) * x[k];
            else if (LU) x[k] = v * x[k];
        });
    });
}

// Columns p…p+15 of the tile minus the product of the first `depth` and rows p…p+15 of L, 16 rows a
// warp.
template <class T> __device__ inline void subtract_left(T *tile, const T *lower, int p, int depth) {
    constexpr int ld = tile_ld<T>;
    T *rows = tile + threadIdx.x / 32 * 16;
    WarpProduct<T, 16, 16> sum;
    sum.clear();
#pragma unroll 1
    for (int k = 0; k < depth; k += 16)
        sum.template add<16, false, false, false, conjugates>(
            rows + k * ld, ld, lower + p + k * ld, ld);
    sum.each([&](int i, int j, T &v) {
        T &entry = rows[i + (p + j) * ld];
        entry = entry - v;
    });
}

// Overwrites the tile by X, and with Cholesky the target by the rows and columns of X that it has:
// begin(), and for each p arrive(p), solve(p) and, but for the last, prepare(p + 16); or follow().
// `lower` gets L as it is sent.
template <class T> struct Follower {
    T *tile, *lower;
    const T *sent;
    Matrix<T> target;
    Arrival<T> arrival;

    __device__ void begin() { arrival.ask(sent, 0); }

    // Then columns p…p+15 of L are there for all threads, and those before are needed below row
    // p+15 alone.
    __device__ void arrive(int p) {
        arrival.take_all(sent, p, lower);
        __syncthreads();
    }
    // Whether they came, without Cholesky.
    __device__ bool came(int p) const { return !(lower[(p + 15) * (tile_ld<T> + 1)] == zero<T>()); }
    // Then those of X are there for all. The threads that have no row do `other` meanwhile.
    template <class Other = Nothing> __device__ void solve(int p, Other other = {}) {
        int r = threadIdx.x;
        if (r < TILE_ROWS) {
            T x[16], *row = tile + r + p * tile_ld<T>,
                     *to = target.data + r + (long long)p * target.ld;
            int columns = CHOLESKY && r < target.rows ? target.cols - p : 0;
#pragma unroll
            for (int k = 0; k < 16; ++k) x[k] = row[k * tile_ld<T>];
            solve_sixteen(x, lower, p);
#pragma unroll
            for (int k = 0; k < 16; ++k, to += target.ld) {
                row[k * tile_ld<T>] = x[k];
                if (k < columns) *to = x[k];
            }
        } else other();
        __syncthreads();
    }
    // What can be done before columns p…p+15 of L are there.
    __device__ void prepare(int p) {
        arrival.ask(sent, p);
        subtract_left(tile, lower, p, p);
    }
    // Columns of X before w, or as far as L comes. Returns the first that is left; then it and 15
    // more have the product of those before them subtracted. arrived(p) is called by all threads
    // when columns p…p+15 of L are there, and other(p) as by solve.
    template <class Arrived, class Other>
    __device__ int follow(int w, Arrived arrived, Other other) {
        begin();
#pragma unroll 1
        for (int p = 0;; p += 16) {
            arrive(p);
            if (!came(p)) return p;
            arrived(p);
            solve(p, [&] { other(p); });
            if (p + 16 >= w) return w;
            prepare(p + 16);
        }
    }
};
