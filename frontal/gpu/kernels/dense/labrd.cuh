// A panel of a bidiagonalization, as labrd of gebrd.cuh, that reads each column of the rest once.
//
// Entry j of y = Aᴴ·v gives entry j of row i of the rest, and so the term of column j in x = A·u: a
// warp holds a column, computes y(j) and u(j), not yet normalized, and adds u(j) times the column
// to its part of A·u. The reflector of u is known only at the end; then x = taup·(A·e + scale·A·(u
// − e)), e the unit vector of its first entry: Howell, Demmel, Fulton, Hammarling, Marmol, "Cache
// efficient bidiagonalization using BLAS 2.5 operators" (2008).
// Y and U are stored by rows, conjugated, so that a warp reads the entries of a column at once.
#pragma once
#include "dense/gebrd.cuh"

constexpr int LABRD_WARPS = 8, LABRD_THREADS = 32 * LABRD_WARPS;

// The panel's update of the rest, A − V·Yᴴ − X·Uᴴ; rows and columns counted from the panel's first.
template <class T> struct RowPanel {
    Matrix<T> v, x, y, u;  // y(k, j) is the conjugate of Y(j, k)
};

// Shared memory of a block besides the vectors `v`, of 32·EACH entries, and `products`, of as many
// for each warp, warp by warp.
template <class T> struct LabrdScratch {
    real_t<T> sums[32];
    T left[32], right[32];     // Vᴴ·v and Xᴴ·v; then coefficients of V and X in x
    T across[32], beside[32];  // conjugates of row i of V and X; then those of the next column
    T parts[LABRD_WARPS][64];
    T alpha;
};

// State of a warp that processes columns of the rest.
template <class T, int EACH> struct ColumnPass {
    T a[EACH], w[EACH], of_y, of_u;
    real_t<T> rest;

    __device__ void clear() {
#pragma unroll
        for (int q = 0; q < EACH; ++q) w[q] = zero<T>();
        of_y = of_u = zero<T>(), rest = 0;
    }
    // Compute entries y(j) of tau·Aᴴ·v and u(j) of row i for column j of the updated A.
    __device__ void column(
        Matrix<T> of, const RowPanel<T> &p, int i, int j, T tau, const T *v, LabrdScratch<T> &s) {
        int lane = threadIdx.x % 32;
        const T *from = &of(0, j);
        T y = lane < i ? p.y(lane, j) : zero<T>(), u = lane < i ? p.u(lane, j) : zero<T>();
#pragma unroll
        for (int q = 0; q < EACH; ++q)
            a[q] = lane + 32 * q < of.rows ? from[lane + 32 * q] : zero<T>();
        T dot = lane < i ? -fma_(conj(y), s.left[lane], conj(u) * s.right[lane]) : zero<T>();
        T sum = lane < i ? -fma_(conj(y), s.across[lane], conj(u) * s.beside[lane]) : zero<T>();
#pragma unroll
        for (int q = 0; q < EACH; ++q) dot = fma_(conj(a[q]), v[lane + 32 * q], dot);
        dot = tau * lane_sum<32>(dot);
        T found = lane_sum<32>(sum) + conj(shuffle(a[0], i)) - dot;
        if (lane == i) y = conj(dot), p.y(i, j) = y, p.u(i, j) = conj(found);
        if (j == i + 1) {
            if (lane == 0) s.alpha = found;
            return;
        }
        rest += abs2(found);
        of_y = fma_(y, found, of_y), of_u = fma_(u, found, of_u);
#pragma unroll
        for (int q = 0; q < EACH; ++q) w[q] = fma_(a[q], found, w[q]);
    }
    __device__ void put(T *products, LabrdScratch<T> &s) const {
        int lane = threadIdx.x % 32, warp = thread_rank() / 32;
        T *own = products + 32 * EACH * warp;
#pragma unroll
        for (int q = 0; q < EACH; ++q) own[lane + 32 * q] = w[q];
        s.parts[warp][lane] = of_y, s.parts[warp][32 + lane] = of_u;
        if (lane == 0) s.sums[warp] = rest;
    }
};

