// Acceptance of the factors and solutions of many systems. The host downloads the numbers of
// rejected systems, and details only if there are any.
//
// Tile map: a thread takes every (number of threads)-th system; no sum spans two systems.
// Preconditions: `counts` are zero. All numbers are double for any scalar type of the systems.
#include "sparse/structs.cuh"

constexpr int threads = SYSTEM_THREADS;
// Outcomes of cpu/small/one_system.py.
constexpr int sound = 0, unsure = -1, not_finite = -2;

__device__ inline double infinity() { return __longlong_as_double(0x7ffll << 52); }
__device__ inline double no_number() { return __longlong_as_double(0xfffll << 51); }
__device__ inline bool within(double low, double a, double high) { return low <= a && a <= high; }

// Write outcome[s] of each system from the results of look_at_values (`values`) and look_at_pivots
// (`told`), and add the rejected ones to counts[0]. `pivots`: the method is not Cholesky. ratios:
// pivot ratios, if `told` does not give them. even: systems with a usable scaling; null for all.
// ratio[s]: `Health.pivot_ratio` of this factor. `counted` of both sides becomes NaN: condition
// numbers belong to one factor.
extern "C" __global__ void __launch_bounds__(threads)
    judge_factors(int systems, int pivots, const __grid_constant__ FactorLimits limits,
        const double *values, const double *told, const double *ratios, const unsigned char *even,
        double *ratio, double *counted, int *outcome, int *counts) {
    for (int s = blockIdx.x * threads + threadIdx.x; s < systems; s += gridDim.x * threads) {
        auto of = [&](const double *found, int q) { return found[s + (long long)systems * q]; };
        double least = of(told, 0);
        double own = ratios ? ratios[s] : pivots ? least / of(told, 1) : least > 1 ? 1 : least;
        int found = own >= limits.pivot_ratio ? sound : unsure;
        bool stable = of(told, 3) <= limits.unstable_columns && of(told, 4) <= limits.growth;
        if (pivots && !stable) found = unsure;
        if (!pivots && of(told, 2) > 0) found = (int)of(told, 2);
        if (!isfinite(of(values, 0))) found = not_finite;
        else if (!(of(values, 1) <= limits.asymmetry) || (even && !even[s])) found = unsure;
        ratio[s] = own, outcome[s] = found;
        counted[s] = counted[s + (long long)systems] = no_number();
        if (found != sound) atomicAdd(counts, 1);
    }
}

// Check the solutions of each system by their `sizes`, (width, 5, systems): largest moduli of
// residual, solution and right-hand side; componentwise errors, which are limited only if
// `by_component`; rowwise errors. norm: of the matrices. asked: the systems to check; null for all.
// counted: condition numbers as in numeric/condition.py, NaN if unknown; own: those of the solutions
// themselves, likewise; null if unknown. found, (width + 3, systems): the error of each right-hand
// side relative to the limit of refinement; the largest normwise error; whether no error needs
// refinement and all sizes are in range; whether no warning is needed. counts: systems that need
// refinement, that have no known condition number, that are not clean.
extern "C" __global__ void __launch_bounds__(threads) judge_solutions(int systems, int width,
    int by_component, const __grid_constant__ SolutionLimits limits, const double *sizes,
    const double *norm, const unsigned char *asked, const double *counted, const double *own,
    double *found, int *counts) {
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
            double merit = fmax(error / limits.normwise, part / limits.componentwise);
            merit = fmax(merit, rowwise / limits.rowwise);
            *out = meant ? merit : 0;
            poor = poor || merit > 1;
            worst = fmax(error, worst), row = fmax(rowwise, row);
            double low = limits.smallest, high = limits.largest;
            bool inside = within(low, a, high) && within(low, b, high) && within(low, x, high) &&
                          product <= limits.product;
            fine = fine && merit <= 1 && (b == 0 || inside);
        }
        row = fmax(row, limits.eps);
        bool clean = counted[s] * row <= limits.silent || (own && own[s] * row <= limits.warned);
        clean = clean && fine;
        out[0] = meant ? worst : no_number();
        out[systems] = fine, out[2ll * systems] = clean;
        if (!meant) continue;
        if (poor) atomicAdd(counts, 1);
        if (!(counted[s] >= 0)) atomicAdd(counts + 1, 1);
        if (!clean) atomicAdd(counts + 2, 1);
    }
}
