// What the fibers tell the search for races between blocks (races.cpp), where kernels are compiled
// with it (EMULATION_RACES): several resident blocks, and no sanitizers.
#pragma once

#ifndef EMULATION_RACES
#define EMULATION_RACES 0
#endif

namespace emulation {
namespace races {
#if EMULATION_RACES
struct Range {
    const void *begin;
    size_t bytes;
};
// A launch begins: all that was before is known to all.
void launch(int blocks, Range stacks);
// Another block takes this place of a resident one.
void begin(int block, Range shared, Range statics);
void enter(int block, int warp);  // whose accesses follow
// A barrier of the block whose thread runs.
void barrier();
void acquire(const void *flag);
void release(const void *flag, bool add);
void read(const void *source, size_t bytes);
void message(const void *place, size_t bytes, bool write);  // an atomic operation, or a flag
#else
struct Range {
    const void *begin;
    size_t bytes;
};
inline void launch(int, Range) {}
inline void begin(int, Range, Range) {}
inline void enter(int, int) {}
inline void barrier() {}
inline void acquire(const void *) {}
inline void release(const void *, bool) {}
inline void read(const void *, size_t) {}
inline void message(const void *, size_t, bool) {}
#endif
}  // namespace races
}  // namespace emulation
