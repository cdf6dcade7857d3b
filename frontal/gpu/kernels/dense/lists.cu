// What lists of matrices need beside their numbers: addresses, and parts of arrays.
//
// Tile map: a thread an entry, beyond `count` none; no shared memory, and nobody waits.
using u64 = unsigned long long;

__device__ inline int entry_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// to[i] = begin + offsets[i], in bytes: where matrices lie that follow each other in memory.
extern "C" __global__ void list_places(
    const char *begin, const long long *offsets, u64 *to, int count) {
    int i = entry_index();
    if (i < count) to[i] = (u64)begin + offsets[i];
}

// to[i] = from[members[i]]: where some matrices of a list lie.
extern "C" __global__ void list_take(const u64 *from, const int *members, u64 *to, int count) {
    int i = entry_index();
    if (i < count) to[i] = from[members[i]];
}

// to[members[i]] = from[i]: what became of some matrices of a list.
extern "C" __global__ void list_put(const int *from, const int *members, int *to, int count) {
    int i = entry_index();
    if (i < count) to[members[i]] = from[i];
}
