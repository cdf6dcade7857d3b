// Update of the columns right of an LU panel: interchange rows, solve for rows of U, subtract L·U.
//
// Tile map: a work item is a strip of columns as wide as a medium tile, one block each. One warp
// inverts the panel's unit triangle of L while the others move rows; the product with the inverse
// gives the strip's rows of U; then the block processes the strip downwards by tiles. A thread owns
// entries of a tile's accumulators. Dynamic shared memory: Strip::shared_elements.
// The steps are those of LAPACK's getrf, Anderson et al., "LAPACK users' guide" (1999): laswp,
// trsm, gemm. Blocks do not wait for each other, and no two share an entry of A.
//   PANEL  columns of a panel, at most 32
//   moves  lists of getrf_panel.cu, `panels` per matrix
//   last   the column at which the strips end
#include "dense/gemm.cuh"
#include "dense/laswp.cuh"
#include "dense/trtri.cuh"

#ifndef PANEL
#define PANEL 16
#endif

using T = SCALAR;
using Product = MediumTile<T>;

struct Strip {
    static constexpr int width = Product::cols, warps = Product::threads / 32,
                         side_ld = 32 + leading_pad<T, true>();
    static constexpr int solve_elements = 32 * tri_ld<T> + width * side_ld;
    static constexpr int shared_elements =
        solve_elements > Product::shared_elements ? solve_elements : Product::shared_elements;

    // u = inv(l)·u, with l in shared memory, inverted by trtri.cuh, and u of at most 32 rows.
    __device__ static void solve(const T *inverse, Matrix<T> u, T *side) {
        for (int e = threadIdx.x; e < 32 * width; e += Product::threads) {
            int k = e % 32, j = e / 32;
            side[k + j * side_ld] = k < u.rows && j < u.cols ? u(k, j) : zero<T>();
        }
        __syncthreads();
        constexpr int N = width / warps;
        int j0 = threadIdx.x / 32 * N;
        WarpProduct<T, 32, N> x;
        x.clear();
        x.template add<32, false, true, false, false>(
            inverse, tri_ld<T>, side + j0 * side_ld, side_ld);
        x.each([&](int r, int c, T &v) {
            if (r < u.rows && j0 + c < u.cols) u(r, j0 + c) = v;
        });
        __syncthreads();
    }
};

template <class Source>
__device__ void getrf_update(
    Source source, int j0, int last, const int *moves, int panels, const int4 *work, int period) {
    int4 item = work_item(work, period, blockIdx.x);
    Matrix<T> a = source(item.x);
    int steps = min_(PANEL, min_(a.rows, a.cols) - j0), first = j0 + steps + item.y;
    Matrix<T> l = a.at(j0, j0, a.rows, steps),
              c = a.at(j0, first, a.rows, min_(Strip::width, last - first));
    T *shared = shared_memory<T>();
    if (threadIdx.x < 32) {
        load_triangle(l.at(0, 0, steps, steps), Lower, Unit, shared);
        invert_triangle(shared);
    } else {
        const int *list = moves + ((long long)item.x * panels + j0 / PANEL) * moves_size<PANEL>;
        move_rows<PANEL, 4>(list, c, 1, Strip::warps - 1);
    }
    __syncthreads();
    Strip::solve(shared, c.at(0, 0, steps), shared + 32 * tri_ld<T>);
    for (int i = steps; i < c.rows; i += Product::rows)
        gemm<Product, NoTrans, NoTrans>(-one<T>(), l, c.at(0, 0, steps), one<T>(), c, i, 0, shared);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(Product::threads, 2) name(Source<T> a, int j0, \
        int last, const int *moves, int panels, const int4 *work, int period) { \
        getrf_update(a, j0, last, moves, panels, work, period); \
    }

ENTRY(getrf_update_native, Native)
ENTRY(getrf_update_batched, Batched)
ENTRY(getrf_update_vbatched, Vbatched)
