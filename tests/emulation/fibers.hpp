// A grid of CUDA threads on one CPU thread: every CUDA thread of a block is a fiber that runs until
// it must wait for others, blocks run one after another. The order in which fibers are resumed is
// reversed at every barrier, so that code which relies on one order of threads fails.
#pragma once
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

namespace emulation {

constexpr int warp_size = 32, max_threads = 1024;
constexpr size_t stack_bytes = size_t(256) << 10;
constexpr unsigned char poison = 0xff; // bytes of a NaN, and of -1

enum State { Ready, AtBarrier, AtCollective, Ended };

// A copy to shared memory that has begun: its bytes land when it is waited for.
struct Copy {
    void *target;
    int bytes, group;
    alignas(16) unsigned char value[16];
};

struct Fiber {
    void *sp = nullptr, *asan = nullptr;
    char *stack = nullptr; // lowest address
    uint3 index{};
    int id = 0;
    State state = Ready;
    const char *what = ""; // the collective that the fiber waits at
    unsigned mask = 0;
    void *payload = nullptr;
    Copy *copies = nullptr;
    int copy_count = 0, copy_room = 0, group = 0;
#ifndef __x86_64__
    ucontext_t context;
#endif
};

struct Grid {
    Fiber fibers[max_threads], main;
    Fiber *current = nullptr;
    int threads = 0, alive = 0, arrived = 0;
    int line = 0;  // of the barrier that some have reached
    int queue[max_threads + 1], head = 0, tail = 0; // fibers to resume
    bool reversed = false;
    long long idle = 0; // reads of flags since anything last changed
    int reduced_or = 0, reduced_and = 1, reduced_count = 0, last_or = 0, last_and = 0, last_count = 0;
    void *shared = nullptr;
    const char *kernel = "";
    void (*body)(void **) = nullptr;
    void **arguments = nullptr;
    char error[1024] = "";
    const void *main_bottom = nullptr;
    size_t main_size = 0;
};
static Grid grid;

inline void *shared() { return grid.shared; }

// --- switching from one fiber to another ---------------------------------------------------------

#ifdef __x86_64__
extern "C" __attribute__((visibility("hidden"))) void emulation_switch(void **save, void *load);
__asm__(".text\n"
        ".hidden emulation_switch\n"
        "emulation_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
#endif

inline void arrive_from_switch() {
#ifdef EMULATION_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(grid.current->asan, &bottom, &size);
    if (!grid.main_bottom) grid.main_bottom = bottom, grid.main_size = size;
#endif
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

inline void push(Fiber *fiber) {
    fiber->state = Ready;
    grid.queue[grid.tail] = fiber->id;
    grid.tail = (grid.tail + 1) % (max_threads + 1);
}

// --- errors --------------------------------------------------------------------------------------

inline void place(char *text, size_t size, const Fiber *fiber) {
    const char *doing = fiber->state == AtBarrier ? "waits at __syncthreads" : "waits at";
    size_t length = strlen(text);
    snprintf(text + length, size - length, "; thread (%u, %u, %u) %s", fiber->index.x, fiber->index.y,
             fiber->index.z, doing);
    length = strlen(text);
    if (fiber->state == AtBarrier)
        snprintf(text + length, size - length, ", which %d of %d threads have reached", grid.arrived, grid.alive);
    else
        snprintf(text + length, size - length, " %s with mask %08x", fiber->what, fiber->mask);
}

// Leave the launch: the other fibers are abandoned where they are.
inline void fail(const char *what) {
    snprintf(grid.error, sizeof grid.error, "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s", grid.kernel,
             blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, what);
    switch_to(&grid.main);
}

inline void deadlock() {
    snprintf(grid.error, sizeof grid.error, "deadlock in kernel %s, block (%u, %u, %u)", grid.kernel, blockIdx.x,
             blockIdx.y, blockIdx.z);
    const char *told = nullptr;
    bool barrier = false;
    for (int i = 0; i < grid.threads; ++i) {
        const Fiber *fiber = &grid.fibers[i];
        if (fiber->state == AtBarrier ? barrier : fiber->state != AtCollective || fiber->what == told) continue;
        if (fiber->state == AtBarrier) barrier = true;
        else told = fiber->what;
        place(grid.error, sizeof grid.error, fiber);
    }
    size_t length = strlen(grid.error);
    snprintf(grid.error + length, sizeof grid.error - length, "; %d of %d threads have ended", grid.threads - grid.alive,
             grid.threads);
    switch_to(&grid.main);
}

// Resume the next fiber; the current one has said in its state what it waits for.
inline void suspend() {
    if (grid.head == grid.tail) {
        if (grid.alive) deadlock();
        else switch_to(&grid.main);
        return;
    }
    Fiber *next = &grid.fibers[grid.queue[grid.head]];
    grid.head = (grid.head + 1) % (max_threads + 1);
    switch_to(next);
}

// Let the others run: called where a thread waits in a loop for what another thread will write.
inline void yield() {
    if (++grid.idle > 1000LL * (grid.threads + 10)) fail("waits for ever for a flag that no thread sets");
    push(grid.current);
    suspend();
}

// --- waiting for each other ----------------------------------------------------------------------

inline void release_barrier() {
    grid.idle = 0;
    grid.arrived = 0;
    grid.last_or = grid.reduced_or, grid.last_and = grid.reduced_and, grid.last_count = grid.reduced_count;
    grid.reduced_or = 0, grid.reduced_and = 1, grid.reduced_count = 0;
    grid.reversed = !grid.reversed;
    for (int i = 0; i < grid.threads; ++i) {
        Fiber *fiber = &grid.fibers[grid.reversed ? grid.threads - 1 - i : i];
        if (fiber->state == AtBarrier) push(fiber);
    }
}

// All threads of the block that have not ended; all must be at a line of the same number.
inline void barrier(int line, bool value = false) {
    if (grid.arrived == 0) grid.line = line;
    else if (grid.line != line) {
        char text[100];
        snprintf(text, sizeof text, "is at the barrier of line %d while others are at that of line %d", line, grid.line);
        fail(text);
    }
    grid.reduced_or |= value, grid.reduced_and &= value, grid.reduced_count += value;
    grid.current->state = AtBarrier;
    if (++grid.arrived == grid.alive) release_barrier();
    suspend();
}

// The lanes of a warp named by `mask` come together; the last to arrive calls act(lanes), where
// lanes[l] is what lane l brought, null for a lane that is not of the mask or does not exist.
template <class Payload, class Act>
inline void collective(const char *what, unsigned mask, Payload &payload, Act act) {
    Fiber *self = grid.current;
    int first = self->id / warp_size * warp_size, lane = self->id % warp_size;
    if (!(mask >> lane & 1)) fail("calls a warp function whose mask does not name it");
    self->state = AtCollective, self->what = what, self->mask = mask, self->payload = &payload;
    Payload *lanes[warp_size] = {};
    for (int l = 0; l < warp_size && first + l < grid.threads; ++l) {
        Fiber *other = &grid.fibers[first + l];
        if (!(mask >> l & 1)) continue;
        if (other->state != AtCollective || other->mask != mask) return suspend();
        if (other->what != what && strcmp(other->what, what) != 0) {
            char text[200];
            snprintf(text, sizeof text, "is at %s while lane %d of its warp is at %s", what, l, other->what);
            fail(text);
        }
        lanes[l] = (Payload *)other->payload;
    }
    grid.idle = 0;
    act(lanes);
    for (int l = 0; l < warp_size && first + l < grid.threads; ++l)
        if (lanes[l] && l != lane) push(&grid.fibers[first + l]);
    self->state = Ready;
}

// --- asynchronous copies -------------------------------------------------------------------------

// The target is poisoned until the copy is waited for.
inline void begin_copy(void *target, const void *source, int bytes, bool valid) {
    Fiber *self = grid.current;
    if ((size_t)target % bytes || (valid && (size_t)source % bytes)) fail("copy_async: an address is not aligned");
    if (self->copy_count == self->copy_room) {
        self->copy_room = self->copy_room ? 2 * self->copy_room : 16;
        self->copies = (Copy *)realloc(self->copies, self->copy_room * sizeof(Copy));
    }
    Copy &copy = self->copies[self->copy_count++];
    copy.target = target, copy.bytes = bytes, copy.group = self->group;
    if (valid) memcpy(copy.value, source, bytes);
    else memset(copy.value, 0, bytes);
    memset(target, poison, bytes);
}

inline void finish_copies(int groups_left) {
    Fiber *self = grid.current;
    int kept = 0;
    for (int i = 0; i < self->copy_count; ++i) {
        Copy &copy = self->copies[i];
        if (copy.group < self->group - groups_left) memcpy(copy.target, copy.value, copy.bytes);
        else self->copies[kept++] = copy;
    }
    self->copy_count = kept;
}

// --- launches ------------------------------------------------------------------------------------

inline void run_thread() {
    arrive_from_switch();
    grid.body(grid.arguments);
    Fiber *self = grid.current;
    self->state = Ended;
    if (*(size_t *)self->stack != stack_bytes) fail("the stack of a thread has overflowed");
    grid.idle = 0;
    if (--grid.alive && grid.arrived == grid.alive) release_barrier();
    suspend();
}

inline void prepare(Fiber *fiber, int id) {
    fiber->id = id;
    fiber->index = {id % blockDim.x, id / blockDim.x % blockDim.y, id / (blockDim.x * blockDim.y)};
    fiber->copy_count = fiber->group = 0;
    fiber->asan = nullptr;
#ifdef EMULATION_ASAN
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack + stack_bytes - 8192, 8192); // the last thread never returned
#endif
    *(size_t *)fiber->stack = stack_bytes; // a mark that an overflow destroys
#ifdef __x86_64__
    void **top = (void **)(fiber->stack + stack_bytes);
    top[-1] = nullptr;
    top[-2] = (void *)run_thread; // where emulation_switch returns to, over six registers
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

inline void run_block(size_t shared_bytes) {
    if (shared_bytes) memset(grid.shared, poison, shared_bytes);
    grid.head = grid.tail = grid.arrived = 0;
    grid.idle = 0;
    grid.alive = grid.threads;
    grid.reduced_or = 0, grid.reduced_and = 1, grid.reduced_count = 0;
    for (int i = 0; i < grid.threads; ++i) prepare(&grid.fibers[i], i);
    grid.main.state = Ready;
    suspend();
}

// Run a grid. `stacks` holds the fibers' stacks from one launch to the next, of any library.
// Returns what went wrong, null for nothing.
inline const char *launch(const char *kernel, void (*body)(void **), const unsigned *sizes, size_t shared_bytes,
                          void **arguments, void **stacks) {
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    size_t all = max_threads * stack_bytes;
    if (!*stacks) *stacks = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (*stacks == MAP_FAILED) return *stacks = nullptr, "no memory for the stacks of the fibers";
#ifdef EMULATION_ASAN
    grid.main_bottom = nullptr;
#endif
    grid.kernel = kernel, grid.body = body, grid.arguments = arguments;
    grid.threads = int(blockDim.x * blockDim.y * blockDim.z);
    grid.current = &grid.main;
    grid.error[0] = 0;
    for (int i = 0; i < grid.threads; ++i) grid.fibers[i].stack = (char *)*stacks + i * stack_bytes;
    if (shared_bytes && posix_memalign(&grid.shared, 128, shared_bytes)) return "no memory for shared memory";
    for (unsigned z = 0; z < gridDim.z && !*grid.error; ++z)
        for (unsigned y = 0; y < gridDim.y && !*grid.error; ++y)
            for (unsigned x = 0; x < gridDim.x && !*grid.error; ++x) {
                blockIdx = {x, y, z};
                run_block(shared_bytes);
            }
    if (shared_bytes) free(grid.shared);
    grid.shared = nullptr;
#ifdef EMULATION_ASAN
    if (*grid.error) ASAN_UNPOISON_MEMORY_REGION(*stacks, all); // of fibers that were abandoned
#endif
    return *grid.error ? grid.error : nullptr;
}

// Calls of a kernel by the addresses of its arguments, and the bytes of each.
template <class... A> struct Kernel {
    static int bytes(size_t *out) {
        size_t sizes[] = {sizeof(A)..., 0};
        for (size_t i = 0; i < sizeof...(A); ++i) out[i] = sizes[i];
        return sizeof...(A);
    }
    template <size_t N, size_t... I> struct Up : Up<N - 1, N - 1, I...> {};
    template <size_t... I> struct Up<0, I...> {
        static void call(void (*function)(A...), void **arguments) { function(*(A *)arguments[I]...); }
    };
    static void call(void (*function)(A...), void **arguments) { Up<sizeof...(A)>::call(function, arguments); }
};
template <class... A> Kernel<A...> kernel_of(void (*)(A...)) { return {}; }

} // namespace emulation

// What the harness calls for the entry point `name`: its launch, and the bytes of its arguments.
#define EMULATION_ENTRY(name)                                                                                        \
    extern "C" const char *emulation_launch_##name(const unsigned *sizes, size_t shared, void **arguments,            \
                                                   void **stacks) {                                                  \
        return emulation::launch(#name, [](void **a) { emulation::kernel_of(name).call(name, a); }, sizes, shared,    \
                                 arguments, stacks);                                                                 \
    }                                                                                                                \
    extern "C" int emulation_arguments_##name(size_t *bytes) { return emulation::kernel_of(name).bytes(bytes); }
