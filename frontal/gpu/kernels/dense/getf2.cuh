// LU with partial pivoting of rows in registers: A = P·L·U, one row (or several) per thread.
//
// Rows are not interchanged: each thread tracks the position of its row after the interchanges so
// far and writes the row there at the end. A pivot is the largest |re| + |im| of its column, the
// first position among equals, as in LAPACK. Magnitudes are compared as integers, so that NaN is
// the largest; most searches are decided by the upper 32 bits. The pivot's row passes through
// shared memory, where one 16-byte read serves all lanes; the pivot's reciprocal replaces the
// pivot. Each lane computes the reciprocal of its own entry during the search.
// A pivot whose reciprocal is not a normal number (0, NaN, infinite, or within a factor 4 of the
// limits of the exponent) is a failure: info is the first such column, which is not eliminated.
// With PERTURB, a pivot with |re| + |im| below `tiny` is enlarged to `tiny`; info counts such
// pivots. Enlarged pivots: Li, Demmel, "SuperLU_DIST: a scalable distributed-memory sparse direct
// solver for unsymmetric linear systems" (2003).
#pragma once
#include "dense/potf2.cuh"

#ifndef PERTURB
#define PERTURB 0
#endif

// Upper and lower half of a magnitude's bits.
struct Magnitude {
    unsigned high, low;
};
__device__ inline Magnitude magnitude(float a) { return {__float_as_uint(a) & 0x7fffffffu, 0}; }
__device__ inline Magnitude magnitude(double a) {
    return {(unsigned)__double2hiint(a) & 0x7fffffffu, (unsigned)__double2loint(a)};
}

// The upper half of |re| + |im|.
template <class T> __device__ inline unsigned upper_size(T a) {
    if constexpr (is_complex<T>) return magnitude(abs1(a)).high;
    else return magnitude(a).high;
}

__device__ inline float magnitude_value(Magnitude m, float) { return __uint_as_float(m.high); }
__device__ inline double magnitude_value(Magnitude m, double) {
    return __hiloint2double((int)m.high, (int)m.low);
}

// The smallest pivot that is safe to divide by.
template <class R> __device__ constexpr R least_pivot() {
    if constexpr (same_type<R, float>) return 0x1p-120f;
    else return 0x1p-1000;
}

// Pivots with |re| + |im| below `least` are enlarged to `instead`.
template <class R> struct PivotBounds {
    R least, instead;

    // For a column whose other entries are at most `largest`.
    __device__ PivotBounds(R tiny, R largest) {
        least = max_(tiny * largest, least_pivot<R>());
        instead = least > least_pivot<R>() ? least : tiny;
    }
};

// Return a pivot that is too small, enlarged to `tiny`.
template <class T> __device__ inline T replaced(T a, real_t<T> tiny) {
    real_t<T> size = abs1(a);
    return size < least_pivot<real_t<T>>() ? from_real<T>(tiny) : (tiny / size) * a;
}

// Return the info of a matrix whose columns from j0 on have info `found`.
__device__ inline int combined_info(int before, int found, int j0) {
    if (PERTURB) return before + found;
    return before || !found ? before : j0 + found;
}

// Return whether a magnitude with this upper half is acceptable as a pivot.
template <class R> __device__ inline bool is_pivot_magnitude(unsigned high) {
    if constexpr (same_type<R, float>) return high >= 0x01000000u && high < 0x7e000000u;
    else return high >= 0x00200000u && high < 0x7fc00000u;
}

template <class R> __device__ inline complex<R> pivot_reciprocal(complex<R> a) {
    bool wide = abs1(a.re) >= abs1(a.im);
    R big = wide ? a.re : a.im, small = wide ? a.im : a.re;
    R ratio = small * pivot_reciprocal(big), scale = pivot_reciprocal(fma_(small, ratio, big));
    return wide ? complex<R>{scale, -ratio * scale} : complex<R>{ratio * scale, -scale};
}

template <int LANES> __device__ inline unsigned group_max(unsigned key) {
    if constexpr (LANES == 32) {
        return __reduce_max_sync(full_warp, key);
    } else {
#pragma unroll
        for (int mask = LANES / 2; mask > 0; mask /= 2) {
            unsigned other = (unsigned)shuffle_xor((int)key, mask);
            key = other > key ? other : key;
        }
        return key;
    }
}

// Return the votes of this thread's group of LANES lanes.
template <int LANES> __device__ inline unsigned group_ballot(bool vote) {
    unsigned votes = __ballot_sync(full_warp, vote);
    if constexpr (LANES == 32) return votes;
    else return votes >> (threadIdx.x & 31) / LANES * LANES & ((1u << LANES % 32) - 1);
}

