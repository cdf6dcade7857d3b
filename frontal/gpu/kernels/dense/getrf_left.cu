// LU with partial pivoting, left-looking, of matrices up to 512 rows: one block per matrix, one
// launch.
//
// Row map: thread t owns row t, which is not moved until the end; `position` is the row's position
// after the interchanges so far. For each panel of NB columns, a warp holds its 32 rows of the
// panel in accumulators, negated. For each earlier block of pivots, the rows of these pivots form Y
// and are replaced by U = L11⁻¹·Y, and L·U is added to all other rows (tensor cores for fp64). Then
// the panel passes through shared memory to one row per thread, in registers, and is factored.
//
// Each entry is thus read and written once, except L, which later panels read again, and rows are
// interchanged once, at the end. Dynamic shared memory: NB columns of `ld` elements (L, or a panel
// in transit), U, an inverse, the positions, and the memory of Panel. Threads: a multiple of 32, at
// least the number of rows.
// A is read from the source that INTO selects (common/matrix.cuh). Left-looking by columns:
// Dongarra, Gustavson, Karp, "Implementing linear algebra algorithms for dense matrices on a vector
// pipeline machine" (1984).
//   order     matrices by size; null for their own order
//   ld        leading dimension in shared memory, for the tallest matrix
//   kept      32×32 elements for each of `panels` panels of a block: the inverses L11⁻¹
#include "dense/getf2.cuh"
#include "dense/trtri.cuh"
#include "common/warp_product.cuh"

using T = SCALAR;
constexpr int NB = sizeof(T) == 16 ? 16 : 32, LEFT_THREADS = sizeof(T) == 16 ? 256 : 512,
              TRIANGLE = tri_order * tri_order;
constexpr int U_LD = NB + leading_pad<T, false>();  // U by rows: (k, j) at j + k*U_LD

// State of a matrix, in shared memory: it occupies no registers while they are needed elsewhere.
struct LeftLooking {
    Matrix<T> a, from;
    int n, ld;  // number of pivots; leading dimension of left()
    T *kept;
    int *pivots;

    // Offsets from shared_memory(), so that the compiler sees shared-memory addresses.
    __device__ T *left() const { return shared_memory<T>(); }
    __device__ T *u() const { return left() + NB * ld; }
    __device__ T *inverse() const { return u() + NB * U_LD; }
    __device__ int *positions() const {
        return reinterpret_cast<int *>(inverse() + tri_order * tri_ld<T>);
    }
    __device__ unsigned char *work() const {
        return reinterpret_cast<unsigned char *>(positions() + blockDim.x);
    }

    __device__ static int row() { return threadIdx.x; }
    __device__ static int first_row() { return threadIdx.x / 32 * 32; }
    __device__ bool has_rows() const { return first_row() < a.rows; }
    __device__ int steps(int j0) const { return min_(NB, n - j0); }

    using Product = WarpProduct<T, 32, NB>;

    __device__ void load(Product &c, int j0) const {
        c.clear();
        if (!has_rows()) return;
        Matrix<T> part = a.at(first_row(), j0, 32, NB);
        c.each([&](int i, int j, T &v) {
            i = min_(i, part.rows - 1), j = min_(j, part.cols - 1);
            v = INTO ? *source_entry(from, first_row() + i, j0 + j) : part(i, j);
        });
        c.each([&](int i, int j, T &v) { v = i < part.rows && j < part.cols ? -v : zero<T>(); });
    }

    // Begin to copy the inverse and the columns of L of the pivots from `first` on.
    __device__ void fetch(int first, int position) const {
        fetch_triangle(kept + first / NB * TRIANGLE, inverse());
        copy_async_commit();
        bool below = position >= first + steps(first);
        const T *source = &a(row() < a.rows ? row() : 0, first);
#pragma unroll 4
        for (int k = 0; k < NB; ++k, source += a.ld)
            copy_async<sizeof(T)>(left() + row() + k * ld, source, below && k < steps(first));
        copy_async_commit();
    }

    // u ← the rows of C that are pivots from `first` on, then zeros up to NB rows.
    __device__ void gather(Product &c, int first) const {
        int count = steps(first);
        if (has_rows())
            c.each_row([&](int i, auto row) {
                int p = positions()[first_row() + i] - first;
                if (p >= 0 && p < count) row([&](int j, T &v) { u()[j + p * U_LD] = -v; });
            });
        for (int e = count * NB + threadIdx.x; e < NB * NB; e += blockDim.x)
            u()[e % NB + e / NB * U_LD] = zero<T>();
    }

    // u ← inverse·u, 16 columns per warp.
    __device__ void solve() const {
        if (threadIdx.x >= NB / 16 * 32) return;
        WarpProduct<T, NB, 16> x;
        T *part = u() + threadIdx.x / 32 * 16;
        x.clear();
        x.template add<NB, false, false, false, false>(inverse(), tri_ld<T>, part, U_LD);
        __syncwarp();
        x.each([&](int i, int j, T &v) { part[j + i * U_LD] = v; });
    }

    // C ← C + L·U; the rows of the pivots from `first` on are replaced by their rows of U.
    __device__ void update(Product &c, int first) const {
        if (!has_rows()) return;
        c.template add<NB, false, false, false, false>(left() + first_row(), ld, u(), U_LD);
        int count = steps(first);
        c.each_row([&](int i, auto row) {
            int p = positions()[first_row() + i] - first;
            if (p >= 0 && p < count) row([&](int j, T &v) { v = -u()[j + p * U_LD]; });
        });
    }

