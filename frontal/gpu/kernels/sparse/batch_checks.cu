// What is found of each of many systems, judged: whether its factor, and its solutions, are sound. A
// host looks at the numbers of systems that are not, and at more only where there are some.
//
// Tile map: a thread takes every (number of threads)-th system; no sum is of two systems.
// Preconditions: `counts` are zero. All numbers are double, whatever the scalars of the systems.
#include "sparse/structs.cuh"

constexpr int threads = SYSTEM_THREADS;
// Outcomes of cpu/single.py.
constexpr int sound = 0, unsure = -1, not_finite = -2;

__device__ inline double infinity() { return __longlong_as_double(0x7ffll << 52); }
__device__ inline double no_number() { return __longlong_as_double(0xfffll << 51); }
__device__ inline bool within(double low, double a, double high) { return low <= a && a <= high; }

// outcome[s] of each system, by what look_at_values (`values`) and look_at_pivots (`told`) found, and
// how many are not sound in counts[0]. `pivots`: not by Cholesky. limits: a number
// between those of symmetric values and of others, the least ratio, the most weak columns, and the
// largest growth. ratios: of the pivots of systems, if they are not simply told; even: which have a scaling; null for all.
// ratio[s]: `Health.pivot_ratio` of this factor. `counted` of both sides becomes NaN: condition
// numbers are those of one factor alone.
extern "C" __global__ void __launch_bounds__(threads) judge_factors(int systems, int pivots,
    const double *limits, const double *values, const double *told, const double *ratios,
    const unsigned char *even, double *ratio, double *counted, int *outcome, int *counts) {
    for (int s = blockIdx.x * threads + threadIdx.x; s < systems; s += gridDim.x * threads) {
        auto of = [&](const double *found, int q) { return found[s + (long long)systems * q]; };
        double least = of(told, 0);
        double own = ratios ? ratios[s] : pivots ? least / of(told, 1) : least > 1 ? 1 : least;
        int found = own >= limits[1] ? sound : unsure;
        if (pivots && !(of(told, 3) <= limits[2] && of(told, 4) <= limits[3])) found = unsure;
        if (!pivots && of(told, 2) > 0) found = (int)of(told, 2);
        if (!isfinite(of(values, 0))) found = not_finite;
        else if (!(of(values, 1) <= limits[0]) || (even && !even[s])) found = unsure;
        ratio[s] = own, outcome[s] = found;
        counted[s] = counted[s + (long long)systems] = no_number();
        if (found != sound) atomicAdd(counts, 1);
    }
}

// Right-hand sides of each system by their `sizes`, (width, 5, systems): largest moduli of residual,
// solution and right-hand side, componentwise errors, which count if they are to be corrected
// `by_component`, and rowwise errors. norm: of matrices. asked: which systems are meant; null for
// all. limits: those of numeric/backward_error.py, then the largest counted condition number times
// error that needs no word, and that of a solution's own. counted: condition numbers as
// numeric/condition.py counts them, NaN where none is known; own: those of the solutions themselves,
// likewise; null if none is known. found, (width + 3, systems): the error of each right-hand side in
// units of what needs no correction; the largest normwise error; whether errors need no correction,
// and sizes are inside the borders; whether no word is needed. counts: systems that need a
// correction, whose condition number is not known, and not clean.
extern "C" __global__ void __launch_bounds__(threads)
    judge_solutions(int systems, int width, int by_component, const double *limits,
        const double *sizes, const double *norm, const unsigned char *asked, const double *counted,
        const double *own, double *found, int *counts) {
    for (int s = blockIdx.x * threads + threadIdx.x; s < systems; s += gridDim.x * threads) {
        double worst = 0, row = 0, a = norm[s], *out = found + s;
        bool meant = !asked || asked[s], fine = meant, poor = false;
        for (int c = 0; c < width; ++c, out += systems) {
            const double *size = sizes + s + 5ll * systems * c;
            double r = size[0], x = size[systems], b = size[2ll * systems];
            double part = by_component ? size[3ll * systems] : 0, rowwise = size[4ll * systems];
            if (!isfinite(part)) part = infinity();
            if (!isfinite(rowwise)) rowwise = infinity();
            double product = a * x, scale = product + b, error = scale > 0 ? r / scale : r;
            if (!isfinite(error)) error = infinity();
            double merit = fmax(error / limits[0], part / limits[1]);
            merit = fmax(merit, rowwise / limits[2]);
            *out = meant ? merit : 0;
            poor = poor || merit > 1;
            worst = fmax(error, worst), row = fmax(rowwise, row);
            bool inside = within(limits[4], a, limits[5]) && within(limits[4], b, limits[5]) &&
                          within(limits[4], x, limits[5]) && product <= limits[6];
            fine = fine && merit <= 1 && (b == 0 || inside);
        }
        row = fmax(row, limits[7]);
        bool clean = counted[s] * row <= limits[9] || (own && own[s] * row <= limits[10]);
        clean = clean && fine;
        out[0] = meant ? worst : no_number();
        out[systems] = fine, out[2ll * systems] = clean;
        if (!meant) continue;
        if (poor) atomicAdd(counts, 1);
        if (!(counted[s] >= 0)) atomicAdd(counts + 1, 1);
        if (!clean) atomicAdd(counts + 2, 1);
    }
}
