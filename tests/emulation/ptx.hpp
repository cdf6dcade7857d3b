// The functions that common/ptx.cuh leaves out under FRONTAL_EMULATION, for fibers.
#pragma once

#if !PLAIN
namespace emulation {

// The operands of one lane in c (M×8) += a (M×K) · b (K×8).
struct Fragment {
    double *c;
    const double *a, *b;
};

// Lane l = 4g+t holds, with rows = M/8: c[i + 2*r] = C[g+8*r][2t+i]; a[r + rows*k] =
// A[g+8*r][t+4*k]; b[k] = B[t+4*k][g].
template <int M, int K> void multiply(const char *what, Fragment mine) {
    constexpr int rows = M / 8;
    collective(what, ~0u, mine, [](Fragment **lanes) EMULATION_OWN {
        double a[M][K], b[K][8];
        for (int l = 0; l < warp_size; ++l) {
            if (!lanes[l]) fail("a tensor-core product in a warp of fewer than 32 threads");
            for (int k = 0; k < K / 4; ++k) {
                for (int r = 0; r < rows; ++r)
                    a[l / 4 + 8 * r][l % 4 + 4 * k] = lanes[l]->a[r + rows * k];
                b[l % 4 + 4 * k][l / 4] = lanes[l]->b[k];
            }
        }
        for (int l = 0; l < warp_size; ++l)
            for (int r = 0; r < rows; ++r)
                for (int i = 0; i < 2; ++i) {
                    double sum = lanes[l]->c[i + 2 * r];
                    for (int k = 0; k < K; ++k)
                        sum = fma(a[l / 4 + 8 * r][k], b[k][l % 4 * 2 + i], sum);
                    lanes[l]->c[i + 2 * r] = sum;
                }
    });
}

}  // namespace emulation

inline void mma_8x8x4(double (&c)[2], double a, double b) {
    emulation::multiply<8, 4>("mma_8x8x4", {c, &a, &b});
}
inline void mma_16x8x4(double (&c)[4], const double (&a)[2], double b) {
    emulation::multiply<16, 4>("mma_16x8x4", {c, a, &b});
}
inline void mma_16x8x8(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    emulation::multiply<16, 8>("mma_16x8x8", {c, a, b});
}
inline void mma_16x8x16(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
    emulation::multiply<16, 16>("mma_16x8x16", {c, a, b});
}

template <int BYTES> void copy_async(void *shared, const void *global, bool valid) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
    emulation::begin_copy(shared, global, BYTES, valid);
}
inline void copy_async_commit() { ++emulation::grid.current->group; }
template <int N> void copy_async_wait() { emulation::finish_copies(N); }
#endif

inline void prefetch(const void *) {}

inline long long nanoseconds() { return 0; }
EMULATION_OWN inline int load_relaxed(const int *flag) {
    emulation::yield("a flag", flag);
    emulation::races::message(flag, sizeof(int), false);
    return *flag;
}
inline int acquire(const int *flag) {
    int found = load_relaxed(flag);
    emulation::races::acquire(flag);
    return found;
}
EMULATION_OWN inline void change(int *flag, int value, bool joins) {
    emulation::races::message(flag, sizeof(int), true);
    *flag = value;
    emulation::races::release(flag, joins);
    emulation::changed(flag);
}
inline void release(int *flag, int value) { change(flag, value, false); }
EMULATION_OWN inline void release_add(int *counter, int value) {
    change(counter, *counter + value, true);
}
EMULATION_OWN inline void release_max(int *counter, int value) {
    change(counter, *counter < value ? value : *counter, true);
}

// About 20 good bits, as the device's.
inline double reciprocal_seed(double a) { return 1.0 / a * (1 + 0x1p-21); }
inline double root_seed(double a) { return 1.0 / sqrt(a) * (1 - 0x1p-21); }
inline float reciprocal_seed(float a) { return 1.0f / a; }
inline float root_seed(float a) { return 1.0f / sqrtf(a); }
