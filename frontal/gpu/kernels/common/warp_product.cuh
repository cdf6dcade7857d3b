// The product of one warp: C (M×N, in registers) += op(A) (M×K) · op(B) (K×N), operands in shared
// memory. double and complex<double> use the fp64 tensor cores if the device has them, otherwise
// FMA.
//
// An operand has one of two layouts; `ALONG_K` selects:
//   false  element (i, k) at i + k*ld: consecutive rows of op(A) (columns of op(B)) are adjacent;
//   true   element (i, k) at k + i*ld: consecutive k are adjacent.
// Reads are free of bank conflicts with ld ≡ leading_pad() modulo 16 (double) or 8
// (complex<double>).
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// Padding of a leading dimension that is a multiple of 16, for reads without bank conflicts. A warp
// reads rows i..i+7 and k..k+3 at once: an 8-byte read serves 16 lanes per cycle, a 16-byte read 8.
template <class T, bool ALONG_K> __device__ constexpr int leading_pad() {
    if constexpr (same_type<T, complex<double>>) return ALONG_K ? 4 : 2;
    else if constexpr (same_type<T, double>) return ALONG_K ? 2 : 4;
    else if constexpr (same_type<T, complex<float>>) return 2;
    else return 4;
}

template <bool CONJ, class T> __device__ inline T conj_if(T a) {
    if constexpr (CONJ) return conj(a);
    else return a;
}

// op(B) itself, or diag(d)·op(B) with d(k) at d[k*step]; for WarpProduct::add.
struct Unscaled {
    template <class T> __device__ T operator()(T b, int) const { return b; }
};
template <class T> struct ScaledBy {
    const T *d;
    int step;
    __device__ T operator()(T b, int k) const { return d[k * step] * b; }
};

// FMA: lanes form an 8×4 grid. A lane owns groups of V rows and V columns; V elements are 16 bytes
// if the shape allows, so that a lane reads both operands by 16-byte loads.
template <class T, int M, int N> struct WarpProduct {
    static constexpr int TM = M / 8, TN = N / 4, V = 16 / sizeof(T);
    static constexpr int VM = TM < V ? TM : V, VN = TN < V ? TN : V;
    static constexpr int k_multiple = 1;
    T c[TM][TN];

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < TM * TN; ++i) c[i / TN][i % TN] = zero<T>();
    }

    template <int K, bool A_ALONG_K, bool B_ALONG_K, bool CONJ_A, bool CONJ_B,
        class Scale = Unscaled>
    __device__ void add(const T *a, int lda, const T *b, int ldb, Scale scale = {}) {
        int lane = threadIdx.x & 31;
#pragma unroll 8
        for (int k = 0; k < K; ++k) {
            T x[TM], y[TN];
            load<TM, VM, 8, A_ALONG_K>(x, a, lda, lane >> 2, k);
            load<TN, VN, 4, B_ALONG_K>(y, b, ldb, lane & 3, k);
#pragma unroll
            for (int j = 0; j < TN; ++j) y[j] = scale(y[j], k);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    c[i][j] = fma_(conj_if<CONJ_A>(x[i]), conj_if<CONJ_B>(y[j]), c[i][j]);
        }
    }

    // Call f(i, j, entry) for each entry of C that this lane owns in its column groups FROM…TO−1 of
    // TN.
    template <int FROM = 0, int TO = TN, class F> __device__ void each(F f) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
        for (int j = FROM; j < TO; ++j)
