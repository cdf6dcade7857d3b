// A front of up to 64 rows in shared memory, and its elimination by 16, 32 or 64 threads.
//
// The rows are the k pivots, then the m update rows, without a gap. Elements are column-major. For
// Cholesky only the lower part is stored, folded: of the block columns of 16 columns, each from its
// diagonal block down, the last lies below the first, the last but one below the second. A thread
// owns a row, and holds 16 columns of it during their elimination.
#pragma once
#include "sparse/front.cuh"
#include "dense/getf2.cuh"
#include "sparse/pivot_blocks.cuh"
#include "common/scheduler.cuh"
#include "common/warp_product.cuh"

constexpr int NB = SMALL_PANEL, CHILDREN = SMALL_CHILDREN;

constexpr bool SQUARE = !CHOLESKY;  // whether both triangles are stored

// The reciprocal of a diagonal entry: real for Cholesky. With D, D(j+1,j) is stored instead.
template <class T, bool GENERAL> struct PivotScaleOf {
    using type = T;
};
template <class T> struct PivotScaleOf<T, false> {
    using type = real_t<T>;
};
template <class T> using PivotScale = typename PivotScaleOf<T, SQUARE>::type;

// State of a front with up to ORDER rows, for ORDER threads.
template <class T, int ORDER> struct alignas(16) SmallTile {
    static constexpr int warps = ORDER > 32 ? ORDER / 32 : 1;
    static constexpr int blocks = ORDER / NB, folds = blocks > 1 && !SQUARE ? blocks / 2 : blocks;
    static constexpr int LD = ORDER + (folds < blocks ? NB : 0) + leading_pad<T, false>();
    static constexpr int elements = folds * NB * LD;

    T data[elements];
    SmallFront front;  // here it takes no registers
    // Pivots' rows in turn; for Cholesky only the next pivots, in rows[0] and rows[1].
    T rows[2 * warps * NB];
    PivotScale<T> scales[ORDER];  // reciprocals of the diagonal
    Candidate candidates[2 * warps];
    unsigned char row[CHILDREN][ORDER];  // rows of children in the front
    short column[CHILDREN][ORDER];       // and offsets of their columns

    __device__ static int lane() { return threadIdx.x % ORDER; }
    __device__ static int warp() { return ORDER > 32 ? threadIdx.x / 32 : 0; }
    // Synchronize the threads of this front.
    __device__ static void sync() {
        if constexpr (ORDER > 32) __syncthreads();
        else __syncwarp();
    }
    // The largest n of the fronts that share a warp, whose threads run loops together.
    __device__ static int most(int n) {
        if constexpr (ORDER < 32) return (int)__reduce_max_sync(full_warp, (unsigned)n);
        else return n;
    }

    // The offset of row 0 of a block column.
    __device__ static int offset(int block) {
        if (SQUARE) return NB * LD * block;
        int below = block >= folds, column = below ? blocks - 1 - block : block;
        return NB * LD * column - NB * block + (below ? ORDER - NB * column : 0);
    }
    __device__ static int column_offset(int c) { return offset(c / NB) + c % NB * LD; }
    // Row 0 of column NB·block; for Cholesky only rows from NB·block on exist.
    __device__ T *panel(int block) { return data + offset(block); }

    // Row 0 of L11 in the factor, with D.
    __device__ T *row_of_l11(T *factor) const {
        return factor + front.panel + front.k * padded<T>(front.m);
    }

    // Return whether this holds for a thread of this front, or of the fronts that share its warp.
    __device__ static bool any(bool holds) {
        if constexpr (ORDER > 32) return __syncthreads_or(holds);
        bool found = __any_sync(full_warp, holds);
        if (found) __syncwarp();  // later code writes where others have read
        return found;
    }

    // The largest of each value among the threads of the front; `turn` alternates between 0 and 1.
    template <int N> __device__ void largest(unsigned (&v)[N], int turn) {
#pragma unroll
        for (int n = 0; n < N; ++n) v[n] = group_max<(ORDER < 32 ? ORDER : 32)>(v[n]);
        if constexpr (warps > 1) {
            unsigned *all = reinterpret_cast<unsigned *>(candidates) + turn * 8;
            if (lane() % 32 == 0) {
#pragma unroll
                for (int n = 0; n < N; ++n) all[warp() * 4 + n] = v[n];
            }
            __syncthreads();
#pragma unroll
            for (int n = 0; n < N; ++n) v[n] = max(all[n], all[4 + n]);
        }
    }

    // Load the description of the front, or an empty one.
    __device__ void begin(const SmallFront *from) {
        if (lane() < 4) {
            const int4 *source = reinterpret_cast<const int4 *>(from);
            reinterpret_cast<int4 *>(&front)[lane()] = from ? source[lane()] : int4{0, 0, 0, 0};
        }
        sync();
    }

    // Clear the first `order` rows and columns.
    __device__ void clear(int order) {
        int count = min_(ceil_div(order, NB), folds) * NB * LD;
        constexpr int each = Pack16<T>::count;
        Pack16<T> nothing;
#pragma unroll
        for (int e = 0; e < each; ++e) nothing.v[e] = zero<T>();
#pragma unroll 4
        for (int e = each * lane(); e < count; e += each * ORDER)
            *reinterpret_cast<Pack16<T> *>(data + e) = nothing;
        if (ORDER < 32 && SQUARE)  // unwritten rows are multiplied by zero
            for (int e = lane(); e < 2 * NB; e += ORDER) rows[e] = zero<T>();
    }

    // Store the entries of A, each at its own position.
    __device__ void put_entries(const SmallFronts &all, const T *values) {
        const unsigned *source = all.sources + front.entry;
        const unsigned short *place = all.places + front.entry;
        constexpr int most = (1 << ENTRY_BITS) - 1;
        int count = front.entries;
        for (int first = lane(); first < count; first += 2 * ORDER) {
            bool second = first + ORDER < count;
            int next = second ? first + ORDER : first, a = place[first], b = place[next];
            T x = values[source[first]], y = values[source[next]];
            data[(a & most) + column_offset(a >> ENTRY_BITS)] = x;
            if (second) data[(b & most) + column_offset(b >> ENTRY_BITS)] = y;
        }
    }

    // Wait until the children's contribution blocks are stored. The caller synchronizes.
    __device__ void wait_for_children(const SmallFronts &all) const {
        for (int q = lane(); q < front.children; q += ORDER) {
            SmallChild child = all.children[front.child + q];
            if (child.m) wait_for(all.finished + child.front, 1);
        }
    }

    // Add the contribution blocks of the children, in their order.
    __device__ void add_children(const SmallFronts &all, const T *blocks) {
        int rounds = most(front.children);
        for (int first = 0; first < rounds; first += CHILDREN) {
            SmallChild child[CHILDREN];
#pragma unroll
            for (int q = 0; q < CHILDREN; ++q) {
                bool exists = first + q < front.children;
                int c = exists ? front.child + first + q : 0;
                if (exists) child[q] = all.children[c];
                else child[q] = SmallChild{0, 0, 0};
                int position = exists ? all.maps[(long long)c * MAP_BYTES + lane()] : 0;
                row[q][lane()] = (unsigned char)position,
                column[q][lane()] = (short)column_offset(position);
            }
            sync();
#pragma unroll
            for (int q = 0; q < CHILDREN; ++q) {
                if (first + q >= rounds) break;
                add_child(child[q].m, row[q], column[q], blocks + child[q].block);
                sync();
            }
        }
    }

    // Set the upper triangle of rows from…order−1 to the adjoint (without ADJOINT: transpose) of
    // the lower.
    __device__ void mirror(int from, int order) {
        int r = lane();
        for (int c = from; c < r && r < order; ++c) data[c + r * LD] = mirrored(data[r + c * LD]);
    }

  private:
    // Add a child's contribution block. A power of two of threads read a column, the others further
    // columns; several loads of a thread are pending at once.
    __device__ void add_child(
        int m, const unsigned char *row_of, const short *column_of, const T *block) {
        constexpr int DEPTH = sizeof(T) == 16 ? 4 : 8;
        int width = m <= ORDER / 4 ? ORDER / 4 : m <= ORDER / 2 ? ORDER / 2 : ORDER;
        int r = lane() & (width - 1), step = ORDER / width,
            first = m <= ORDER / 2 ? lane() / width : 0;
        if (r >= m) return;
        T *target = data + row_of[r];
        const T *source = block + r;
        int last = LU ? m : r + 1;
        for (int c = first; c < last; c += step * DEPTH) {
            T v[DEPTH];
#pragma unroll
            for (int q = 0; q < DEPTH; ++q)
                if (c + q * step < last) v[q] = source[(c + q * step) * m];
#pragma unroll
            for (int q = 0; q < DEPTH; ++q)
                if (c + q * step < last) {
                    T &entry = target[column_of[c + q * step]];
                    entry = entry + v[q];
                }
        }
    }

  public:
    // Compute the 16×16 block at (r0, c0) minus the product of columns from…to−1 of the factors:
    // f(i, j, entry) with i and j counted in the block.
    template <class F> __device__ void reduce(int r0, int c0, int from, int to, F f) {
        WarpProduct<T, NB, NB> part;
        part.clear();
        for (int q = from; q < to; q += NB) {
            const T *left = panel(q / NB) + r0;
            const T *right = SQUARE ? data + q + c0 * LD : panel(q / NB) + c0;
            if (to - q > NB / 2)
                part.template add<NB, false, SQUARE, false, !SQUARE>(left, LD, right, LD);
            else part.template add<NB / 2, false, SQUARE, false, !SQUARE>(left, LD, right, LD);
        }
        const T *block = panel(c0 / NB) + r0;
        part.each([&](int i, int j, T &v) { f(i, j, block[i + j * LD] - v); });
    }

    // Compute row `row` of the inverse X of the n×n lower triangle of L (of the transpose of U if
    // `upper`) from X·L = I, the last columns first; −1 for no row. Entries j ≤ row go to `kept`,
    // for L of LU only j < row. X replaces L.
    __device__ void invert_row(int n, int row, bool upper, Triangle<T> kept) {
        int down = LU && upper ? LD : 1, across = LU && upper ? 1 : LD;
        bool unit = SQUARE && !upper;
#pragma unroll 1
        for (int q = (n - 1) / NB; q >= 0; --q) {
            int begin = q * NB;
            T x[NB], *from = data + (SQUARE ? begin * across : offset(q)), *own = from + row * down;
#pragma unroll
            for (int j = 0; j < NB; ++j) x[j] = begin + j == row ? one<T>() : zero<T>();
#pragma unroll 1
            for (int i = begin + NB; i <= row; ++i) {
                T v = -(unit && i == row
                            ? one<T>()
                            : data[SQUARE ? row * down + i * across : row + column_offset(i)]);
#pragma unroll
                for (int j = 0; j < NB; ++j) x[j] = fma_(v, from[i * down + j * across], x[j]);
            }
            from += begin * down;
#pragma unroll
            for (int j = NB - 1; j >= 0; --j) {
                if (begin + j >= n) continue;
                if (!unit) x[j] = scales[begin + j] * x[j];
#pragma unroll
                for (int i = 0; i < j; ++i) x[i] = fma_(-x[j], from[j * down + i * across], x[i]);
            }
            AlongRow<1, T> target(kept, row, begin);
#pragma unroll
            for (int j = 0; j < NB; ++j, target.advance())
                if (begin + j + (LU && !upper) <= row) *target.at = x[j];
            if (q == 0) return;
            sync();  // these columns are not needed any more
#pragma unroll
            for (int j = 0; j < NB; ++j)
                if (begin + j < row || (begin + j == row && !unit)) own[j * across] = x[j];
        }
    }
};