// The panel's columns, one by one, by a block of LABRD_WARPS warps.
template <class T, int EACH> struct Labrd {
    static constexpr int most = 32 * EACH;
    Matrix<T> a;
    RowPanel<T> p;
    Bidiagonal<T> to;
    int before;
    LabrdScratch<T> &s;
    T *v, *products;

    // Compute x of step i − 1 from its reflector h and, unless `last`, column i of the updated A in
    // v.
    __device__ void next(int i, Reflector<T> h, bool last) const {
        int t = thread_rank();
        if (t < i) {
            T y = p.y(t, i), u = p.u(t, i), of_y = zero<T>(), of_u = zero<T>();
            for (int k = 0; k < LABRD_WARPS; ++k)
                of_y = of_y + s.parts[k][t], of_u = of_u + s.parts[k][32 + t];
            s.across[t] = y, s.beside[t] = u;
            s.left[t] = fma_(h.scale, of_y, y);
            s.right[t] = t + 1 < i ? fma_(h.scale, of_u, u) : zero<T>();
        }
        __syncthreads();
        for (int r = t; r < most; r += LABRD_THREADS) {
            bool inside = r >= i && r < a.rows;
            T entry = inside ? a(r, i) : zero<T>(), x = zero<T>(), column = entry;
            if (i > 0 && inside) {
                for (int k = 0; k < LABRD_WARPS; ++k) x = x + products[r + most * k];
                x = fma_(h.scale, x, entry);
#pragma unroll 4
                for (int k = 0; k < i - 1; ++k) {
                    T left = p.v(r, k), right = p.x(r, k);
                    x = fma_(-left, s.left[k], fma_(-right, s.right[k], x));
                    column = fma_(-left, s.across[k], fma_(-right, s.beside[k], column));
                }
                T left = p.v(r, i - 1);
                x = h.tau * fma_(-left, s.left[i - 1], x);
                column = fma_(-left, s.across[i - 1], fma_(-x, s.beside[i - 1], column));
                p.x(r, i - 1) = x;
            }
            if (!last) v[r] = inside ? column : zero<T>();
        }
        __syncthreads();
    }

    // Replace v by its reflector vector, from entry i on; return the reflector.
    __device__ Reflector<T> reflect_column(int i) const {
        int t = thread_rank();
        real_t<T> part = 0;
        for (int r = i + 1 + t; r < a.rows; r += LABRD_THREADS) part += abs2(v[r]);
        T alpha = v[i];
        Reflector<T> h = reflector(alpha, block_sum(part, s.sums));
        for (int r = i + t; r < a.rows; r += LABRD_THREADS)
            v[r] = p.v(r, i) = r == i ? one<T>() : h.scale * v[r];
        __syncthreads();
        for (int r = t; r < to.vq.rows; r += LABRD_THREADS)
            to.vq(r, i) = r < before + i ? zero<T>() : v[r - before];
        return h;
    }

    // Compute Vᴴ·v and Xᴴ·v, one product per warp at a time, and copy row i of V and X.
    __device__ void products_of_column(int i) const {
        int t = thread_rank(), lane = t % 32;
        for (int k = t / 32; k < 2 * i; k += LABRD_WARPS) {
            const T *of = k < i ? &p.v(0, k) : &p.x(0, k - i);
            T sum = zero<T>();
#pragma unroll 4
            for (int r = i + lane; r < a.rows; r += 32) sum = fma_(conj(of[r]), v[r], sum);
            sum = lane_sum<32>(sum);
            if (lane == 0) (k < i ? s.left[k] : s.right[k - i]) = sum;
        }
        if (t < i) s.across[t] = conj(p.v(i, t)), s.beside[t] = conj(p.x(i, t));
        __syncthreads();
    }

    // Process all columns behind column i: y, row i of the updated A, and the terms of x; return
    // the reflector of the row.
    __device__ Reflector<T> pass(int i, T tau) const {
        int t = thread_rank();
        {
            ColumnPass<T, EACH> own;
            own.clear();
#pragma unroll 1
            for (int j = i + 1 + t / 32; j < a.cols; j += LABRD_WARPS)
                own.column(a, p, i, j, tau, v, s);
            own.put(products, s);
        }
        __syncthreads();
        real_t<T> rest = 0;
        for (int k = 0; k < LABRD_WARPS; ++k) rest += s.sums[k];
        Reflector<T> h = reflector(s.alpha, rest);
        for (int j = i + 1 + t; j < a.cols; j += LABRD_THREADS) {
            T u = j == i + 1 ? one<T>() : conj(h.scale) * p.u(i, j);
            p.u(i, j) = u, to.vp(j - 1 + before, i) = u;
        }
        for (int r = t; r < before + i && r < to.vp.rows; r += LABRD_THREADS)
            to.vp(r, i) = zero<T>();
        __syncthreads();
        return h;
    }

    __device__ void run() const {
        int columns = min_(32, a.cols);
        Reflector<T> h{};
        for (int i = 0; i < columns; ++i) {
            next(i, h, false);
            h = reflect_column(i);
            if (thread_rank() == 0) to.d[i] = h.beta, to.tauq[i] = h.tau;
            if (i + 1 == a.cols) return;
            products_of_column(i);
            h = pass(i, h.tau);
            if (thread_rank() == 0) to.e[i] = h.beta, to.taup[i] = conj(h.tau);
        }
        next(columns, h, true);
    }
};