#pragma unroll
            for (int i = 0; i < TM; ++i)
                f(i / VM * 8 * VM + g * VM + i % VM, j / VN * 4 * VN + t * VN + j % VN, c[i][j]);
    }

    // Call f(i, row) for each row i of C in which this lane owns entries; row(g) calls g(j, entry)
    // for each of them.
    template <class F> __device__ void each_row(F f) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
        for (int i = 0; i < TM; ++i)
            f(i / VM * 8 * VM + g * VM + i % VM, [&](auto visit) {
#pragma unroll
                for (int j = 0; j < TN; ++j) visit(j / VN * 4 * VN + t * VN + j % VN, c[i][j]);
            });
    }

  private:
    template <int W> struct alignas(W * sizeof(T)) Pack {
        T v[W];
    };
    template <int COUNT, int W, int LANES, bool ALONG_K>
    __device__ static void load(T (&x)[COUNT], const T *p, int ld, int lane, int k) {
#pragma unroll
        for (int i = 0; i < COUNT; i += W) {
            int first = i * LANES + lane * W;
            if constexpr (ALONG_K) {
#pragma unroll
                for (int e = 0; e < W; ++e) x[i + e] = p[k + (first + e) * ld];
            } else {
                Pack<W> pack = *reinterpret_cast<const Pack<W> *>(p + first + k * ld);
#pragma unroll
                for (int e = 0; e < W; ++e) x[i + e] = pack.v[e];
            }
        }
    }
};

#if !PLAIN

// Fragments of mma_16x8x8 (see ptx.cuh), read from shared memory element by element: x[e] is entry
// (g + 8*(e%2), t + 4*(e/2)) of op(A), y[e] is entry (t + 4*e, g) of op(B).
template <bool ALONG_K, class T>
__device__ inline void fragment_a(T (&x)[4], const T *a, int ld, int i, int k) {
    int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        int row = i + g + 8 * (e % 2), depth = k + t + 4 * (e / 2);
        x[e] = a[ALONG_K ? depth + row * ld : row + depth * ld];
    }
}
template <bool ALONG_K, class T>
__device__ inline void fragment_b(T (&y)[2], const T *b, int ld, int j, int k) {
    int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        int column = j + g, depth = k + t + 4 * e;
        y[e] = b[ALONG_K ? depth + column * ld : column + depth * ld];
    }
}

// The rows and columns of C that the tensor cores number 0, 1, … may be chosen freely if operands
// and C agree. Here a lane's rows of a 16-row group are 2g and 2g+1, and its columns of two
// 8-column groups, as operand, are 2g and 2g+1: neighbours, so that one 16-byte load reads both.
template <int M, int N> struct WarpProduct<double, M, N> {
    static constexpr int TM = M / 16, TN = N / 8;
    static constexpr int k_multiple = 8;
    double c[TM][TN][4];

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < TM * TN * 4; ++i) c[i / 4 / TN][i / 4 % TN][i % 4] = 0;
    }

    // The operands of 4 steps along k.
    struct Fragments {
        double x[TM][2], y[TN];

        template <bool A_ALONG_K, bool B_ALONG_K>
        __device__ void load(const double *a, int lda, const double *b, int ldb, int k) {
            static_assert(TN % 2 == 0, "columns come in pairs of groups");
#pragma unroll
            for (int j = 0; j < TN; j += 2) pair<B_ALONG_K>(y[j], y[j + 1], b, ldb, 8 * j, k);
#pragma unroll
            for (int i = 0; i < TM; ++i) pair<A_ALONG_K>(x[i][0], x[i][1], a, lda, 16 * i, k);
        }
    };

    __device__ void multiply(const Fragments &f) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) mma_16x8x4(c[i][j], f.x[i], f.y[j]);
    }

    template <int K, bool A_ALONG_K, bool B_ALONG_K, bool CONJ_A, bool CONJ_B,
        class Scale = Unscaled>
    __device__ void add(const double *a, int lda, const double *b, int ldb, Scale scale = {}) {
        Fragments f[2];
        f[0].template load<A_ALONG_K, B_ALONG_K>(a, lda, b, ldb, 0);
#pragma unroll
        for (int k = 0; k < K; k += 4) {
            if (k + 4 < K)
                f[(k / 4 + 1) % 2].template load<A_ALONG_K, B_ALONG_K>(a, lda, b, ldb, k + 4);
#pragma unroll
            for (int j = 0; j < TN; ++j)
                f[k / 4 % 2].y[j] = scale(f[k / 4 % 2].y[j], k + (threadIdx.x & 3));
            multiply(f[k / 4 % 2]);
        }
    }

    template <int FROM = 0, int TO = TN, class F> __device__ void each(F f) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
        for (int j = FROM; j < TO; ++j)
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    f(16 * i + 2 * g + e / 2, 16 * (j / 2) + 4 * t + 2 * (e % 2) + j % 2,
                        c[i][j][e]);
    }

    template <class F> __device__ void each_row(F f) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
        for (int i = 0; i < 2 * TM; ++i)
            f(16 * (i / 2) + 2 * g + i % 2, [&](auto visit) {
#pragma unroll
                for (int j = 0; j < 2 * TN; ++j)
                    visit(16 * (j / 4) + 4 * t + 2 * (j % 2) + j / 2 % 2,
                        c[i / 2][j / 2][2 * (i % 2) + j % 2]);
            });
    }

  private:
    struct alignas(16) Pair {
        double first, second;
    };
    // Read elements (2g, t) and (2g+1, t) of the 16 rows from i on, t counted from k.
    template <bool ALONG_K>
    __device__ static void pair(
        double &first, double &second, const double *p, int ld, int i, int k) {
        int row = i + ((threadIdx.x & 31) >> 2) * 2, depth = k + (threadIdx.x & 3);
        if constexpr (ALONG_K) {
            first = p[depth + row * ld], second = p[depth + (row + 1) * ld];
        } else {
            Pair both = *reinterpret_cast<const Pair *>(p + row + depth * ld);
            first = both.first, second = both.second;
        }
    }
};

