// Operations on a system op(A) X = B on the device besides the sweeps: permutation and scaling to
// the factor's order and back, the residual with the norms for its acceptance, and norms of the
// factors.
//
// Each entry point states what a block, a team of threads or a thread owns, and the static shared
// memory of a block; blocks do not wait for each other. Backward errors: Oettli, Prager,
// "Compatibility of approximate solution of linear equations with given error bounds for
// coefficients and right-hand sides" (1964), componentwise; Rigal, Gaches, "On the compatibility of
// a given solution with the data of a linear system" (1967), normwise.
#include "sparse/factor_entries.cuh"
#include "sparse/residual.cuh"

// In the factor's vectors the 2^shift right-hand sides of a row are adjacent; the first `width` are
// used.

// y = scale·b in the order `place`, conjugated if `conjugate`; zeros beyond `width`. A thread owns
// entries.
extern "C" __global__ void __launch_bounds__(threads) system_enter(int n, const int *place,
    const double *scale, int conjugate, int width, int shift, const V *b, T *y) {
#pragma unroll 1
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < (long long)n << shift;
        e += (long long)gridDim.x * threads) {
        long long i = place[e >> shift], j = e & ((1 << shift) - 1);
        V v = j < width ? b[j * n + i] : zero<V>();
        T t = scale ? times<T>(scale[i], v) : as<T>(v);
        y[e] = conjugate ? conj(t) : t;
    }
}

// x = before + scale·y out of the order `place`; `before` may be null. For one system, number q = 1
// of its first column, the largest |x|, goes to norms, which may be null. A thread owns entries of
// one column. Static shared memory: a norm.
extern "C" __global__ void __launch_bounds__(threads)
    system_leave(int n, const int *place, const double *scale, int conjugate, int width, int shift,
        const T *y, const V *before, V *x, Bits *norms) {
    decltype(bits(R())) best[1] = {};
#pragma unroll 1
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < (long long)n << shift;
        e += (long long)gridDim.x * threads) {
        long long i = place[e >> shift], j = e & ((1 << shift) - 1);
        if (j >= width) continue;
        T t = conjugate ? conj(y[e]) : y[e];
        V v = scale ? times<V>(scale[i], t) : as<V>(t);
        v = before ? before[j * n + i] + v : v;
        x[j * n + i] = v;
        if (norms && j == 0) best[0] = max(best[0], bits(modulus(v)));
    }
    if (norms) collect(best, norms, [](int) { return 1; });
}

// q = 1, the largest |x|. Tile map: a row of blocks takes a column, a thread entries of it. Static
// shared memory: a norm.
extern "C" __global__ void __launch_bounds__(threads)
    system_peak(int order, int count, const V *x, Bits *norms) {
    for (int s = blockIdx.z; s < count; s += gridDim.z) {
        decltype(bits(R())) best[1] = {};
        const V *column = x + ((long long)blockIdx.y * count + s) * order;
        for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < order;
            i += (long long)gridDim.x * threads)
            best[0] = max(best[0], bits(modulus(column[i])));
        long long place = (5ll * blockIdx.y + 1) * count + s;
        collect(best, norms, [=](int) { return place; });
    }
}

extern "C" __global__ void __launch_bounds__(threads, 2) system_residual_1(int order, int count,
    int width, int lanes, const Position *pointer, const int *index, const Position *position,
    int flags, const T *values, const V *x, const V *b, V *r, double *sums, Bits *norms) {
    residual<1>(
        flags, order, count, width, lanes, pointer, index, position, values, x, b, r, sums, norms);
}
extern "C" __global__ void __launch_bounds__(threads, 2) system_residual_4(int order, int count,
    int width, int lanes, const Position *pointer, const int *index, const Position *position,
    int flags, const T *values, const V *x, const V *b, V *r, double *sums, Bits *norms) {
    residual<4>(
        flags, order, count, width, lanes, pointer, index, position, values, x, b, r, sums, norms);
}

