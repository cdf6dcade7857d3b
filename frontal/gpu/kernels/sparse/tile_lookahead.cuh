// X·Lᴴ = B for a 64×64 tile B in shared memory while another block still factors the tile of L:
// columns of L arrive as messages (messages.cuh), and B follows at a short distance, 16 columns at
// a time. The product of the columns before is subtracted from them, 16 rows per warp, and they are
// solved for, a row per thread. By 128 threads.
//
// With LDL the diagonal of L is one, and the reciprocals of D are sent in its place. The diagonal
// tile interchanges rows, also those of columns already sent. So rows are sent under their initial
// numbers, and after each 16 columns the positions that they then have. B moves its columns
// likewise, after the product of earlier columns has been subtracted from all. This continues while
// pivots of order 1 are found; afterwards zeros are sent. For LU the same is done with L, whose
// ones are sent, and with the transpose of U, until the first interchange; then X·Lᵀ = B is solved,
// for transposes.
#pragma once
#include "common/messages.cuh"
#include "common/tile.cuh"
#include "sparse/pivot_blocks.cuh"

// Return the first row that is sent of columns from p on; followers read no earlier one.
__device__ inline int first_sent(int p) { return p / 8 * 8; }

// Send a row of columns p…p+N−1 to sent[to + 64·j], with `own` in the place of the diagonal.
template <int N, class T>
__device__ inline void send_row(T *sent, int row, int p, const T (&v)[N], T own, int to) {
#pragma unroll
    for (int k = 0; k < N; ++k) send(sent + to + (p + k) * TILE_ROWS, row == p + k ? own : v[k]);
}
template <int N, class T>
__device__ inline void send_row(T *sent, int row, int p, const T (&v)[N], T own) {
    send_row(sent, row, p, v, own, row);
}

// Return the address of the messages with the positions of rows after columns p…p+15.
template <class T> __device__ inline T *sent_places(T *sent, int p) {
    return sent + (TILE_ROWS + p / 16) * TILE_ROWS;
}

// Send the position of a row with initial number `to`, for the 16 columns that contain p.
template <class T> __device__ inline void send_place(T *sent, int row, int p, int to) {
    if (row >= p / 16 * 16) send(sent_places(sent, p) + to, from_real<T>(row));
}

// Send N columns of a factored tile, with the reciprocals of its diagonal (or of D), and after each
// 16 the positions of rows, if row r of the tile has the initial number at[r]. By the threads
// without a row to factor.
template <int N, class T>
__device__ inline void send_columns(T *sent, const T *tile, const int *at, int p) {
    int row = (int)threadIdx.x - TILE_ROWS;
    if (row < 0) return;
    int to = at ? at[row] : row;
    if (at && (p + N) % 16 == 0) send_place(sent, row, p, to);
    if (row < first_sent(p)) return;
    // All are loaded before one is stored. The diagonal of later rows is still being computed.
    T v[N], own = row < p + N ? tile[row * (tile_ld<T> + 1)] : one<T>();
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = tile[row + (p + k) * tile_ld<T>];
    if constexpr (conjugates) own = from_real<T>(pivot_reciprocal(real(own)));
    else own = pivot_reciprocal(own);
    send_row(sent, row, p, v, own, to);
}
template <int N, class T> __device__ inline void send_columns(T *sent, const T *tile, int p) {
    send_columns<N>(sent, tile, nullptr, p);
}

// Send a row of zeros, which mean that columns p…last−1 will not come.
template <class T> __device__ inline void send_nothing(T *sent, int row, int p, int last) {
    if (row < first_sent(p)) return;
    for (; p < last; ++p) send(sent + row + p * TILE_ROWS, zero<T>());
}
// The same up to the next multiple of 16, with the initial row numbers at[…].
template <class T> __device__ inline void send_nothing(T *sent, const int *at, int p) {
    int row = (int)threadIdx.x - TILE_ROWS, to = row < 0 ? 0 : at[row];
    send_place(sent, row, p, to);
    if (row < first_sent(p)) return;
    do send(sent + to + p * TILE_ROWS, zero<T>());
    while (++p % 16);
}

// Columns p…p+15 of L, from row p on, as they are sent. A thread has eight entries of them, of one
// row, which has its own position with LDL.
template <class T> struct Arrival {
    T seen[8], seen_place;
    int place = sent_row();

    __device__ static int sent_row() { return threadIdx.x % TILE_ROWS; }
    __device__ int row() const { return LDL ? place : sent_row(); }
    // The first column of a thread; it has every other one.
    __device__ static int column() { return threadIdx.x / TILE_ROWS; }
    __device__ static bool wanted(int row, int p, int q) { return row >= p + (q < 4 ? 0 : 8); }

    // Request the entries; some may be unset.
    __device__ void ask(const T *sent, int p) {
        const T *from = sent + sent_row() + (p + column()) * TILE_ROWS;
        int below = LDL && row() >= p ? TILE_ROWS : row();  // its position is still unknown
        if (LDL && row() >= p) seen_place = look(sent_places(sent, p) + sent_row());
#pragma unroll
        for (int q = 0; q < 8; ++q)
            if (wanted(below, p, q)) seen[q] = look(from + 2 * q * TILE_ROWS);
    }
    // Wait for them, and store them in `lower`. Returns the previous position of the row. No
    // barrier.
    __device__ int take_all(const T *sent, int p, T *lower) {
        int before = row();
        while (any_unset(p)) {
            __nanosleep(20);
            ask(sent, p);
        }
        if (LDL && before >= p) place = (int)real(seen_place);
        T *to = lower + row() + (p + column()) * tile_ld<T>;
#pragma unroll
        for (int q = 0; q < 8; ++q)
            if (wanted(row(), p, q)) to[2 * q * tile_ld<T>] = seen[q];
        return before;
    }

  private:
    __device__ bool any_unset(int p) const {
        int at = row();
        if (LDL && at >= p) {
            if (unset(seen_place)) return true;
            at = (int)real(seen_place);
        }
        bool found = false;
#pragma unroll
        for (int q = 0; q < 8; ++q) found = found || (wanted(at, p, q) && unset(seen[q]));
        return found;
    }
};

