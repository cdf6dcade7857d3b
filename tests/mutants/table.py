"""Bugs of one replacement each: a file, an anchor that it has once, and the text put there."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One bug.

    Attributes
    ----------
    name : str
    file : str
        Path from the root of the repository.
    anchor, replacement : str
        Text that occurs exactly once in the file, and what the bug has instead.
    what : str
        The bug in words.
    kills : str
        The test file, or one test of it, that must fail.
    """

    name: str
    file: str
    anchor: str
    replacement: str
    what: str
    kills: str


_VERDICT = "frontal/factor/verdict.py"
_CONDITION = "frontal/factor/condition.py"
_COMPARED = "frontal/factor/compared.py"
_RULES = "frontal/numeric/condition.py"
_ERRORS = "frontal/numeric/backward_error.py"
_NULLS = "frontal/factor/nullspace.py"
_MIXED = "frontal/factor/mixed.py"
_OF_VERDICT = "tests/factor/test_verdict.py"
_OF_SEQUENCES = "tests/factor/test_sequences.py"
_OF_ACCEPTANCE = "tests/factor/test_acceptance.py"
_OF_SINGULAR = "tests/factor/test_singular.py"
_OF_MIXED = "tests/factor/test_mixed.py"

OF_VERDICTS = (
    # --- verdicts and condition numbers ----------------------------------------------------------
    Row(
        "verdict_one_condition_for_both_sides",
        _VERDICT,
        'return trans != "N" and not factor.symbolic.method.one_triangle',
        "return False",
        "the condition number of A is that of its transpose",
        f"{_OF_VERDICT}::test_condition_is_estimated_once_for_each_factor",
    ),
    Row(
        "verdict_condition_of_other_values",
        _VERDICT,
        "self.certifies, self.hidden = before.certifies, hides(factor)\n",
        "self.certifies, self.hidden = before.certifies, hides(factor)\n"
        "        self.conditions = dict(before.conditions)\n",
        "a condition number is that of the values before",
        f"{_OF_VERDICT}::test_condition_is_estimated_once_for_each_factor",
    ),
    Row(
        "compared_by_least_weight",
        _COMPARED,
        "found = condition.counted * of.system.ratios(w, None)[1]",
        "found = condition.counted * of.system.ratios(w, None)[0]",
        "a condition number for row sums counts by the least weight",
        f"{_OF_VERDICT}::test_row_sums_silence_solutions_by_their_largest_weight",
    ),
    Row(
        "compared_silent_by_least_weight",
        _COMPARED,
        "if margin * most * error",
        "if margin * least * error",
        "a solution is silent where the last one was and one of its weights is not larger",
        f"{_OF_VERDICT}::test_weights_of_one_solution_say_nothing_of_others",
    ),
    Row(
        "compared_doubtful_by_largest_weight",
        _COMPARED,
        "least * error > THRESHOLDS.warned",
        "most * error > THRESHOLDS.warned",
        "a solution is doubtful where the last one was",
        f"{_OF_VERDICT}::test_weights_of_one_solution_say_nothing_of_others",
    ),
    Row(
        "verdict_nulls_of_other_values",
        _VERDICT,
        "self.certifies, self.hidden = before.certifies, hides(factor)\n",
        "self.certifies, self.hidden = before.certifies, hides(factor)\n"
        "        self.nulls = dict(before.nulls)\n",
        "a null space is that of the values before",
        f"{_OF_SINGULAR}::test_null_space_is_that_of_the_last_values",
    ),
    Row(
        "verdict_never_may_be_singular",
        _VERDICT,
        "return not self.sure\n",
        "return False\n",
        "an estimate is believed however small pivots are",
        f"{_OF_VERDICT}::test_small_pivots_leave_no_estimate_below_one_over_eps",
    ),
    Row(
        "at_once_bound_without_the_order",
        "frontal/cpu/at_once.py",
        "            bound = BOUND * n * found\n",
        "            bound = BOUND * found\n",
        "a product with few vectors passes for a bound of the norm",
        f"{_OF_VERDICT}::test_what_passes_for_a_bound_is_one",
    ),
    Row(
        "one_norm_bound_without_the_order",
        "frontal/factor/one_norm.py",
        "            bound = BOUND * probes.n * found.value\n",
        "            bound = BOUND * found.value\n",
        "the same where no compiled call estimates",
        f"{_OF_VERDICT}::test_what_passes_for_a_bound_is_one",
    ),
    Row(
        "policy_values_are_never_matched_anew",
        "frontal/factor/policy.py",
        "        if self.renewed and not self.matched:\n            raise Unmatched\n",
        "",
        "a matching of other values leaves a pivot next to nothing, and a warning that is false",
        "tests/factor/test_sequences.py::test_values_are_matched_anew_where_a_pivot_leaves_doubts",
    ),
    Row(
        "policy_values_are_matched_each_time",
        "frontal/factor/policy.py",
        "course.renewed, course.matched = renewed, before.matched",
        "course.renewed, course.matched = renewed, False",
        "an analysis that did not help is made again for all values",
        "tests/factor/test_sequences.py::test_a_matching_that_helps_nothing_is_not_sought_again",
    ),
    Row(
        "verdict_noise_of_null_pivots_alone",
        _VERDICT,
        "if not (factor.nulls.size or self.pivot_ratio < NOISE * eps):",
        "if not factor.nulls.size:",
        "pivots that are rounding do not count as small",
        f"{_OF_VERDICT}::test_small_pivots_leave_no_estimate_below_one_over_eps",
    ),
    Row(
        "verdict_suspects_the_harmless",
        _VERDICT,
        "if self.regular or not self._is_suspected(factor):",
        "if self.regular or self._is_suspected(factor):",
        "null vectors are sought where the condition number is small",
        f"{_OF_SINGULAR}::test_rank_and_null_columns",
    ),
    Row(
        "verdict_null_space_of_a_for_all",
        _VERDICT,
        "        null = self.nulls[trans]\n",
        '        null = self.nulls["N"]\n',
        "solutions with the transpose are fixed by the null space of A",
        f"{_OF_SINGULAR}::test_consistent_and_other_right_hand_sides",
    ),
    Row(
        "verdict_fixed_as_the_first",
        _VERDICT,
        "better = found.normwise <= _CONSISTENT * system.eps",
        "better = np.full(found.normwise.size, found.normwise[0] <= _CONSISTENT * system.eps)",
        "all columns are as consistent as the first",
        f"{_OF_SINGULAR}::test_consistent_and_other_right_hand_sides",
    ),
    Row(
        "verdict_worst_of_the_first",
        _VERDICT,
        "worst, eps = errors.worst_normwise,",
        "worst, eps = float(errors.normwise[0]),",
        "a solution without digits in the second column is returned",
        f"{_OF_VERDICT}::test_column_without_digits_is_refused_at_any_place",
    ),
    Row(
        "verdict_warns_where_it_is_allowed",
        _VERDICT,
        'if found is None and estimate is not None and self.singular != "allow":',
        "if found is None and estimate is not None:",
        "singular='allow' does not silence the condition number",
        f"{_OF_VERDICT}::test_allowed_singular_matrices_are_not_warned_of",
    ),
    Row(
        "verdict_reports_what_silences",
        _VERDICT,
        "        if not anew:\n",
        "        if True:\n",
        "a report has no condition number of the solution where the factor's silences",
        f"{_OF_VERDICT}::test_reported_condition_is_that_of_its_definition",
    ),
    Row(
        "condition_silences_by_the_estimate",
        _RULES,
        "return self.counted * error <= SILENT",
        "return self.value * error <= SILENT",
        "an estimate silences without its margin",
        f"{_OF_ACCEPTANCE}::test_an_estimate_silences_with_its_margin",
    ),
    Row(
        "condition_certificate_of_columns",
        _RULES,
        "                image[j] -= size * np.float64(np.abs(z[i]))\n",
        "                image[i] -= size * np.float64(np.abs(z[j]))\n",
        "a certificate of the transpose reads A by columns",
        f"{_OF_SEQUENCES}::test_certificate_bounds_condition_of_diagonally_dominant_matrices",
    ),
    Row(
        "condition_margin_of_complex_single",
        "frontal/numeric/thresholds.py",
        "single = np.finfo(dtype).dtype.itemsize == 4",
        "single = np.dtype(dtype).itemsize == 4",
        "complex64 has the margin of double",
        f"{_OF_ACCEPTANCE}::test_limits_depend_on_the_precision_of_the_factor",
    ),
    Row(
        "condition_in_single_without_limit",
        _CONDITION,
        "if not value >= 0 or (roundoff > eps_of(dtype) and value * roundoff > THRESHOLDS.single):",
        "if not value >= 0:",
        "a factor in single precision estimates any condition number",
        f"{_OF_MIXED}::test_factor_in_single_estimates_no_large_condition",
    ),
    Row(
        "condition_adjoint_by_itself",
        _CONDITION,
        'return ("N", "H") if trans == "N" else ("H", "N")',
        'return ("N", "H")',
        "the condition number of the transpose is that of A",
        f"{_OF_VERDICT}::test_reported_condition_is_that_of_its_definition",
    ),
    Row(
        "condition_transpose_not_conjugated",
        _CONDITION,
        "        X, B = X.conj(), B.conj()\n",
        "        pass\n",
        "weights of a transposed system are those of the adjoint one",
        f"{_OF_VERDICT}::test_reported_condition_is_that_of_its_definition",
    ),
    Row(
        "condition_hidden_by_pivots_alone",
        _CONDITION,
        "return bool(small or factor.perturbed or factor.nulls.size)",
        "return bool(small)",
        "replaced pivots hide nothing",
        f"{_OF_VERDICT}::test_small_replaced_or_null_pivots_hide_a",
    ),
    Row(
        "condition_always_sure",
        _CONDITION,
        "return bool(changes <= _SURE)",
        "return bool(changes >= 0)",
        "factors are taken for those of A whatever rounding has changed",
        f"{_OF_VERDICT}::test_small_pivots_leave_no_estimate_below_one_over_eps",
    ),
    Row(
        "rows_of_any_length_forgiven",
        _ERRORS,
        "size /= np.sqrt(counts[i] / _LONG_ROW)",
        "size /= np.sqrt(counts[i])",
        "the limit of errors jumps where rows are long",
        f"{_OF_ACCEPTANCE}::test_long_row_is_forgiven_the_root_of_its_length",
    ),
    Row(
        "rows_tiny_by_their_own_size",
        _ERRORS,
        "            of += all_of_row\n",
        "            pass\n",
        "rows where x is nearly zero are not judged by its largest entry",
        f"{_OF_ACCEPTANCE}::test_row_where_x_is_nearly_zero_is_judged_by_its_largest_entry",
    ),
    Row(
        "rows_counted_by_columns",
        _ERRORS,
        "counts[j if flipped else indices[p]] += 1",
        "counts[indices[p]] += 1",
        "lengths of rows are those of columns where A is read by rows",
        f"{_OF_ACCEPTANCE}::test_long_row_is_forgiven_the_root_of_its_length",
    ),
    Row(
        "rows_limit_of_mixed_precision",
        _ERRORS,
        "rowwise = table.unrefined if factor == vectors else table.accepted",
        "rowwise = table.unrefined",
        "solutions by a factor in single precision are refined as little as by one in double",
        f"{_OF_ACCEPTANCE}::test_limits_depend_on_the_precision_of_the_factor",
    ),
    # --- mixed precision and null spaces ---------------------------------------------------------
    Row(
        "mixed_accepts_any_condition",
        _VERDICT,
        "if not estimate.condition * eps <= THRESHOLDS.warned:",
        "if not estimate.condition * eps <= 1e3:",
        "a factor in single precision says what only one in double may",
        f"{_OF_MIXED}::test_limits_of_a_factor_in_single_are_kept",
    ),
    Row(
        "mixed_noise_is_not_looked_at",
        _VERDICT,
        "if pivot_ratio >= NOISE * np.finfo(factor.dtype).eps:",
        "if pivot_ratio >= 0:",
        "a factor in single precision with pivots of rounding is kept",
        f"{_OF_MIXED}::test_single_pivots_of_rounding_need_a_condition",
    ),
    Row(
        "mixed_range_from_above_alone",
        _MIXED,
        "if not (size.max(initial=1.0) <= _RANGE and size.min(initial=1.0) >= 1 / _RANGE):",
        "if not size.max(initial=1.0) <= _RANGE:",
        "diagonal entries may underflow in single precision",
        f"{_OF_MIXED}::test_limits_of_a_factor_in_single_are_kept",
    ),
    Row(
        "mixed_steps_as_bool",
        _MIXED,
        "if not isinstance(steps, numbers.Integral) or isinstance(steps, bool):",
        "if not isinstance(steps, numbers.Integral):",
        "refine=True is one step",
        f"{_OF_MIXED}::test_steps_as_bool_are_refused",
    ),
    Row(
        "null_space_of_the_adjoint",
        _NULLS,
        "return None if found is None else found._replace(basis=found.basis.conj())",
        "return found",
        "the null space of the transpose is not conjugated",
        f"{_OF_SINGULAR}::test_consistent_and_other_right_hand_sides",
    ),
)
