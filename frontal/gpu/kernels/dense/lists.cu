// Address arithmetic for lists of matrices: addresses, gathers and scatters.
//
// Tile map: a thread per entry, none beyond `count`; no shared memory, no waiting.
using u64 = unsigned long long;

__device__ inline int entry_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// to[i] = begin + offsets[i], in bytes: addresses of matrices that are consecutive in memory.
extern "C" __global__ void list_places(
    const char *begin, const long long *offsets, u64 *to, int count) {
    int i = entry_index();
    if (i < count) to[i] = (u64)begin + offsets[i];
}

// to[i] = from[members[i]]: addresses of a subset of a list.
extern "C" __global__ void list_take(const u64 *from, const int *members, u64 *to, int count) {
    int i = entry_index();
    if (i < count) to[i] = from[members[i]];
}

// to[members[i]] = from[i]: results of a subset of a list.
extern "C" __global__ void list_put(const int *from, const int *members, int *to, int count) {
    int i = entry_index();
    if (i < count) to[members[i]] = from[i];
}