// Call f(modulus of the value, column) for all entries of a team's row.
template <class F>
__device__ __forceinline__ void each_of_row(const Teams &team, int n, int lanes,
    const Position *pointer, const int *index, const Position *position, int flags, const T *values,
    F f) {
    if (team.row >= n) return;
    long long begin = pointer[team.row], end = pointer[team.row + 1];
    for (long long p = begin + team.lane; p < end; p += lanes) {
        long long place = position ? (long long)position[p] : p;
        if (flags & MIRRORED) place = mirrored_place(pointer, index, (int)team.row, begin, p);
        f((double)modulus(values[place]), index[p]);
    }
}

// Write the row sums of |op(A)| as a vector. Tile map: a team per row.
extern "C" __global__ void __launch_bounds__(threads)
    system_row_sums(int n, int lanes, const Position *pointer, const int *index,
        const Position *position, int flags, const T *values, V *sums) {
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        double sum = 0;
        each_of_row(team, n, lanes, pointer, index, position, flags, values,
            [&](double a, int) { sum += a; });
        sum = sum_of_team(sum, lanes);
        if (team.row < n && !team.lane) sums[team.row] = from_real<V>((R)sum);
    }
}

// Maxima, zero at first: out[0] of |z|, out[1] of row sums of |A| over the entries of M|z|, for the
// comparison matrix M of op(A), infinite if an entry is not positive: `certificate` of
// numeric/condition.py. Tile map: a team per row; static shared memory: two norms.
extern "C" __global__ void __launch_bounds__(threads)
    system_certificate(int n, int lanes, const Position *pointer, const int *index,
        const Position *position, int flags, const T *values, const V *z, Bits *out) {
    Bits best[2] = {};
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        double sum = 0, image = 0;
        each_of_row(team, n, lanes, pointer, index, position, flags, values, [&](double a, int c) {
            double product = a * modulus(z[c]);
            sum += a, image += c == team.row ? product : -product;
        });
        sum = sum_of_team(sum, lanes), image = sum_of_team(image, lanes);
        if (team.row >= n || team.lane) continue;
        bool holds = image * LEAST_PART > sum;
        best[0] = max(best[0], bits((double)modulus(z[team.row])));
        best[1] = max(best[1], bits(holds ? sum / image : __longlong_as_double(0x7ffll << 52)));
    }
    collect(best, out, [](int i) { return i; });
}

// values[e] = the sum of given[position[p]], p from pointer[e] to pointer[e+1], in this order. A
// thread owns entries.
extern "C" __global__ void __launch_bounds__(threads) system_sum(
    long long count, const Position *pointer, const Position *position, const T *given, T *values) {
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < count;
        e += (long long)gridDim.x * threads) {
        T sum = zero<T>();
        for (long long p = pointer[e]; p < pointer[e + 1]; ++p) sum = sum + given[position[p]];
        values[e] = sum;
    }
}

// Write the diagonal of L (Cholesky) or D, or reciprocals of that of U, in elimination order. A
// thread per entry.
extern "C" __global__ void __launch_bounds__(threads) system_diagonal(
    const __grid_constant__ Fronts tree, int fronts, int n, T *panels, T *diagonal) {
    for (long long c = (long long)blockIdx.x * threads + threadIdx.x; c < n;
        c += (long long)gridDim.x * threads) {
        Front<T> f = front_with(tree, fronts, (int)c, panels);
        diagonal[c] = kept_pivot(f, (int)c - tree.start[f.s]);
    }
}

// mirror[p] = the position of the transposed entry of entry p, unless `mirror` is null; missing[0],
// zero at first, counts entries without one. Tile map: a team per column.
extern "C" __global__ void __launch_bounds__(threads) system_mirror(
    int n, int lanes, const Position *pointer, const int *index, Position *mirror, int *missing) {
    Teams team(lanes);
    for (; team.row < n; team.row += team.step)
        for (long long p = pointer[team.row] + team.lane; p < pointer[team.row + 1]; p += lanes) {
            long long other = position_of_entry(pointer, index, (int)team.row, index[p]);
            if (other < 0) atomicAdd(missing, 1);
            if (mirror) mirror[p] = (Position)other;
        }
}