// Return the lane, counted within its group of LANES lanes, of the candidate with the largest
// magnitude, the least position among equals; -1 without candidates. `high` is the largest upper
// half of their magnitudes. The whole warp must call; positions must be less than 2^30.
template <int LANES>
__device__ inline int lane_of_largest(
    bool candidate, Magnitude value, int position, unsigned high) {
    bool best = candidate && value.high == high;
    unsigned votes = group_ballot<LANES>(best);
    bool several = votes & (votes - 1);
    if (LANES == 32 ? several : __any_sync(full_warp, several)) {
        unsigned key = group_max<LANES>(best ? value.low : 0u);
        best = best && value.low == key;
        key = group_max<LANES>(best ? (1u << 30) - (unsigned)position : 0u);
        best = best && (1u << 30) - (unsigned)position == key;
        votes = group_ballot<LANES>(best);
    }
    return __ffs((int)votes) - 1;
}

// The same for a column whose search has not begun; `high` becomes the upper half of the largest
// magnitude.
template <class R, int LANES>
__device__ inline int pivot_lane(bool candidate, Magnitude value, int position, unsigned &high) {
    high = group_max<LANES>(candidate ? value.high : 0u);
    return lane_of_largest<LANES>(candidate, value, position, high);
}

// Write entries K… of a row to shared memory, aligned to 16 bytes, with `pivot` at K.
template <int K, class T, int N> __device__ inline void put_row(T *row, const T (&a)[N], T pivot) {
    constexpr int count = Pack16<T>::count;
#pragma unroll
    for (int p = K / count * count; p < N; p += count) {
        Pack16<T> pack;
#pragma unroll
        for (int e = 0; e < count; ++e) pack.v[e] = p + e == K ? pivot : a[p + e];
        *reinterpret_cast<Pack16<T> *>(row + p) = pack;
    }
}

// Factor a matrix of at most LANES×N whose row `lane` is a[0..N), by LANES lanes. The whole warp
// must call, each group of lanes with its own matrix.
//   steps     columns to eliminate, min(rows, columns) ≤ min(LANES, N)
//   position  in: this lane, or -1 without a row; out: the position of the row in the factors
//   pivot     out: LAPACK's row interchange number `lane`, from 0
//   exchange  2*N elements of shared memory, aligned to 16 bytes
// Returns LAPACK's info, or the number of replaced pivots.
template <int N, int LANES, class T>
__device__ inline int getf2_rows(
    T (&a)[N], int lane, int steps, int &position, int &pivot, T *exchange, real_t<T> tiny) {
    int info = 0, most = LANES == 32 ? steps : (int)__reduce_max_sync(full_warp, (unsigned)steps);
    if (LANES < 32)  // unwritten rows are multiplied by zero
        for (int i = lane; i < 2 * N; i += LANES) exchange[i] = zero<T>();
    __syncwarp();
    columns<0, N>(most, [&](auto index) {
        constexpr int k = decltype(index)::value;
        if (k >= most) return;
        bool active = k < steps, candidate = active && position >= k;
        unsigned high;
        int winner = pivot_lane<real_t<T>, LANES>(candidate, magnitude(abs1(a[k])), position, high);
        bool mine = candidate && lane == winner, good = is_pivot_magnitude<real_t<T>>(high);
        bool small = PERTURB && !(abs1(a[k]) >= tiny);
        if (small && mine) a[k] = replaced(a[k], tiny);
        T *row = exchange + k % 2 * N, own = pivot_reciprocal(a[k]);
        if (mine) put_row<k>(row, a, own);
        int target = shuffle(position, winner, LANES);
        if constexpr (PERTURB) small = shuffle((int)small, winner, LANES), good = true;
        __syncwarp();
        T minus = zero<T>();
        if (candidate && !mine && good) minus = -(row[k] * a[k]), a[k] = -minus;
        broadcast<k + 1, N>(row, [&](int j, T v) { a[j] = fma_(minus, v, a[j]); });
        if (active) {
            if (lane == k) pivot = target;
            position = mine ? k : position == k ? target : position;
            info = combined_info(info, PERTURB ? small : !good, k);
        }
    });
    return info;
}

// The best pivot for column K among the rows of a thread: its magnitude, value, position (-1 for
// none) and index among these rows. The least position wins among equals.
template <class T> struct OwnCandidate {
    Magnitude size;
    T value;
    int position, row;
};
template <int K, class T, int R, int NB>
__device__ inline OwnCandidate<T> own_candidate(const T (&a)[R][NB], const int (&position)[R]) {
    OwnCandidate<T> best{{0, 0}, zero<T>(), -1, 0};
#pragma unroll
    for (int q = 0; q < R; ++q) {
        Magnitude m = magnitude(abs1(a[q][K]));
        bool larger =
            m.high > best.size.high || (m.high == best.size.high && m.low > best.size.low);
        bool equal =
            m.high == best.size.high && m.low == best.size.low && position[q] < best.position;
        if (position[q] >= K && (best.position < 0 || larger || equal))
            best = {m, a[q][K], position[q], q};
    }
    return best;
}

// The pivot candidate of a block or warp: its magnitude and the position of its row; -1 for none.
struct alignas(16) Candidate {
    unsigned high, low;
    int position, spare;
};

