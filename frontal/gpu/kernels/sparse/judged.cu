// What is found of each of many systems, judged: whether its factor, and its solutions, are sound. A
// host looks at the numbers of systems that are not, and at more only where there are some.
//
// Tile map: a thread takes every (number of threads)-th system; no sum is of two systems.
// Preconditions: `counts` are zero. All numbers are double, whatever the scalars of the systems.
#include "sparse/structs.cuh"

constexpr int threads = SYSTEM_THREADS;
// Outcomes of cpu/single.py; and a decade for which no condition number is known, of
// batch/substitute.py.
constexpr int sound = 0, unsure = -1, not_finite = -2;
constexpr double unknown = -9999;

__device__ inline double infinity() { return __longlong_as_double(0x7ffll << 52); }
__device__ inline double no_number() { return __longlong_as_double(0xfffll << 51); }
__device__ inline bool within(double low, double a, double high) { return low <= a && a <= high; }

// outcome[s] of each system, by what look_at_values (`values`) and look_at_pivots (`told`) found, and
// how many are not sound in counts[0]. `pivots`: not by Cholesky. limits: the largest gap beside the
// largest value, the least ratio, the most weak columns, and the largest growth. ratios: of
// the pivots of systems, if they are not simply told; even: which have a scaling; null for all.
// ratio[s]: `Health.pivot_ratio` of the factor before, then of this one; where they differ by far,
// `decade` of both sides becomes unknown.
extern "C" __global__ void __launch_bounds__(threads) judge_factors(int systems, int pivots,
    const double *limits, const double *values, const double *told, const double *ratios,
    const unsigned char *even, double *ratio, double *decade, int *outcome, int *counts) {
    for (int s = blockIdx.x * threads + threadIdx.x; s < systems; s += gridDim.x * threads) {
        auto of = [&](const double *found, int q) { return found[s + (long long)systems * q]; };
        double least = of(told, 0), before = ratio[s], size = of(values, 0);
        double own = ratios ? ratios[s] : pivots ? least / of(told, 1) : least > 1 ? 1 : least;
        bool alike = own <= 10 * before && before <= 10 * own;
        int found = own >= limits[1] ? sound : unsure;
        if (pivots && !(of(told, 3) <= limits[2] && of(told, 4) <= limits[3])) found = unsure;
        if (!pivots && of(told, 2) > 0) found = (int)of(told, 2);
        if (!isfinite(size)) found = not_finite;
        else if (!(of(values, 1) <= limits[0] * size) || (even && !even[s])) found = unsure;
        ratio[s] = own, outcome[s] = found;
        if (!alike) decade[s] = decade[s + (long long)systems] = unknown;
        if (found != sound) atomicAdd(counts, 1);
    }
}

// Right-hand sides of each system by their `sizes`, (width, 4, systems): largest moduli of residual,
// solution and right-hand side, and componentwise error, which counts where they are badly scaled.
// norm: of matrices. asked: which systems are meant; null for all. limits: as `cpu.residual.measure`
// takes them, then the precision, and the largest error of a solution that is clean. decade,
// condition: those that are known. found, (width + 4, systems): the error of each right-hand side in
// units of what is good enough; the largest normwise error; the decade of the largest |A||x|/|b|;
// whether errors are what rounding costs, and sizes inside the borders; whether no word is needed.
// counts: systems that are not good enough, of another decade than is known, and not clean.
extern "C" __global__ void __launch_bounds__(threads)
    judge_solutions(int systems, int width, int badly_scaled, const double *limits,
        const double *sizes, const double *norm, const unsigned char *asked, const double *decade,
        const double *condition, double *found, int *counts) {
    for (int s = blockIdx.x * threads + threadIdx.x; s < systems; s += gridDim.x * threads) {
        double worst = 0, gain = 0, a = norm[s], *out = found + s;
        bool meant = !asked || asked[s], fine = meant, poor = false;
        for (int c = 0; c < width; ++c, out += systems) {
            const double *size = sizes + s + 4ll * systems * c;
            double r = size[0], x = size[systems], b = size[2ll * systems], part = 0;
            if (badly_scaled) part = size[3ll * systems];
            if (!isfinite(part)) part = infinity();
            double product = a * x, scale = product + b, own = scale > 0 ? r / scale : r;
            if (!isfinite(own)) own = infinity();
            double merit = fmax(own / limits[0], part / limits[1]), more = product / b;
            *out = meant ? merit : 0;
            poor = poor || merit > 1;
            worst = fmax(own, worst);
            if (isfinite(more)) gain = fmax(more, gain);
            bool inside = within(limits[2], a, limits[3]) && within(limits[2], b, limits[3]) &&
                          within(limits[2], x, limits[3]) && product <= limits[4];
            fine = fine && own <= limits[0] && part <= limits[1] && (b == 0 || inside);
        }
        double power = gain > 0 ? rint(log10(gain)) : -400;
        bool clean = fine && condition[s] * fmax(worst, limits[5]) <= limits[6];
        out[0] = meant ? worst : no_number(), out[systems] = meant ? power : decade[s];
        out[2ll * systems] = fine, out[3ll * systems] = clean;
        if (!meant) continue;
        if (poor) atomicAdd(counts, 1);
        if (!(fabs(decade[s] - power) <= 1)) atomicAdd(counts + 1, 1);
        if (!clean) atomicAdd(counts + 2, 1);
    }
}
