// A grid of CUDA threads on one CPU thread: every CUDA thread of a block is a fiber that runs until
// it must wait for others. Blocks run one after another, or several take turns (interleave.hpp).
// The order in which fibers are resumed is reversed at every barrier, so that code which relies on
// one order of threads fails.
#pragma once
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef EMULATION_RESIDENTS
#define EMULATION_RESIDENTS 1  // blocks that are under way together, at most
#endif

#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ASAN 1
#endif
#endif
#ifdef EMULATION_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include "races.hpp"

// Functions whose own accesses to memory are none of the kernel's.
#define EMULATION_OWN __attribute__((no_sanitize("thread")))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

namespace emulation {

constexpr int warp_size = 32, max_threads = 1024, residents = EMULATION_RESIDENTS;
constexpr size_t stack_bytes = size_t(256) << 10;
constexpr unsigned char poison = 0xff;  // bytes of a NaN, and of -1

enum State { Ready, AtBarrier, AtCollective, Ended };

struct Copy;  // to shared memory, that has begun (copies.hpp)
struct Block;

struct Fiber {
    void *sp = nullptr, *asan = nullptr;
    char *stack = nullptr;  // lowest address
    Block *block = nullptr;
    uint3 index{};
    int id = 0;
    State state = Ready;
    const char *what = "";  // the collective that the fiber waits at, or the flag
    const void *flag = nullptr;
    unsigned mask = 0;
    void *payload = nullptr;
    Copy *copies = nullptr;
    int copy_count = 0, copy_room = 0, group = 0;
#ifndef __x86_64__
    ucontext_t context;
#endif
};

// What the threads of a block share.
struct Block {
    Fiber *fibers = nullptr;
    uint3 index{};
    int alive = 0, arrived = 0;
    int line = 0;                                    // of the barrier that some have reached
    int queue[max_threads + 1], head = 0, tail = 0;  // fibers to resume
    bool reversed = false;
    int reduced_or = 0, reduced_and = 1, reduced_count = 0, last_or = 0, last_and = 0,
        last_count = 0;
    void *shared = nullptr;
    // with several of them
    char *statics = nullptr;              // its variables in shared memory
    long long priority = 0, changes = 0;  // changes: when it last polled
    int polls = 0;                        // of its threads that wait for flags, since then
};

struct Grid {
    Fiber fibers[max_threads], main;
    Fiber *current = nullptr;
    Block blocks[residents], *block = blocks;  // block: of the current fiber
    int threads = 0;
    long long idle = 0;  // reads of flags since anything last changed
    const char *kernel = "";
    void (*body)(void **) = nullptr;
    void **arguments = nullptr;
    char error[1024] = "";
    const void *main_bottom = nullptr;
    size_t main_size = 0;
};
static Grid grid;

inline Block &block() { return residents > 1 ? *grid.block : grid.blocks[0]; }
inline void *shared() { return block().shared; }
inline void fail(const char *what);

// --- switching from one fiber to another ---------------------------------------------------------

#ifdef __x86_64__
extern "C" __attribute__((visibility("hidden"))) void emulation_switch(void **save, void *load);
__asm__(
    ".text\n"
    ".hidden emulation_switch\n"
    "emulation_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
#endif

inline void arrive_in_block();  // see interleave.hpp

inline void arrive_from_switch() {
#ifdef EMULATION_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(grid.current->asan, &bottom, &size);
    if (!grid.main_bottom) grid.main_bottom = bottom, grid.main_size = size;
#endif
    if (residents > 1 && grid.current != &grid.main) arrive_in_block();
    threadIdx = grid.current->index;
}

__attribute__((noinline)) inline void switch_to(Fiber *to) {
    Fiber *from = grid.current;
    if (from == to) return;
    grid.current = to;
#ifdef EMULATION_ASAN
    bool home = to == &grid.main;
    __sanitizer_start_switch_fiber(from->state == Ended ? nullptr : &from->asan,
        home ? grid.main_bottom : to->stack, home ? grid.main_size : stack_bytes);
#endif
#ifdef __x86_64__
    emulation_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrive_from_switch();
}

EMULATION_OWN inline void push(Fiber *fiber) {
    Block &own = block();
    fiber->state = Ready;
    own.queue[own.tail] = fiber->id;
    own.tail = (own.tail + 1) % (max_threads + 1);
}

EMULATION_OWN inline Fiber *pop(Block &own) {
    Fiber *fiber = &own.fibers[own.queue[own.head]];
    own.head = (own.head + 1) % (max_threads + 1);
    return fiber;
}

// --- errors --------------------------------------------------------------------------------------

inline void place(char *text, size_t size, const Fiber *fiber) {
    const char *doing = fiber->state == AtBarrier ? "waits at __syncthreads" : "waits at";
    size_t length = strlen(text);
    snprintf(text + length, size - length, "; thread (%u, %u, %u) %s", fiber->index.x,
        fiber->index.y, fiber->index.z, doing);
    length = strlen(text);
    if (fiber->state == AtBarrier)
        snprintf(text + length, size - length, ", which %d of %d threads have reached",
            fiber->block->arrived, fiber->block->alive);
    else snprintf(text + length, size - length, " %s with mask %08x", fiber->what, fiber->mask);
}

// Leave the launch: the other fibers are abandoned where they are.
inline void fail(const char *what) {
    snprintf(grid.error, sizeof grid.error,
        "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s", grid.kernel, blockIdx.x,
        blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, what);
    switch_to(&grid.main);
}

inline void deadlock() {
    snprintf(grid.error, sizeof grid.error, "deadlock in kernel %s, block (%u, %u, %u)",
        grid.kernel, blockIdx.x, blockIdx.y, blockIdx.z);
    const char *told = nullptr;
    bool barrier = false;
    for (int i = 0; i < grid.threads; ++i) {
        const Fiber *fiber = &block().fibers[i];
        if (fiber->state == AtBarrier ? barrier
                                      : fiber->state != AtCollective || fiber->what == told)
            continue;
        if (fiber->state == AtBarrier) barrier = true;
        else told = fiber->what;
        place(grid.error, sizeof grid.error, fiber);
    }
    size_t length = strlen(grid.error);
    snprintf(grid.error + length, sizeof grid.error - length, "; %d of %d threads have ended",
        grid.threads - block().alive, grid.threads);
    switch_to(&grid.main);
}

// Of interleave.hpp:
inline Fiber *pop_any();  // of the block whose turn it is
inline void poll();       // a thread waits for a flag
// Something that other blocks may wait for, or the end of a thread.
inline void changed(const void *flag);
inline void run_blocks(size_t shared_bytes);

// Resume the next fiber; the current one has said in its state what it waits for.
EMULATION_OWN inline void suspend() {
    Block &own = block();
    if (own.head == own.tail) {
        if (own.alive) deadlock();
        else switch_to(&grid.main);
        return;
    }
    switch_to(residents > 1 ? pop_any() : pop(own));
}

// Something has changed for threads of this block.
EMULATION_OWN inline void progress() {
    grid.idle = 0;
    block().polls = 0;
}

// Let the others run: called where a thread waits in a loop for what another thread will write.
EMULATION_OWN inline void yield(
    const char *what = "an atomic operation", const void *flag = nullptr) {
    grid.current->what = what, grid.current->flag = flag;
    if (residents > 1) poll();
    else if (++grid.idle > 1000LL * (grid.threads + 10))
        fail("waits for ever for a flag that no thread sets");
    push(grid.current);
    suspend();
}

// --- waiting for each other ----------------------------------------------------------------------

EMULATION_OWN inline void release_barrier() {
    Block &own = block();
    progress();
    races::barrier();
    own.arrived = 0;
    own.last_or = own.reduced_or, own.last_and = own.reduced_and,
    own.last_count = own.reduced_count;
    own.reduced_or = 0, own.reduced_and = 1, own.reduced_count = 0;
    own.reversed = !own.reversed;
    for (int i = 0; i < grid.threads; ++i) {
        Fiber *fiber = &own.fibers[own.reversed ? grid.threads - 1 - i : i];
        if (fiber->state == AtBarrier) push(fiber);
    }
}

// All threads of the block that have not ended; all must be at a line of the same number.
EMULATION_OWN inline void barrier(int line, bool value = false) {
    Block &own = block();
    if (own.arrived == 0) own.line = line;
    else if (own.line != line) {
        char text[100];
        snprintf(text, sizeof text,
            "is at the barrier of line %d while others are at that of line %d", line, own.line);
        fail(text);
    }
    own.reduced_or |= value, own.reduced_and &= value, own.reduced_count += value;
    grid.current->state = AtBarrier;
    if (++own.arrived == own.alive) release_barrier();
    suspend();
}

// The lanes of a warp named by `mask` come together; the last to arrive calls act(lanes), where
// lanes[l] is what lane l brought, null for a lane that is not of the mask or does not exist.
template <class Payload, class Act>
EMULATION_OWN inline void collective(const char *what, unsigned mask, Payload &payload, Act act) {
    Fiber *self = grid.current;
    int first = self->id / warp_size * warp_size, lane = self->id % warp_size;
    if (!(mask >> lane & 1)) fail("calls a warp function whose mask does not name it");
    self->state = AtCollective, self->what = what, self->mask = mask, self->payload = &payload;
    Payload *lanes[warp_size] = {};
    for (int l = 0; l < warp_size && first + l < grid.threads; ++l) {
        Fiber *other = &block().fibers[first + l];
        if (!(mask >> l & 1)) continue;
        if (other->state != AtCollective || other->mask != mask) return suspend();
        if (other->what != what && strcmp(other->what, what) != 0) {
            char text[200];
            snprintf(text, sizeof text, "is at %s while lane %d of its warp is at %s", what, l,
                other->what);
            fail(text);
        }
        lanes[l] = (Payload *)other->payload;
    }
    progress();
    act(lanes);
    for (int l = 0; l < warp_size && first + l < grid.threads; ++l)
        if (lanes[l] && l != lane) push(&block().fibers[first + l]);
    self->state = Ready;
}

// --- launches ------------------------------------------------------------------------------------

inline void run_thread() {
    arrive_from_switch();
    grid.body(grid.arguments);
    Fiber *self = grid.current;
    self->state = Ended;
    if (*(size_t *)self->stack != stack_bytes) fail("the stack of a thread has overflowed");
    Block &own = block();
    if (--own.alive && own.arrived == own.alive) release_barrier();
    changed(nullptr);
    suspend();
}

inline void prepare(Fiber *fiber, int id) {
    fiber->id = id, fiber->block = &block();
    fiber->index = {id % blockDim.x, id / blockDim.x % blockDim.y, id / (blockDim.x * blockDim.y)};
    fiber->copy_count = fiber->group = 0;
    fiber->asan = nullptr;
#ifdef EMULATION_ASAN
    // The last thread never returned.
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack + stack_bytes - 8192, 8192);
#endif
    *(size_t *)fiber->stack = stack_bytes;  // a mark that an overflow destroys
#ifdef __x86_64__
    void **top = (void **)(fiber->stack + stack_bytes);
    top[-1] = nullptr;
    top[-2] = (void *)run_thread;  // where emulation_switch returns to, over six registers
    memset(top - 8, 0, 6 * sizeof(void *));
    fiber->sp = top - 8;
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber->context, run_thread, 0);
#endif
    push(fiber);
}