// Solve for columns p…p+15 of a row whose columns before p are solved for.
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

// Subtract from columns p…p+15 of the tile the product of columns first…last−1 and rows p…p+15 of
// L, 16 rows per warp.
template <class T>
__device__ inline void subtract_left(T *tile, const T *lower, int p, int first, int last) {
    constexpr int ld = tile_ld<T>;
    T *rows = tile + threadIdx.x / 32 * 16;
    WarpProduct<T, 16, 16> sum;
    sum.clear();
#pragma unroll 1
    for (int k = first; k < last; k += 16)
        sum.template add<16, false, false, false, conjugates>(
            rows + k * ld, ld, lower + p + k * ld, ld);
    sum.each([&](int i, int j, T &v) {
        T &entry = rows[i + (p + j) * ld];
        entry = entry - v;
    });
}

// Move column c < w of the tile to place[c]. Ends with a barrier if anything moves.
template <class T, class Places>
__device__ inline void interchange_columns(T *tile, Places place, int w) {
    constexpr int EACH = 8, ROWS = 16, ld = tile_ld<T>;
    int own = threadIdx.x < w ? place[threadIdx.x] : (int)threadIdx.x;
    if (!__syncthreads_or(own != threadIdx.x)) return;
    int first = threadIdx.x / ROWS * EACH;
#pragma unroll 1
    for (int r = threadIdx.x % ROWS; r < TILE_ROWS; r += ROWS) {
        T v[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) v[e] = tile[r + (first + e) * ld];
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (first + e < w) tile[r + place[first + e] * ld] = v[e];
    }
    __syncthreads();
}

// Overwrites the tile by X and, with Cholesky, the target by the rows and columns of X that it has.
// Protocol: begin(), and for each p arrive(p), solve(p) and, except for the last, prepare(p + 16);
// or follow(). `lower` receives L as it arrives.
template <class T> struct Follower {
    T *tile, *lower;
    const T *sent;
    Matrix<T> target;
    int *order;  // LDL: 64 in shared memory
    Arrival<T> arrival;
    int taken = 0;  // columns already subtracted from all others

    __device__ void begin() { arrival.ask(sent, 0); }

    // Wait until columns p…p+15 of L are visible to all threads; earlier ones are needed only below
    // row p+15.
    __device__ void arrive(int p) {
        if constexpr (!LDL) {
            arrival.take_all(sent, p, lower);
            __syncthreads();
        } else if (int from = arrival.take_all(sent, p, lower);
            __syncthreads_or(from != arrival.row()))
            interchange(p, from);
    }
    // Return whether they were sent, without Cholesky.
    __device__ bool came(int p) const { return !(lower[(p + 15) * (tile_ld<T> + 1)] == zero<T>()); }
    // Compute columns p…p+15 of X, visible to all threads on return. The threads with a row call
    // solved(x) with it; meanwhile the others call `other`.
    template <class Other = Nothing, class Solved = Nobody>
    __device__ void solve(int p, Other other = {}, Solved solved = {}) {
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
            solved(x);
        } else other();
        __syncthreads();
    }
    // Do the work that precedes the arrival of columns p…p+15 of L.
    __device__ void prepare(int p) {
        arrival.ask(sent, p);
        subtract_left(tile, lower, p, taken, p);
    }
    // Compute columns of X before w, or as far as L is sent. Returns the first remaining column, or
    // w; the product of the columns before is then subtracted from all remaining ones, and with LDL
    // `order` holds their initial numbers. All threads call arrived(p) when columns p…p+15 of L are
    // visible, other(p) is called as by solve, and threads with a row call solved(p, x) with their
    // solution.
    template <class Arrived, class Other, class Solved>
    __device__ int follow(int w, Arrived arrived, Other other, Solved solved) {
        begin();
#pragma unroll 1
        for (int p = 0;; p += 16) {
            arrive(p);
            if (!came(p)) return leave(p);
            arrived(p);
            solve(p, [&] { other(p); }, [&](const T(&x)[16]) { solved(p, x); });
            if (p + 16 >= w) return w;
            prepare(p + 16);
        }
    }

  private:
    // Subtract the product of columns before p from the columns that lack it.
    __device__ void catch_up(int p) {
#pragma unroll 1
        for (int c = p + 16; taken < p && c < TILE_ROWS; c += 16)
            subtract_left(tile, lower, c, taken, p);
        taken = p;
    }
    // Move columns as rows p… of L move; this thread's column comes from `from`.
    __device__ void interchange(int p, int from) {
        catch_up(p);
        if (threadIdx.x < TILE_ROWS) order[from] = arrival.row();
        __syncthreads();
        interchange_columns(tile, order, TILE_ROWS);
    }
    __device__ int leave(int p) {
        catch_up(p);
        if (LDL && threadIdx.x < TILE_ROWS) order[arrival.row()] = threadIdx.x;
        return p;
    }
};