// largest[j], zero at first, becomes the bits of the largest modulus in row and column j. Tile map:
// a team per column.
extern "C" __global__ void __launch_bounds__(threads) system_row_sizes(
    int n, int lanes, const Position *pointer, const int *index, const T *values, Bits *largest) {
    Teams team(lanes);
    for (; team.row < n; team.row += team.step)
        for (long long p = pointer[team.row] + team.lane; p < pointer[team.row + 1]; p += lanes) {
            Bits size = wide(bits(modulus(values[p])));
            atomicMax(&largest[team.row], size), atomicMax(&largest[index[p]], size);
        }
}

// found[0], zero at first, becomes the largest |a − b̄| (or |a − b| for the other symmetry) of
// entries a and transposed ones b, over the smaller of the largest moduli of a's row and column
// (system_row_sizes). Tile map: a team per column; static shared memory: a norm.
extern "C" __global__ void __launch_bounds__(threads)
    system_asymmetry(int n, int lanes, const Position *pointer, const int *index, const T *values,
        const double *largest, Bits *found) {
    Bits best[1] = {};
    Teams team(lanes);
    for (; team.row < n; team.row += team.step)
        for (long long p = pointer[team.row] + team.lane; p < pointer[team.row + 1]; p += lanes) {
            T other = entry_of(pointer, index, values, (int)team.row, index[p]);
            double apart = modulus(values[p] - mirrored(other));
            if (apart == 0) continue;
            best[0] = max(best[0], bits(apart / fmin(largest[team.row], largest[index[p]])));
        }
    collect(best, found, [](int i) { return i; });
}

// SIGNED: the sign of the entry of A that each pivot has on the diagonal, or 0.
extern "C" __global__ void __launch_bounds__(threads) system_signs(int n, const Position *pointer,
    const int *index, const int *perm, const T *values, signed char *signs) {
    int step = gridDim.x * threads;
    for (int c = blockIdx.x * threads + threadIdx.x; c < n; c += step) {
        real_t<T> a = real(entry_of(pointer, index, values, perm[c], perm[c]));
        signs[c] = (signed char)((a > 0) - (a < 0));
    }
}

// Maxima for the pivots first…last−1. out[0]: |a|/|d|² for pivots d of Cholesky and their entries a
// of A (column perm[c] for pivot c), |a|/|d| with SIGNED, otherwise 1/|d|; out[1]: |d|; out[2]: parts of A's `count`
// values; out[3], if `lanes` is not zero: |a - b̄|, or |a - b| for the other symmetry, for values a
// and b of transposed entries; out[4], except for Cholesky: `largest`. And out[5]: how many of
// these exceed LIMIT, as an integer. A thread owns pivots and values, and a team of `lanes` columns
// of A; static shared memory: five norms.
extern "C" __global__ void __launch_bounds__(threads) system_health(
    const __grid_constant__ Fronts tree, int fronts, int n, T *panels, int first, int last,
    const Position *pointer, const int *index, const int *perm, const T *values, long long count,
    int lanes, const T *d, const T *coupling, const float *largest, Bits *out) {
    Bits best[CHOLESKY ? 4 : 5] = {};
    long long begin = (long long)blockIdx.x * threads + threadIdx.x,
              step = (long long)gridDim.x * threads;
    for (long long c = first + begin; c < last; c += step) {
        if constexpr (!CHOLESKY) {
            best[4] = max(best[4], bits((double)largest[c]));
            if (!(largest[c] <= LIMIT)) atomicAdd(&out[5], 1);  // rare, or the factor is rejected
        }
        if constexpr (SIGNED) {
            double size = modulus(d[c]);
            T entry = entry_of(pointer, index, values, perm[c], perm[c]);
            best[0] = max(best[0], bits(modulus(entry) / size)), best[1] = max(best[1], bits(size));
            continue;
        } else if constexpr (LDL) {
            PivotSize size = pivot_size(d, coupling, (int)c);
            best[0] = max(best[0], bits(1 / size.small)), best[1] = max(best[1], bits(size.large));
            continue;
        }
        Front<T> f = front_with(tree, fronts, (int)c, panels);
        double d = modulus(kept_pivot(f, (int)c - tree.start[f.s]));
        if (LU) d = 1 / d;
        double loss =
            LU ? 1 / d : modulus(entry_of(pointer, index, values, perm[c], perm[c])) / (d * d);
        best[0] = max(best[0], bits(loss)), best[1] = max(best[1], bits(d));
    }
    for (long long p = begin; p < count; p += step)
        best[2] = max(best[2], wide(part_bits(values[p])));
    if (lanes) {
        Teams team(lanes);
        for (; team.row < n; team.row += team.step)
            for (long long p = pointer[team.row] + team.lane; p < pointer[team.row + 1];
                p += lanes) {
                if (index[p] < team.row) continue;
                T other = entry_of(pointer, index, values, (int)team.row, index[p]);
                best[3] = max(best[3], wide(bits(modulus(values[p] - mirrored(other)))));
            }
    }
    collect(best, out, [](int i) { return i; });
}

