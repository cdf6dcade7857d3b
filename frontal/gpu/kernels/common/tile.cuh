// The tile product: C (BM×BN, in the registers of a block) += op(A) (BM×K) · op(B) (K×BN), operands
// in global memory.
//
// Each of WARPS_M×WARPS_N warps owns a part of C (warp_product.cuh). Slices of BK columns of op(A)
// and BK rows of op(B) pass through STAGES buffers of shared memory, filled by asynchronous copies
// while older slices are multiplied. A slice has the memory order of its source, so that copies are
// 16 bytes wide if pointer and leading dimension allow; only the FMA types transpose operands
// stored along k.
// A tile of one warp synchronizes only that warp, so that a block may hold several independent
// tiles.
// C in registers, slices through shared memory: Volkov, Demmel, "Benchmarking GPUs to tune dense
// linear algebra" (2008); Nath, Tomov, Dongarra, "An improved MAGMA GEMM for Fermi graphics
// processing units" (2010).
#pragma once
#include "common/warp_product.cuh"

struct Nothing {
    __device__ void operator()() const {}
};

template <class T, int BM, int BN, int BK, int WARPS_M, int WARPS_N, int STAGES,
    bool PREFETCH = false>
struct Tile {
    static constexpr int threads = 32 * WARPS_M * WARPS_N;
    static constexpr int rows = BM, cols = BN;

  private:
    static constexpr bool tensor = !PLAIN && same_type<real_t<T>, double>;
    static constexpr int M = BM / WARPS_M, N = BN / WARPS_N;

    // Shared-memory layout of a slice of an operand with SIZE rows of op(A) (columns of op(B)).
    template <int SIZE, bool ALONG_K> struct Slice {
        static constexpr bool along_k = ALONG_K && tensor;
        static constexpr int ld = (along_k ? BK : SIZE) + leading_pad<T, along_k>();
        static constexpr int elements = (along_k ? SIZE : BK) * ld;
        static constexpr int wide = ALONG_K && !tensor ? 1 : 16 / sizeof(T);  // elements per copy
        static constexpr int source_rows = ALONG_K ? BK : SIZE, source_cols = ALONG_K ? SIZE : BK;
        static constexpr int row_step = ALONG_K == along_k ? 1 : ld,
                             col_step = ALONG_K == along_k ? ld : 1;

        __device__ static Matrix<T> part(Matrix<T> source, int k) {
            return ALONG_K ? source.at(k, 0, BK, SIZE) : source.at(0, k, SIZE, BK);
        }
    };
    template <int SIZE> __device__ static constexpr int slice_elements() {
        constexpr int one = Slice<SIZE, false>::elements, two = Slice<SIZE, true>::elements;
        return one > two ? one : two;
    }
    static constexpr int a_elements = slice_elements<BM>(), b_elements = slice_elements<BN>();

  public:
    static constexpr int shared_elements = STAGES * (a_elements + b_elements);
    // Elements of shared memory for operands with these TA and TB.
    template <Trans TA, Trans TB>
    static constexpr int elements_of =
        STAGES * (Slice<BM, TA != NoTrans>::elements + Slice<BN, TB == NoTrans>::elements);
    WarpProduct<T, M, N> product;

    __device__ static int thread() { return threads == 32 ? threadIdx.x & 31 : threadIdx.x; }
    __device__ static void sync() {
        if constexpr (threads == 32) __syncwarp();
        else __syncthreads();
    }

    __device__ void clear() { product.clear(); }

    // The part of C that this warp owns: part_rows × part_cols from (part_i, part_j) on.
    static constexpr int part_rows = M, part_cols = N;
    __device__ static int part_i() { return thread() / 32 % WARPS_M * M; }
    __device__ static int part_j() { return thread() / 32 / WARPS_M * N; }

