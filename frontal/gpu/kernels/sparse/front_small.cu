// Factorization of the small fronts of one level of an assembly tree, each from its assembly to its
// end: A = L·Lᴴ, P·A = L·U with P inside the pivot block (LU), or P·A·Pᵀ = L·D·Lᴴ (LDL). The method
// is in front.cuh.
//
// Tile map: fronts of up to 64, 32 and 16 rows take 64, 32 and 16 threads; a block of 64 threads
// has 1, 2 or 4 of them, and thread r of a front owns row r. The front lies in dynamic shared
// memory (SmallTile in small_front.cuh; the host computes its size). Columns are eliminated in
// registers in panels of 16. The last panel's other columns belong to the contribution block; the
// rest of that block is computed as 16×16 products by warps and stored from registers: it is
// written once, over blocks that lower levels have read. Deadlock: none, since launches are ordered
// and no thread waits for flags.
//
//   list   the level's fronts from `first` on: `large` of up to 64 rows, `medium` of up to 32, then
//          `small` of up to 16
#include "sparse/small_factor.cuh"

constexpr int THREADS = SMALL_THREADS;
// Blocks per multiprocessor, limited by registers.
constexpr int RESIDENTS = LDL || sizeof(T) == 16 ? 6 : sizeof(T) == 4 && CHOLESKY ? 10 : 8;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENTS)
    front_small(const __grid_constant__ SmallFronts all, const __grid_constant__ Outputs to,
        int first, int large, int medium, int small, const T *values) {
    int block = blockIdx.x, group = threadIdx.x, pairs = ceil_div(medium, 2);
    if (block < large) return run<64>(all, to, first + block, true, values);
    block -= large, first += large;
    if (block < pairs) {
        group = 2 * block + group / 32;
        return run<32>(all, to, first + group, group < medium, values);
    }
    group = 4 * (block - pairs) + group / 16;
    run<16>(all, to, first + medium + group, group < small, values);
}
