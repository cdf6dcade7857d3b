// Entry points of a kernel file, as the harness calls them.
#pragma once
#include "fibers.hpp"

namespace emulation {

// Calls of a kernel by the addresses of its arguments, and the bytes of each.
template <class... A> struct Kernel {
    static int bytes(size_t *out) {
        size_t sizes[] = {sizeof(A)..., 0};
        for (size_t i = 0; i < sizeof...(A); ++i) out[i] = sizes[i];
        return sizeof...(A);
    }
    template <size_t N, size_t... I> struct Up : Up<N - 1, N - 1, I...> {};
    template <size_t... I> struct Up<0, I...> {
        static void call(void (*function)(A...), void **arguments) {
            function(*(A *)arguments[I]...);
        }
    };
    static void call(void (*function)(A...), void **arguments) {
        Up<sizeof...(A)>::call(function, arguments);
    }
};
template <class... A> Kernel<A...> kernel_of(void (*)(A...)) { return {}; }

}  // namespace emulation

// What the harness calls for the entry point `name`: its launch, and the bytes of its arguments.
#define EMULATION_ENTRY(name) \
    extern "C" const char *emulation_launch_##name( \
        const unsigned *sizes, size_t shared, void **arguments, void **stacks) { \
        return emulation::launch( \
            #name, [](void **a) { emulation::kernel_of(name).call(name, a); }, sizes, shared, \
            arguments, stacks); \
    } \
    extern "C" int emulation_arguments_##name(size_t *bytes) { \
        return emulation::kernel_of(name).bytes(bytes); \
    }