    // C += op(a) · op(b). Rows of op(a) and columns of op(b) outside the views count as zeros. Ends
    // with a barrier, so that `shared` may be reused at once. A warp whose part is not `wanted`
    // copies for the others and leaves its part unchanged. `begin` is called when the first copies
    // are under way: its loads into C overlap with them.
    // PADDED: operands and their columns begin at multiples of 16 bytes, and each column is
    // followed by memory up to such a multiple; operands along k have no rows outside the view up
    // to it.
    template <Trans TA, Trans TB, bool PADDED = false, class Begin = Nothing>
    __device__ void multiply(
        Matrix<T> a, Matrix<T> b, T *shared, bool wanted = true, Begin begin = {}) {
        using A = Slice<BM, TA != NoTrans>;
        using B = Slice<BN, TB == NoTrans>;
        int steps = ceil_div(TA == NoTrans ? a.cols : a.rows, BK);
        wanted = wanted && part_i() < (TA == NoTrans ? a.rows : a.cols) &&
                 part_j() < (TB == NoTrans ? b.cols : b.rows);
        if constexpr (PREFETCH && !PLAIN) {
            constexpr int wide = 16 / sizeof(T);
            if (PADDED || (is_wide(a) && is_wide(b) && (a.rows | b.rows) % wide == 0))
                prefetched<A, B, wide>(a, b, steps, shared, wanted, begin);
            else prefetched<A, B, 1>(a, b, steps, shared, wanted, begin);
            return;
        }
        bool wide_a = is_wide(a), wide_b = is_wide(b);
        auto fetch = [&](int step) {
            if (step < steps) {
                T *stage = shared + step % STAGES * (A::elements + B::elements);
                copy<A>(A::part(a, step * BK), stage, wide_a);
                copy<B>(B::part(b, step * BK), stage + A::elements, wide_b);
            }
            copy_async_commit();
        };
#pragma unroll
        for (int step = 0; step < STAGES - 1; ++step) fetch(step);
        begin();
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            if constexpr (STAGES == 1) fetch(step);
            copy_async_wait<(STAGES > 1 ? STAGES - 2 : 0)>();
            sync();  // all threads see the slice and have finished the one before it
            if constexpr (STAGES > 1) fetch(step + STAGES - 1);
            const T *stage = shared + step % STAGES * (A::elements + B::elements);
            if (wanted)
                multiply_slice<A, B, TA == ConjTrans, TB == ConjTrans>(stage, stage + A::elements);
            if constexpr (STAGES == 1) sync();
        }
        sync();
    }

    // Call f(i, j, entry) for each entry of C that this thread owns; (i, j) is its position in the
    // tile.
    template <class F> __device__ void each(F f) {
        int i0 = part_i(), j0 = part_j();
        product.each([&](int i, int j, T &entry) { f(i0 + i, j0 + j, entry); });
    }

    // The same for part PART of PARTS of this thread's entries.
    template <int PART, int PARTS, class F> __device__ void each_of(F f) {
        constexpr int groups = WarpProduct<T, M, N>::TN;
        int i0 = part_i(), j0 = part_j();
        product.template each<PART * groups / PARTS, (PART + 1) * groups / PARTS>(
            [&](int i, int j, T &entry) { f(i0 + i, j0 + j, entry); });
    }

    __device__ void store_shared(T *target, int ld) {
        each([&](int i, int j, T &entry) { target[i + j * ld] = entry; });
    }

  private:
    __device__ static bool is_wide(Matrix<T> m) {
        constexpr int elements = 16 / sizeof(T);
        return reinterpret_cast<unsigned long long>(m.data) % 16 == 0 && m.ld % elements == 0;
    }

    template <class A, class B, bool CONJ_A, bool CONJ_B>
    __device__ void multiply_slice(const T *a, const T *b) {
        a += part_i() * (A::along_k ? A::ld : 1);
        b += part_j() * (B::along_k ? B::ld : 1);
        product.template add<BK, A::along_k, B::along_k, CONJ_A, CONJ_B>(a, A::ld, b, B::ld);
    }

    // This thread's chunks of an operand, slice by slice.
    template <class S, int WIDE> struct Stream {
        static constexpr int column = S::source_rows / WIDE, cols = threads / column;
        static_assert(threads % column == 0, "threads cover whole columns");
        const T *source;
        long long step;
        int rows_left, cols_left, place;

        __device__ explicit Stream(Matrix<T> m) {
            int i = thread() % column * WIDE, j = thread() / column;
            source = m.data + i + (long long)j * m.ld, step = (long long)cols * m.ld;
            rows_left = m.rows - i, cols_left = m.cols - j,
            place = i * S::row_step + j * S::col_step;
        }
        __device__ void copy(T *stage) {
            const T *from = source;
#pragma unroll
            for (int q = 0; q < S::source_cols / cols; ++q) {
                copy_async<(int)sizeof(T) * WIDE>(stage + place + q * cols * S::col_step, from,
                    rows_left > 0 && q * cols < cols_left);
                from += step;
            }
            if constexpr (S::along_k) source += BK, rows_left -= BK;
            else source = from, cols_left -= BK;
        }
    };

    // multiply() with operands loaded into registers one step ahead, during the tensor-core
    // products: with few warps and large parts, other warps do not hide the latency of shared
    // memory.
    template <class A, class B, int WIDE, class Begin>
    __device__ void prefetched(
        Matrix<T> a, Matrix<T> b, int steps, T *shared, bool wanted, Begin begin) {
        constexpr int parts = BK / 4, stage_elements = A::elements + B::elements;
        static_assert(parts % 2 == 0, "the two sets of registers take turns");
        const T *a0 = shared + part_i() * (A::along_k ? A::ld : 1);
        const T *b0 = shared + A::elements + part_j() * (B::along_k ? B::ld : 1);
        Stream<A, WIDE> stream_a(a);
        Stream<B, WIDE> stream_b(b);
        auto fetch = [&](int step) {
            if (step < steps) {
                T *stage = shared + step % STAGES * stage_elements;
                stream_a.copy(stage), stream_b.copy(stage + A::elements);
            }
            copy_async_commit();
        };
        typename WarpProduct<T, M, N>::Fragments f[2];
        auto load = [&](int step, int part) {
            int stage = step % STAGES * stage_elements;
            f[part % 2].template load<A::along_k, B::along_k>(
                a0 + stage, A::ld, b0 + stage, B::ld, part * 4);
        };
#pragma unroll
        for (int step = 0; step < STAGES - 1; ++step) fetch(step);
        begin();
        copy_async_wait<STAGES - 2>();
        sync();
        load(0, 0);
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            fetch(step + STAGES - 1);
            if (wanted) {  // one branch around all, so that the compiler mixes loads and products
#pragma unroll
                for (int part = 0; part + 1 < parts; ++part) {
                    load(step, part + 1);
                    product.multiply(f[part % 2]);
                }
            }
            copy_async_wait<STAGES - 2>();
            sync();  // all threads see the next slice and have loaded this one
            if (wanted) {
                load(step + 1, 0);
                product.multiply(f[(parts - 1) % 2]);
            }
        }
        copy_async_wait<0>();
        sync();
    }

    template <class S> __device__ static void copy(Matrix<T> part, T *target, bool wide) {
        if (S::wide > 1 && wide && part.rows % S::wide == 0) copy_chunks<S, S::wide>(part, target);
        else copy_chunks<S, 1>(part, target);
    }

    // Copy `part`, which has whole chunks of WIDE rows. Thread t takes chunks t, t + threads, … in
    // the order of the source's columns: it stays in its row (or rows) and only advances its
    // pointers.
    template <class S, int WIDE> __device__ static void copy_chunks(Matrix<T> part, T *target) {
        constexpr int column = S::source_rows / WIDE, chunks = column * S::source_cols;
        static_assert(
            threads % column == 0 || column % threads == 0, "threads cover whole columns");
        constexpr int cols = threads > column ? threads / column : 1,
                      rows = column > threads ? threads : column;
        constexpr int passes = (S::source_cols + cols - 1) / cols;
#pragma unroll
        for (int first = 0; first < column; first += rows) {
            int i = (first + thread() % rows) * WIDE, j = thread() / rows;
            const T *source = part.data + i + (long long)j * part.ld;
            T *place = target + i * S::row_step + j * S::col_step;
#pragma unroll(WIDE > 1 ? 16 : 1)
            for (int pass = 0; pass < passes; ++pass, j += cols) {
                if (S::source_cols % cols && j >= S::source_cols) break;
                copy_async<(int)sizeof(T) * WIDE>(place, source, i < part.rows && j < part.cols);
                source += (long long)cols * part.ld, place += cols * S::col_step;
            }
        }
    }
};

