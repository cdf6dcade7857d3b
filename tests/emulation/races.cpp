// Races between blocks in global memory: two accesses to a number, one of them a write, by blocks
// that no release and acquire of a flag put in an order. They are found however the blocks were
// interleaved, so a wait that is missing shows even where what it waits for happens to be there.
//
// The compiler calls the functions below at each access to memory (-fsanitize=thread; its library
// is not used). As in FastTrack (Flanagan, Freund, 2009), a number remembers who wrote and read it
// last, and a warp what it knows of the others: warps of a block learn it from each other at a
// barrier, from other blocks by flags. Time is counted in segments of warps, which end at barriers
// and releases.
//
// Volatile accesses and atomic operations are messages: they race with plain accesses alone, and
// order nothing but themselves: who has read a message may overwrite it. A plain load or store of a
// flag, a relaxed load instead of acquire, a release before the barrier that ends the writes: all
// are races. What happens inside one block is not looked at, nor is shared memory: a release is
// taken to cover what its own warp has written.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unordered_map>

#define EMULATION_RACES 1
#include "races.hpp"

extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[], _end[];  // of this library
extern "C" void emulation_raced(const char *what);                             // leaves the launch
extern "C" void emulation_message(bool write);                                 // others may run now

namespace emulation {
namespace races {

constexpr int most = 8, most_warps = 32;
constexpr int granule = 1;  // bytes that are told apart: blocks may write one each
constexpr size_t page_bytes = size_t(1) << 16;

// What is known of each resident block, or the ones that were in its place before: all before
// segment `all`, and of one warp all until `upto`. Of itself a block knows all without that.
struct Clock {
    unsigned all[most] = {}, upto[most] = {};
    unsigned char warp[most] = {};