inline void begin_block(size_t shared_bytes, uint3 index) {
    Block &own = block();
    own.index = blockIdx = index;
    if (shared_bytes) memset(own.shared, poison, shared_bytes);
    own.head = own.tail = own.arrived = 0;
    grid.idle = 0;
    own.alive = grid.threads;
    own.reduced_or = 0, own.reduced_and = 1, own.reduced_count = 0;
    for (int i = 0; i < grid.threads; ++i) prepare(&own.fibers[i], i);
    grid.main.state = Ready;
}

// Run a grid. `stacks` holds the fibers' stacks from one launch to the next, of any library.
// Returns what went wrong, null for nothing.
inline const char *launch(const char *kernel, void (*body)(void **), const unsigned *sizes,
    size_t shared_bytes, void **arguments, void **stacks) {
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    size_t all = max_threads * stack_bytes;
    if (!*stacks)
        *stacks = mmap(nullptr, all, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (*stacks == MAP_FAILED) return *stacks = nullptr, "no memory for the stacks of the fibers";
#ifdef EMULATION_ASAN
    grid.main_bottom = nullptr;
#endif
    grid.kernel = kernel, grid.body = body, grid.arguments = arguments;
    grid.threads = int(blockDim.x * blockDim.y * blockDim.z);
    grid.current = &grid.main;
    grid.error[0] = 0;
    int count = residents < max_threads / grid.threads ? residents : max_threads / grid.threads;
    for (int i = 0; i < count * grid.threads; ++i)
        grid.fibers[i].stack = (char *)*stacks + i * stack_bytes;
    for (int i = 0; i < count; ++i) {
        grid.blocks[i].fibers = grid.fibers + i * grid.threads, grid.blocks[i].alive = 0;
        if (shared_bytes && posix_memalign(&grid.blocks[i].shared, 128, shared_bytes))
            return "no memory for shared memory";
    }
    if (residents > 1) run_blocks(shared_bytes);
    else
        for (unsigned z = 0; z < gridDim.z && !*grid.error; ++z)
            for (unsigned y = 0; y < gridDim.y && !*grid.error; ++y)
                for (unsigned x = 0; x < gridDim.x && !*grid.error; ++x) {
                    begin_block(shared_bytes, {x, y, z});
                    suspend();
                }
    for (int i = 0; i < count; ++i) {
        if (shared_bytes) free(grid.blocks[i].shared);
        grid.blocks[i].shared = nullptr;
    }
#ifdef EMULATION_ASAN
    if (*grid.error) ASAN_UNPOISON_MEMORY_REGION(*stacks, all);  // of fibers that were abandoned
#endif
    return *grid.error ? grid.error : nullptr;
}

}  // namespace emulation
