// The four scalar types and their arithmetic: float, double, complex<float>, complex<double>.
//
// complex<R> has the layout of cuComplex and of NumPy's complex: two reals, real part first. It has
// no constructors, so that arrays of it in shared memory need no dynamic initialization.
// Complex reciprocals follow Smith, "Algorithm 116: complex division" (1962).
#pragma once

template <class R> struct alignas(2 * sizeof(R)) complex {
    R re, im;
};

template <class T> struct scalar_traits {
    using real = T;
    static constexpr bool is_complex = false;
};
template <class R> struct scalar_traits<complex<R>> {
    using real = R;
    static constexpr bool is_complex = true;
};
template <class T> using real_t = typename scalar_traits<T>::real;
template <class T> constexpr bool is_complex = scalar_traits<T>::is_complex;

template <class A, class B> constexpr bool same_type = false;
template <class A> constexpr bool same_type<A, A> = true;

// A scalar with the given real part.
template <class T> __device__ inline T from_real(real_t<T> r) {
    if constexpr (is_complex<T>) return T{r, real_t<T>(0)};
    else return r;
}
template <class T> __device__ inline T zero() { return from_real<T>(0); }
template <class T> __device__ inline T one() { return from_real<T>(1); }

__device__ inline float conj(float a) { return a; }
__device__ inline double conj(double a) { return a; }
template <class R> __device__ inline complex<R> conj(complex<R> a) { return {a.re, -a.im}; }

__device__ inline float real(float a) { return a; }
__device__ inline double real(double a) { return a; }
template <class R> __device__ inline R real(complex<R> a) { return a.re; }

// |re| + |im|: the magnitude by which LAPACK's i?amax chooses pivots.
__device__ inline float abs1(float a) { return fabsf(a); }
__device__ inline double abs1(double a) { return fabs(a); }
template <class R> __device__ inline R abs1(complex<R> a) { return abs1(a.re) + abs1(a.im); }

template <class R> __device__ inline complex<R> operator+(complex<R> a, complex<R> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class R> __device__ inline complex<R> operator-(complex<R> a, complex<R> b) {
    return {a.re - b.re, a.im - b.im};
}
template <class R> __device__ inline complex<R> operator-(complex<R> a) { return {-a.re, -a.im}; }
template <class R> __device__ inline complex<R> operator*(complex<R> a, complex<R> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R> __device__ inline complex<R> operator*(R s, complex<R> a) {
    return {s * a.re, s * a.im};
}
template <class R> __device__ inline bool operator==(complex<R> a, complex<R> b) {
    return a.re == b.re && a.im == b.im;
}

// a*b + c, with one rounding per fused multiply-add.
__device__ inline float fma_(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fma_(double a, double b, double c) { return fma(a, b, c); }
template <class R> __device__ inline complex<R> fma_(complex<R> a, complex<R> b, complex<R> c) {
    return {fma_(-a.im, b.im, fma_(a.re, b.re, c.re)), fma_(a.im, b.re, fma_(a.re, b.im, c.im))};
}

// 1/a with Smith's scaling: |a|² need not be representable.
__device__ inline float reciprocal(float a) { return 1.0f / a; }
__device__ inline double reciprocal(double a) { return 1.0 / a; }
template <class R> __device__ inline complex<R> reciprocal(complex<R> a) {
    bool wide = abs1(a.re) >= abs1(a.im);
    R big = wide ? a.re : a.im, small = wide ? a.im : a.re;
    R ratio = small / big, scale = R(1) / (big + small * ratio);
    return wide ? complex<R>{scale, -ratio * scale} : complex<R>{ratio * scale, -scale};
}

__device__ inline float square_root(float a) { return sqrtf(a); }
__device__ inline double square_root(double a) { return sqrt(a); }