template <int M, int N> struct WarpProduct<complex<double>, M, N> {
    using T = complex<double>;
    static constexpr int TM = M / 16, TN = N / 8;
    static constexpr int k_multiple = 8;
    double re[TM][TN][4], im[TM][TN][4];

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < TM * TN * 4; ++i)
            re[i / 4 / TN][i / 4 % TN][i % 4] = im[i / 4 / TN][i / 4 % TN][i % 4] = 0;
    }

    template <int K, bool A_ALONG_K, bool B_ALONG_K, bool CONJ_A, bool CONJ_B,
        class Scale = Unscaled>
    __device__ void add(const T *a, int lda, const T *b, int ldb, Scale scale = {}) {
#pragma unroll
        for (int k = 0; k < K; k += 8) {
            double y_re[TN][2], y_im[TN][2];
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                T y[2];
                fragment_b<B_ALONG_K>(y, b, ldb, 8 * j, k);
#pragma unroll
                for (int e = 0; e < 2; ++e) y[e] = scale(y[e], k + (threadIdx.x & 3) + 4 * e);
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    y_re[j][e] = y[e].re, y_im[j][e] = CONJ_B ? -y[e].im : y[e].im;
            }
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                T x[4];
                double x_re[4], x_im[4], minus[4];
                fragment_a<A_ALONG_K>(x, a, lda, 16 * i, k);
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    x_re[e] = x[e].re, x_im[e] = CONJ_A ? -x[e].im : x[e].im;
                    minus[e] = -x_im[e];
                }
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    mma_16x8x8(re[i][j], x_re, y_re[j]);
                    mma_16x8x8(im[i][j], x_re, y_im[j]);
                    mma_16x8x8(re[i][j], minus, y_im[j]);
                    mma_16x8x8(im[i][j], x_im, y_re[j]);
                }
            }
        }
    }

    template <int FROM = 0, int TO = TN, class F> __device__ void each(F f) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
        for (int j = FROM; j < TO; ++j)
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    T v{re[i][j][e], im[i][j][e]};
                    f(16 * i + g + 8 * (e / 2), 8 * j + 2 * t + e % 2, v);
                    re[i][j][e] = v.re, im[i][j][e] = v.im;
                }
    }

    template <class F> __device__ void each_row(F f) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
#pragma unroll
        for (int i = 0; i < 2 * TM; ++i)
            f(16 * (i / 2) + g + 8 * (i % 2), [&](auto visit) {
#pragma unroll
                for (int j = 0; j < 2 * TN; ++j) {
                    double &x = re[i / 2][j / 2][2 * (i % 2) + j % 2],
                           &y = im[i / 2][j / 2][2 * (i % 2) + j % 2];
                    T v{x, y};
                    visit(8 * (j / 2) + 2 * t + j % 2, v);
                    x = v.re, y = v.im;
                }
            });
    }
};

#endif