    // Convert C to one row per thread.
    __device__ void turn(Product &c, T (&entries)[1][NB]) const {
        if (has_rows()) c.each([&](int i, int j, T &v) { left()[first_row() + i + j * ld] = -v; });
        __syncthreads();
#pragma unroll
        for (int k = 0; k < NB; ++k)
            entries[0][k] = row() < a.rows ? left()[row() + k * ld] : zero<T>();
    }

    // Factor the panel at column j0; its triangle goes to `inverse`. Returns LAPACK's info of the
    // panel.
    __device__ int factor(T (&entries)[1][NB], int j0, int &position, real_t<T> tiny) const {
        int relative[1] = {position >= j0 ? position - j0 : -1}, count = steps(j0);
        int info = Panel<T, NB, 1>::factor(entries, relative, count, work(), pivots, tiny);
        if (relative[0] >= 0) position = relative[0] + j0;
        positions()[row()] = position;
        if (relative[0] < count) put_triangle(relative[0], entries[0], count);
        if (row() >= count && row() < tri_order) put_triangle(row(), entries[0], count);
        return info;
    }

    // Invert the panel's triangle and store it in `kept`, by one warp.
    __device__ void invert(int j0) const {
        if (threadIdx.x >= 32) return;
        invert_triangle(inverse());
        store_triangle(inverse(), kept + j0 / NB * TRIANGLE);
    }

    // Store row i of the unit triangle of the pivots' rows; from row `count` on, of the identity.
    __device__ void put_triangle(int i, const T (&entries)[NB], int count) const {
        if (i < 0) return;
#pragma unroll
        for (int j = 0; j < tri_order; ++j) {
            T below = j < NB && i < count ? entries[j < NB ? j : 0] : zero<T>();
            inverse()[i + j * tri_ld<T>] = j < i ? below : j == i ? one<T>() : zero<T>();
        }
    }

    __device__ void store(const T (&entries)[1][NB], int j0) const {
        if (row() >= a.rows) return;
#pragma unroll
        for (int k = 0; k < NB; ++k)
            if (j0 + k < a.cols) a(row(), j0 + k) = entries[0][k];
    }

    // Move rows to their positions.
    __device__ void interchange(int position) const {
        bool some = position >= 0;
        for (int j0 = 0; j0 < a.cols; j0 += NB) {
            int columns = min_(NB, a.cols - j0);
            T *own = &a(some ? row() : 0, j0), *target = left() + (some ? position : 0);
#pragma unroll 8
            for (int k = 0; k < NB; ++k)
                if (some && k < columns)
                    copy_async<sizeof(T)>(target + k * ld, own + (long long)k * a.ld, true);
            copy_async_commit();
            copy_async_wait<0>();
            __syncthreads();
#pragma unroll 8
            for (int k = 0; k < NB; ++k)
                if (some && k < columns) own[(long long)k * a.ld] = left()[row() + k * ld];
            __syncthreads();
        }
    }
};

template <class Source, class Pivots>
__device__ void getrf_left(Source from, Source to, Pivots all_pivots, const int *order, int ld,
    int panels, T *kept, int *info, real_t<T> tiny) {
    __shared__ int pivots[NB];
    __shared__ LeftLooking x;
    int b = order ? order[blockIdx.x] : blockIdx.x, failure = 0;
    if (threadIdx.x == 0) {
        Matrix<T> given = from(b), a = INTO ? to(b) : given;
        x = {a, given, min_(a.rows, a.cols), ld, kept + (long long)blockIdx.x * panels * TRIANGLE,
            pivots};
    }
    __syncthreads();
    int position = x.row() < x.a.rows ? x.row() : -1;
    for (int j0 = 0; j0 < x.a.cols; j0 += NB) {
        LeftLooking::Product c;
        x.load(c, j0);
        for (int first = 0; first < min_(j0, x.n); first += NB) {
            x.fetch(first, position);
            x.gather(c, first);
            copy_async_wait<1>();
            __syncthreads();
            x.solve();
            copy_async_wait<0>();
            __syncthreads();
            x.update(c, first);
            __syncthreads();
        }
        T entries[1][NB];
        x.turn(c, entries);
        int found = j0 < x.n ? x.factor(entries, j0, position, tiny) : 0;
        failure = combined_info(failure, found, j0);
        x.store(entries, j0);
        __syncthreads();
        if (j0 + (int)threadIdx.x < x.n && threadIdx.x < NB)
            all_pivots(b)(j0 + threadIdx.x, 0) = j0 + pivots[threadIdx.x] + FIRST_ROW;
        if (j0 < x.n) x.invert(j0);
        __syncthreads();
    }
    x.interchange(position);
    if (threadIdx.x == 0) info[b] = failure;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(LEFT_THREADS) \
        name(Source<T> a, Source<T> to, Source<int> pivots, const int *order, int ld, int panels, \
            T *kept, int *info, real_t<T> tiny) { \
        getrf_left(a, to, pivots, order, ld, panels, kept, info, tiny); \
    }

ENTRY(getrf_left_native, Native)
ENTRY(getrf_left_batched, Batched)
ENTRY(getrf_left_vbatched, Vbatched)
