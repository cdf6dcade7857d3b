// Several resident blocks that take turns, for kernels whose blocks wait for each other.
//
// Each block has threads, shared memory and variables there of its own; blocks beyond the resident
// ones begin when others have ended. The block of the highest priority runs until its threads have
// all polled flags in vain; it may also be stopped where others could notice what it does: at a
// release, a message, an atomic operation. Policies tell when priorities change:
//   Random    at such places and at polls, now and then
//   Youngest  whoever changes a counter by an atomic operation, as who takes the latest ticket,
//             comes first: those that wait for others always come before these, and see what is
//             stale
//   Lazy      whoever released a flag or sent a message comes last: all others go as far as they
//             can
// When all have polled in vain again and again, the launch ends with a list of what they wait for.
//
// Wrong orders between blocks show in two ways: messages that are stale, or not yet there, are read
// by whoever does not wait for them; and races.cpp finds accesses that no flag has ordered. Not
// seen: what common/ptx.cuh itself does on a device, whose assembly is not compiled here; weak
// orders among messages (each must tell of itself alone); and races of the threads of one block.
#pragma once
#include "fibers.hpp"

namespace emulation {

enum Policy { Random, Youngest, Lazy };

constexpr size_t statics_bytes = size_t(48) << 10;
constexpr int vain_rounds = 20;

struct Schedule {
    int policy = Random, count = residents;  // count: of blocks that the device can hold
    unsigned long long random = 1;
    long long highest = 0, lowest = 0, changes = 0;
    int looks = 0;
    bool relinquish = false;  // another block shall run
    bool sent = false;        // a message is stored now; nobody was told yet
    size_t statics_used = 0;
};
static Schedule schedule;

inline unsigned draw(unsigned below) {  // Knuth's linear congruential generator
    schedule.random = schedule.random * 6364136223846793005ull + 1442695040888963407ull;
    return unsigned(schedule.random >> 33) % below;
}

// A block's variables in shared memory; `offset` is negative until they are first used.
template <class Variables> Variables &own_variables(long long &offset) {
    if (offset < 0) {
        offset = (schedule.statics_used + 15) / 16 * 16;
        schedule.statics_used = offset + sizeof(Variables);
        if (schedule.statics_used > statics_bytes) fail("too many variables in shared memory");
    }
    return *(Variables *)(block().statics + offset);
}

EMULATION_OWN inline void arrive_in_block() {
    grid.block = grid.current->block;
    blockIdx = grid.block->index;
    races::enter(int(grid.block - grid.blocks), grid.current->id / warp_size);
}

// --- whose turn it is ----------------------------------------------------------------------------

EMULATION_OWN inline bool stuck(const Block &own) {
    int ready = (own.tail - own.head + max_threads + 1) % (max_threads + 1);
    return own.changes == schedule.changes && own.polls > ready;
}

// What each block waits for: one thread for each place.
inline void wait_in_vain() {
    size_t length = snprintf(
        grid.error, sizeof grid.error, "deadlock in kernel %s: all blocks wait", grid.kernel);
    for (Block &own : grid.blocks) {
        if (!own.alive) continue;
        length += snprintf(grid.error + length, sizeof grid.error - length, "; block (%u, %u, %u)",
            own.index.x, own.index.y, own.index.z);
        const char *told = nullptr;
        bool barrier = false;
        for (int i = 0; i < grid.threads && length < sizeof grid.error - 150; ++i) {
            const Fiber *fiber = &own.fibers[i];
            if (fiber->state == AtBarrier && !barrier) {
                barrier = true, place(grid.error, sizeof grid.error, fiber);
            } else if (fiber->state == Ready && fiber->what != told) {
                told = fiber->what;
                length = strlen(grid.error);
                snprintf(grid.error + length, sizeof grid.error - length,
                    "; thread (%u, %u, %u) waits at %s", fiber->index.x, fiber->index.y,
                    fiber->index.z, told);
                length = strlen(grid.error);
                if (fiber->flag)
                    snprintf(grid.error + length, sizeof grid.error - length, " %p of value %d",
                        fiber->flag, *(const int *)fiber->flag);
            }
            length = strlen(grid.error);
        }
    }
    switch_to(&grid.main);
}

// Null where all wait in vain.
EMULATION_OWN inline Block *pick() {
    for (;;) {
        Block *best = nullptr;
        for (Block &own : grid.blocks)
            if (own.alive && !stuck(own) && (!best || own.priority > best->priority)) best = &own;
        if (best) return best;
        if (++grid.idle > vain_rounds) return nullptr;
        for (Block &own : grid.blocks) own.polls = 0;  // once more: not every store is noticed
    }
}

EMULATION_OWN inline void tell_others() {
    ++schedule.changes;
    grid.idle = 0;
    schedule.sent = false;
}

EMULATION_OWN inline Fiber *pop_any() {
    if (schedule.sent) tell_others();
    Block *next = &block();
    if (schedule.relinquish) {
        schedule.relinquish = false;
        next = pick();
        if (!next) wait_in_vain();
    }
    return pop(*next);
}

// --- where turns change --------------------------------------------------------------------------

inline void move_anywhere() { block().priority = draw(1 << 20); }

EMULATION_OWN inline void poll() {
    Block &own = block();
    if (schedule.sent) tell_others();
    if (own.changes != schedule.changes) own.changes = schedule.changes, own.polls = 0;
    ++own.polls;
    if (schedule.policy == Random && draw(4) == 0) move_anywhere(), schedule.relinquish = true;
    if (stuck(own)) schedule.relinquish = true;
}

inline void step_back() {
    schedule.relinquish = true;
    push(grid.current);
    suspend();
}

inline void changed(const void *flag) {
    progress();
    if (residents == 1) return;
    tell_others();
    if (!flag) return;
    if (schedule.policy == Random) {
        if (draw(2)) return;
        move_anywhere();
    }
    if (schedule.policy == Lazy) block().priority = --schedule.lowest;
    step_back();
}

inline void counted(const void *flag) {
    if (residents > 1 && schedule.policy == Youngest) block().priority = ++schedule.highest;
    changed(flag);
}

// --- launches ------------------------------------------------------------------------------------

inline void prepare_block(int place, long long number, size_t shared_bytes) {
    Block &own = grid.blocks[place];
    if (!own.statics) own.statics = (char *)malloc(statics_bytes);
    memset(own.statics, poison, statics_bytes);
    // All begin before any goes on.
    own.priority = (1ll << 40) + (schedule.policy == Random ? draw(1 << 20) : 0);
    own.polls = 0;
    grid.block = &own;
    races::begin(place, {own.shared, shared_bytes}, {own.statics, statics_bytes});
    unsigned x = number % gridDim.x, y = number / gridDim.x % gridDim.y,
             z = number / gridDim.x / gridDim.y;
    begin_block(shared_bytes, {x, y, z});
}

inline void run_blocks(size_t shared_bytes) {
    long long count = (long long)gridDim.x * gridDim.y * gridDim.z, next = 0;
    int places = max_threads / grid.threads;
    if (places > schedule.count) places = schedule.count;
    schedule.highest = schedule.lowest = schedule.looks = 0;
    schedule.relinquish = schedule.sent = false;
    races::launch(places, {grid.fibers[0].stack, max_threads * stack_bytes});
    while (!*grid.error) {
        bool any = false;
        for (int i = 0; i < places; ++i) {
            if (!grid.blocks[i].alive && next < count) prepare_block(i, next++, shared_bytes);
            any = any || grid.blocks[i].alive;
        }
        if (!any) return;
        schedule.relinquish = false;
        Block *chosen = pick();
        if (!chosen) return wait_in_vain();
        switch_to(pop(*chosen));
    }
}

}  // namespace emulation

#if EMULATION_RESIDENTS > 1
// --- called by races.cpp -------------------------------------------------------------------------

extern "C" inline __attribute__((visibility("hidden"), used)) void emulation_raced(
    const char *what) {
    emulation::fail(what);
}

// Before a message is stored, or read: who sends may be late, and who reads without end must let
// others run.
extern "C" inline __attribute__((visibility("hidden"), used)) void emulation_message(bool write) {
    using namespace emulation;
    if (schedule.sent) tell_others(), progress();
    if (!write) {
        if (++schedule.looks % 4096 == 0) yield("a message that is read again and again");
        return;
    }
    if (draw(8) == 0) {
        if (schedule.policy == Random) move_anywhere();
        if (schedule.policy == Lazy) block().priority = --schedule.lowest;
        step_back();
    }
    schedule.sent = true;
}

// The schedule of the launches that follow: a Policy, a seed, and how many blocks the device holds.
extern "C" __attribute__((visibility("default"), used)) void emulation_schedule(
    int policy, unsigned seed, int count) {
    emulation::schedule.policy = policy, emulation::schedule.random = seed;
    emulation::schedule.count = count < emulation::residents ? count : emulation::residents;
}
#endif