    void join(const Clock &other) {
        for (int b = 0; b < most; ++b) {
            if (other.all[b] > all[b]) all[b] = other.all[b];
            if (other.upto[b] > upto[b]) upto[b] = other.upto[b], warp[b] = other.warp[b];
        }
    }
};

struct Resident {
    // barrier: the segment that the last one began.
    unsigned start = 0, barrier = 0, segment[most_warps] = {};
    Clock known[most_warps];
    Range shared{}, statics{};
};

// Of one granule.
struct Cell {
    unsigned written;  // the segment, 0 for never
    unsigned char block, warp, message, readers;
    unsigned read[most];  // twice the segment, odd for messages
};

static Resident residents[most];
static Range stacks;
static unsigned now = 1, launched = 1;
static int block, warp;
static std::unordered_map<const void *, Clock> flags;
static std::unordered_map<size_t, Cell *> pages;
static size_t last_page = ~size_t(0);
static Cell *last_cells = nullptr;

void launch(int blocks, Range all_stacks) {
    stacks = all_stacks;
    launched = ++now;
    flags.clear();
}

void begin(int b, Range shared, Range statics) {
    Resident &own = residents[b];
    own.start = own.barrier = ++now, own.shared = shared, own.statics = statics;
    for (int w = 0; w < most_warps; ++w) own.segment[w] = now, own.known[w] = Clock{};
}

void enter(int b, int w) { block = b, warp = w; }

void barrier() {
    Resident &own = residents[block];
    Clock all;
    for (const Clock &clock : own.known) all.join(clock);
    own.barrier = ++now;
    for (int w = 0; w < most_warps; ++w) own.known[w] = all, own.segment[w] = now;
}

void acquire(const void *flag) {
    auto found = flags.find(flag);
    if (found != flags.end()) residents[block].known[warp].join(found->second);
}

void release(const void *flag, bool add) {
    Resident &own = residents[block];
    Clock clock = own.known[warp];
    clock.all[block] = own.barrier;
    clock.upto[block] = own.segment[warp], clock.warp[block] = warp;
    if (add) flags[flag].join(clock);
    else flags[flag] = clock;
    own.segment[warp] = ++now;
}

// Whether this warp knows of what warp w (-1: any) of block b did in a segment.
static inline bool knows(int b, int w, unsigned segment) {
    const Resident &own = residents[block];
    if (segment < launched || (b == block && segment >= own.start)) return true;
    const Clock &clock = own.known[warp];
    return segment < clock.all[b] || (segment <= clock.upto[b] && (w < 0 || w == clock.warp[b]));
}

static void tell(const void *place, bool write, bool other_wrote, int other) {
    char text[300];
    snprintf(text, sizeof text,
        "a race: %s the number at %p, which resident block %d %s, and no flag puts the one before "
        "the other",
        write ? "writes" : "reads", place, other, other_wrote ? "has written" : "has read");
    emulation_raced(text);
}

static inline void look(Cell &cell, const void *place, bool message) {
    if (cell.written && !(message && cell.message) && !knows(cell.block, cell.warp, cell.written))
        return tell(place, false, true, cell.block);
    cell.read[block] = 2 * residents[block].segment[warp] + message;
    cell.readers |= 1 << block;
}

static inline void change(Cell &cell, const void *place, bool message) {
    bool taken = cell.message && cell.readers >> block & 1;  // this block has read the message
    if (cell.written && !(message && cell.message) && !taken &&
        !knows(cell.block, cell.warp, cell.written))
        return tell(place, true, true, cell.block);
    for (int b = 0; cell.readers >> b; ++b) {
        if (!(cell.readers >> b & 1) || b == block || (message && cell.read[b] % 2)) continue;
        if (!knows(b, -1, cell.read[b] / 2)) return tell(place, true, false, b);
    }
    cell.written = residents[block].segment[warp];
    cell.block = block, cell.warp = warp, cell.message = message, cell.readers = 0;
}

static Cell *cells_of(size_t page) {
    Cell *&cells = pages[page];
    if (!cells) cells = (Cell *)calloc(page_bytes / granule, sizeof(Cell));
    last_page = page;
    return last_cells = cells;
}

static inline bool within(const void *place, Range range) {
    return (size_t)place - (size_t)range.begin < range.bytes;
}

static inline void visit(
    const void *place, size_t bytes, bool write, bool message, bool whole = false) {
    const Resident &own = residents[block];
    if (within(place, stacks) || within(place, own.shared) || within(place, own.statics)) return;
    if ((const char *)place >= __ehdr_start && (const char *)place < _end) return;
    if (message && !whole) emulation_message(write);
    for (size_t at = (size_t)place / granule; at <= ((size_t)place + bytes - 1) / granule; ++at) {
        size_t page = at / (page_bytes / granule);
        Cell *cells = page == last_page ? last_cells : cells_of(page);
        Cell &cell = cells[at % (page_bytes / granule)];
        if (write) change(cell, place, message);
        else look(cell, place, message);
    }
}

void read(const void *source, size_t bytes) { visit(source, bytes, false, false); }
void message(const void *place, size_t bytes, bool write) {
    visit(place, bytes, write, true, true);
}

}  // namespace races
}  // namespace emulation

// What the compiler calls, before the access.
#define ACCESS(name, bytes, write, message) \
    void __tsan_##name(void *place) { emulation::races::visit(place, bytes, write, message); }
#define ACCESSES(bytes) \
    ACCESS(read##bytes, bytes, false, false) \
    ACCESS(write##bytes, bytes, true, false) \
    ACCESS(volatile_read##bytes, bytes, false, true) \
    ACCESS(volatile_write##bytes, bytes, true, true) \
    ACCESS(unaligned_read##bytes, bytes, false, false) \
    ACCESS(unaligned_write##bytes, bytes, true, false) \
    ACCESS(unaligned_volatile_read##bytes, bytes, false, true) \
    ACCESS(unaligned_volatile_write##bytes, bytes, true, true)

extern "C" {
#pragma GCC visibility push(hidden)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_read_range(void *place, size_t bytes) {
    emulation::races::visit(place, bytes, false, false);
}
void __tsan_write_range(void *place, size_t bytes) {
    emulation::races::visit(place, bytes, true, false);
}
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
    emulation::races::visit(from, bytes, false, false),
        emulation::races::visit(to, bytes, true, false);
    return memcpy(to, from, bytes);
}
void *__tsan_memset(void *to, int byte, size_t bytes) {
    emulation::races::visit(to, bytes, true, false);
    return memset(to, byte, bytes);
}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_init() {}
#pragma GCC visibility pop
}