// A panel of NB columns in the registers of a block, R rows per thread.
template <class T, int NB, int R> struct Panel {
    static constexpr int max_warps = 32;

    // Bytes of shared memory for a block of `threads` threads.
    __device__ static constexpr int shared_bytes(int threads) {
        return 2 * max_warps * (int)sizeof(Candidate) + 2 * (threads / 32) * NB * (int)sizeof(T);
    }

    // Factor the first `steps` columns of the panel whose row position[q] is a[q]; a position of -1
    // means no row. On return positions are those in the factors; pivots[k], k < steps, in shared
    // memory, are LAPACK's interchanges from 0. Returns LAPACK's info, or the number of replaced
    // pivots, in every thread. The caller must synchronize before it uses `pivots` or `shared`.
    // agree(k, candidate, row) receives this block's candidate and its row, replaces the candidate
    // by the pivot and returns the pivot's row: the same for one block; blocks that share a panel
    // choose one of theirs.
    template <class Agree>
    __device__ static int factor(T (&a)[R][NB], int (&position)[R], int steps,
        unsigned char *shared, int *pivots, real_t<T> tiny, Agree agree) {
        int info = 0, warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x & 31;
        Candidate *candidates = reinterpret_cast<Candidate *>(shared);
        T *rows = reinterpret_cast<T *>(candidates + 2 * max_warps);
        columns<0, NB>(steps, [&](auto index) {
            constexpr int k = decltype(index)::value;
            if (k >= steps) return;
            Candidate *slots = candidates + k % 2 * max_warps;
            T *slot_rows = rows + k % 2 * warps * NB;
            offer<k>(a, position, slots + warp, slot_rows + warp * NB, tiny);
            __syncthreads();
            Candidate c = slots[lane < warps ? lane : 0];
            int winner = best_of(warps, c);
            const T *row = agree(k, c, slot_rows + max_(winner, 0) * NB);
            if (threadIdx.x == 0) pivots[k] = c.position;
            bool good = PERTURB || is_pivot_magnitude<real_t<T>>(c.high);
            bool small = PERTURB && !(magnitude_value(Magnitude{c.high, c.low}, tiny) >= tiny);
            info = combined_info(info, PERTURB ? small : !good, k);
            if (small) replace<k>(a, position, c.position, tiny);
            eliminate<k>(a, position, c.position, good, row);
        });
        return info;
    }
    __device__ static int factor(T (&a)[R][NB], int (&position)[R], int steps,
        unsigned char *shared, int *pivots, real_t<T> tiny) {
        return factor(a, position, steps, shared, pivots, tiny,
            [](int, Candidate &, const T *row) { return row; });
    }

    // Return the lane with the best of the first `count` lanes' candidates, and store that
    // candidate in `c` of all lanes; -1 for none.
    __device__ static int best_of(int count, Candidate &c) {
        bool some = (int)(threadIdx.x & 31) < count && c.position >= 0;
        unsigned high;
        int winner = pivot_lane<real_t<T>, 32>(some, Magnitude{c.high, c.low}, c.position, high);
        int position = shuffle(c.position, winner), low = shuffle((int)c.low, winner);
        c = Candidate{high, (unsigned)low, winner < 0 ? -1 : position, 0};
        return winner;
    }

  private:
    // Write this warp's candidate for the pivot of column K, and its row, to shared memory.
    template <int K>
    __device__ static void offer(
        T (&a)[R][NB], const int (&position)[R], Candidate *slot, T *row, real_t<T> tiny) {
        OwnCandidate<T> own = own_candidate<K>(a, position);
        unsigned high;
        int winner = pivot_lane<real_t<T>, 32>(own.position >= 0, own.size, own.position, high);
        if (PERTURB && !(abs1(own.value) >= tiny)) own.value = replaced(own.value, tiny);
        T inverse = pivot_reciprocal(own.value);
        if ((threadIdx.x & 31) != (winner < 0 ? 0 : winner)) return;
        *slot = Candidate{own.size.high, own.size.low, own.position, 0};
#pragma unroll
        for (int q = 0; q < R; ++q)
            if (R == 1 || own.row == q) put_row<K>(row, a[q], inverse);
    }

    // Enlarge the pivot, which is too small, in the row at position `target`.
    template <int K>
    __device__ static void replace(
        T (&a)[R][NB], const int (&position)[R], int target, real_t<T> tiny) {
#pragma unroll
        for (int q = 0; q < R; ++q)
            if (position[q] == target) a[q][K] = replaced(a[q][K], tiny);
    }

    // Eliminate column K with the row that was at position `target`.
    template <int K>
    __device__ static void eliminate(
        T (&a)[R][NB], int (&position)[R], int target, bool good, const T *row) {
        T minus[R];
#pragma unroll
        for (int q = 0; q < R; ++q) {
            position[q] = position[q] == target ? K : position[q] == K ? target : position[q];
            minus[q] = zero<T>();
            if (good && position[q] > K) minus[q] = -(row[K] * a[q][K]), a[q][K] = -minus[q];
        }
        broadcast<K + 1, NB>(row, [&](int j, T v) {
#pragma unroll
            for (int q = 0; q < R; ++q) a[q][j] = fma_(minus[q], v, a[q][j]);
        });
    }
};