// out[0]: the largest part of an entry of columns first…last−1 of the factors, SIGNED: the largest
// |D(j,j)| |L(i,j)|² of these columns, i = j included, with D in `coupling`; out[1]: the largest
// sum of one of n columns of |A|; both combined by maximum with the contents of `out`. Padding, and
// entries above the diagonal of L, are not read: they are unwritten memory. Tile map: a warp takes
// columns of the factors, a team columns of A; static shared memory: two norms.
extern "C" __global__ void __launch_bounds__(threads, 3) system_largest(
    const __grid_constant__ Fronts tree, int fronts, int n, T *panels, int first, int last,
    int lanes, const Position *pointer, const T *values, const T *coupling, Bits *out) {
    Bits best[2] = {};
    int lane = threadIdx.x % 32, warps = threads / 32;
    for (int c = first + blockIdx.x * warps + threadIdx.x / 32; c < last; c += gridDim.x * warps) {
        Front<T> f;
        f.set(tree, front_of(tree, fronts, c), panels);
        int j = c - tree.start[f.s];
        double most = 1;  // SIGNED: of the column of L
        if (LDL && !SIGNED && lane == 0) best[0] = max(best[0], wide(part_bits(coupling[c])));
        auto look = [&](Matrix<T> row, int first) {
            for (int i = first + lane; i < row.rows; i += 32) {
                if (SIGNED) most = fmax(most, (double)modulus(row(i, j)));
                else best[0] = max(best[0], wide(part_bits(row(i, j))));
            }
        };
        int diagonal = j / FRONT_TILE;
        for (int i = LU ? 0 : diagonal; i < f.pivot_tiles + f.update_tiles; ++i) {
            if (i != diagonal || !(LU || f.inverted()))
                look(f.lower(i), i == diagonal ? j % FRONT_TILE + SIGNED : 0);
            if (LU && i >= f.pivot_tiles) look(f.upper(i), 0);
        }
        auto look_at = [&](T v) { best[0] = max(best[0], wide(part_bits(v))); };
        if (LU) {
            each_of_inverse(f.inverse(diagonal), true, j % FRONT_TILE, look_at);
            each_of_inverse(f.inverse(diagonal, true), false, j % FRONT_TILE, look_at);
        } else if (f.inverted()) each_of_inverse(f.inverse(0), false, j, look_at);
        if (SIGNED) best[0] = max(best[0], bits(modulus(coupling[c]) * most * most));
    }
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        double sum = 0;
        if (team.row < n)
            for (long long p = pointer[team.row] + team.lane; p < pointer[team.row + 1]; p += lanes)
                sum += modulus(values[p]);
        best[1] = max(best[1], bits(sum_of_team(sum, lanes)));
    }
    collect(best, out, [](int i) { return i; });
}
