// Info of LU factors from another library: the first column, from 1, whose pivot's reciprocal is
// not a normal number, or 0.
//
// Tile map: one block per matrix; a thread checks every THREADS-th entry of the diagonal. Static
// shared memory: one integer. getf2.cuh defines acceptable pivots.
#include "dense/getf2.cuh"

using T = SCALAR;
constexpr int THREADS = 256;

template <class Source> __device__ void getrf_info(Source source, int *info) {
    __shared__ int first;
    Matrix<T> m = source(blockIdx.x);
    int n = min_(m.rows, m.cols), found = n;
    if (threadIdx.x == 0) first = n;
    __syncthreads();
    for (int k = threadIdx.x; k < n && found == n; k += THREADS)
        if (!is_pivot_magnitude<real_t<T>>(magnitude(abs1(m(k, k))).high)) found = k;
    if (found < n) atomicMin(&first, found);
    __syncthreads();
    if (threadIdx.x == 0) info[blockIdx.x] = first < n ? first + 1 : 0;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(THREADS) name(Source<T> a, int *info) { \
        getrf_info(a, info); \
    }

ENTRY(getrf_info_native, Native)
ENTRY(getrf_info_batched, Batched)
ENTRY(getrf_info_vbatched, Vbatched)