// The tile shapes that other routines use.
template <class T> struct TileShapes {
    using Tiny = Tile<T, 16, 16, 16, 1, 1, 1>;
    using Small = Tile<T, 32, 32, 32, 1, 2, 1>;
    using Medium = Tile<T, 64, 64, 16, 2, 2, 3>;
    using Tall = Tile<T, 128, 64, 16, 2, 2, 3>;
    using Large = Tile<T, 128, 64, 16, 2, 2, 3>;
};
template <> struct TileShapes<double> {
    using T = double;
    using Tiny = Tile<T, 16, 16, 16, 1, 1, 1>;
    using Small = Tile<T, 32, 32, 32, 1, 2, 1>;
    using Medium = Tile<T, 64, 64, 16, 2, 2, 3, true>;
    using Tall = Tile<T, 128, 64, 16, 2, 2, 3, true>;
    using Large = Tile<T, 128, 128, 16, 2, 4, 4, true>;
};
template <> struct TileShapes<complex<double>> {
    using T = complex<double>;
    using Tiny = Tile<T, 16, 16, 16, 1, 1, 1>;
    using Small = Tile<T, 32, 32, 8, 2, 2, 4>;
    using Medium = Tile<T, 64, 32, 8, 2, 2, 3>;
    using Tall = Tile<T, 64, 64, 8, 2, 2, 3>;
    using Large = Tile<T, 64, 64, 8, 2, 2, 3>;
};
template <class T> using TinyTile = typename TileShapes<T>::Tiny;
template <class T> using SmallTile = typename TileShapes<T>::Small;
template <class T> using MediumTile = typename TileShapes<T>::Medium;
template <class T> using TallTile = typename TileShapes<T>::Tall;
template <class T> using LargeTile = typename TileShapes<T>::Large;

// Tile shape CHOICE of the five with its launch shape: tiles per block, threads per block, and
// blocks that must fit on a multiprocessor (which bounds the registers of a thread).
template <class T, int CHOICE> struct TileChoice;
template <class T> struct TileChoice<T, 0> : TinyTile<T> {
    static constexpr int per_block = 4, block = 128, residents = sizeof(T) == 16 ? 3 : 4;
};
template <class T> struct TileChoice<T, 1> : SmallTile<T> {
    static constexpr int per_block = 1, block = SmallTile<T>::threads,
                         residents = sizeof(T) == 16 ? 3 : 4;
};
template <class T> struct TileChoice<T, 2> : MediumTile<T> {
    static constexpr int per_block = 1, block = MediumTile<T>::threads,
                         residents = sizeof(T) == 16 ? 2 : 3;
};
template <class T> struct TileChoice<T, 3> : TallTile<T> {
    static constexpr int per_block = 1, block = TallTile<T>::threads, residents = 2;
};
template <class T> struct TileChoice<T, 4> : LargeTile<T> {
    static constexpr int per_block = 1, block = LargeTile<T>::threads;
    static constexpr int residents = block > 128 ? 1 : 2;
};
