"""Bugs of one replacement each, in batches, files and what the host does for a GPU."""

from __future__ import annotations

from .table import Row

_BATCH = "frontal/batch/"
_IO = "frontal/io/"
_SPARSE = "frontal/gpu/sparse/"
_RECORDED = "frontal/gpu/runtime/recorded.py"
_DISSECTION = "frontal/ordering/dissection/"
_OF_VERDICT = "tests/factor/test_verdict.py"
_OF_BATCH = "tests/batch/test_batch.py"
_OF_SOLVER = "tests/input/test_solver.py"
_OF_PATTERNS = "tests/factor/test_same_patterns.py"
_OF_STREAMED = "tests/gpu/sparse/test_gpu_streamed.py::test_the_same_bits_in_the_least_memory"
_OF_SEGMENTS = "tests/gpu/sparse/test_gpu_segments.py::test_nothing_has_two_owners"
_OF_SCHEDULE = "tests/gpu/sparse/test_gpu_schedule.py::test_nothing_has_two_owners"
_OF_AGAIN = "tests/gpu/dense/test_gpu_again.py"
_OF_HARWELL = "tests/input/test_harwell_boeing.py"
_OF_MARKET = "tests/input/test_matrix_market.py"

OF_HOSTS = (
    Row(
        "systems_error_below_rounding",
        "frontal/batch/substitute.py",
        "error, condition = max(error, limits[7]), known.condition[side, i]",
        "error, condition = error, known.condition[side, i]",
        "solutions of a batch are as good as their residual, zero perhaps",
        "tests/batch/test_batch.py::test_ill_conditioned_systems_are_warned_of_as_ever",
    ),
    Row(
        "looks_symmetry_by_the_larger_row",
        "frontal/gpu/kernels/sparse/front_looks.cu",
        "good = good && apart <= largest[j] && apart <= largest[index[p]];",
        "good = good && (apart <= largest[j] || apart <= largest[index[p]]);",
        "entries in the row of a huge one may differ as that may, in a forest",
        "tests/batch/test_batch_gpu.py::test_unsymmetric_entry_beside_a_penalty_on_a_device",
    ),
    # --- batches, reuse, values ------------------------------------------------------------------
    Row(
        "batch_columns_before_systems",
        f"{_BATCH}input.py",
        "if shape == (count, n) and values.ndim == 2:",
        "if shape == (count, n) and values.ndim == 2 and count != n:",
        "b of as many systems as equations is one of columns",
        f"{_OF_BATCH}::test_square_b_of_n_systems_has_one_row_each",
    ),
    Row(
        "batch_columns_of_a_group",
        f"{_BATCH}factors.py",
        "if not own and b.shape == (members.size, n):  # (n, k) here",
        "if False:",
        "columns of a group of n systems are right-hand sides of its systems",
        f"{_OF_BATCH}::test_square_b_for_a_group_of_n_systems_has_columns",
    ),
    Row(
        "batch_failures_outside_the_mask",
        f"{_BATCH}factors.py",
        "self.raise_failures(mask)",
        "self.raise_failures()",
        "systems that were not asked for are raised for",
        f"{_OF_BATCH}::test_failures_outside_the_mask_are_not_raised",
    ),
    Row(
        "batch_row_for_a_column",
        f"{_BATCH}systems.py",
        "return error.index[1]",
        "return error.index[0]",
        "the column of a value that is no number is its row",
        f"{_OF_BATCH}::test_failures_outside_the_mask_are_not_raised",
    ),
    Row(
        "batch_singles_stay",
        f"{_BATCH}systems.py",
        "for known in (self.singles, self.failures):",
        "for known in (self.failures,):",
        "a system that went alone keeps its factor when its values change",
        f"{_OF_BATCH}::test_system_that_went_alone_comes_back",
    ),
    Row(
        "batch_first_right_hand_side_alone",
        f"{_BATCH}systems.py",
        "b = on_host(B[i if B.shape[0] > 1 else 0])",
        "b = on_host(B[0])",
        "systems that are solved alone have the right-hand side of the first",
        f"{_OF_BATCH}::test_system_that_went_alone_comes_back",
    ),
    Row(
        "batch_condition_of_one_side",
        f"{_BATCH}substitute.py",
        "k, n, side = X.shape[1], X.shape[2], np.int64(op[0])",
        "k, n, side = X.shape[1], X.shape[2], np.int64(0)",
        "condition numbers of a batch are those of A for its transpose",
        f"{_OF_VERDICT}::test_condition_of_one_side_silences_no_other",
    ),
    Row(
        "batch_mask_of_the_first_systems",
        f"{_BATCH}factors.py",
        "mask[group.members]) for group in self._groups]",
        "mask[: group.members.size]) for group in self._groups]",
        "every group has the mask of the first systems",
        f"{_OF_BATCH}::test_patterns_of_their_own",
    ),
    Row(
        "batch_types_mixed",
        f"{_BATCH}api.py",
        "key = one.n, one.method, one.dtype, one.indptr.tobytes(), one.indices.tobytes()",
        "key = one.n, one.method, one.indptr.tobytes(), one.indices.tobytes()",
        "matrices of all scalar types are one group",
        f"{_OF_BATCH}::test_scalar_types_of_a_list_stay_apart",
    ),
    Row(
        "batch_pairs_not_conjugated",
        f"{_BATCH}each.py",
        "other = np.conj(b) if method.adjoint else b",
        "other = b",
        "blocks of D of Hermitian systems have other determinants",
        f"{_OF_BATCH}::test_pivot_ratio_of_hermitian_blocks_is_that_of_moduli",
    ),
    Row(
        "reuse_whatever_was_asked",
        "frontal/reuse.py",
        "                and one.asked == asked\n",
        "",
        "an analysis for one backend is that for another",
        f"{_OF_PATTERNS}::test_analysis_serves_only_what_was_asked_for",
    ),
    Row(
        "reuse_whatever_the_fallback",
        "frontal/reuse.py",
        "return matrix.n, matrix.indices.size, kind, ordering, fallback",
        "return matrix.n, matrix.indices.size, kind, ordering",
        "kind='spd' and a guess share an analysis",
        f"{_OF_PATTERNS}::test_analysis_serves_only_what_was_asked_for",
    ),
    Row(
        "solver_refines_as_ever",
        "frontal/solver.py",
        "held.factor.solve(b, trans, refine=self._refine, return_info=return_info)",
        "held.factor.solve(b, trans, return_info=return_info)",
        "the number of refinement steps of a Solver is ignored",
        f"{_OF_SOLVER}::test_refinement_of_a_solver_is_that_of_its_choice",
    ),
    Row(
        "values_nan_is_unsymmetric",
        "frontal/values.py",
        "good &= (a == b) | ((a != a) & (b != b))",
        "good &= a == b",
        "NaN in two mirrored places breaks a symmetry",
        "tests/factor/test_values.py::test_symmetry_of_values_takes_nan_for_nan",
    ),
    # --- files -----------------------------------------------------------------------------------
    Row(
        "banner_of_more_words",
        f"{_IO}banner.py",
        "if len(words) != 5:",
        "if len(words) < 5:",
        "words behind the symmetry of a banner are ignored",
        f"{_OF_MARKET}::test_declaration_that_contents_break_is_refused",
    ),
    Row(
        "skew_diagonal_passes",
        f"{_IO}triangles.py",
        '"skew-symmetric": values[on]}.get(symmetry)',
        "}.get(symmetry)",
        "a skew-symmetric file may have a diagonal",
        f"{_OF_HARWELL}::test_header_against_its_matrix_is_refused",
    ),
    Row(
        "skew_rectangle_passes",
        f"{_IO}harwell_boeing.py",
        'if kind[1] in "SHZ" and rows != columns:',
        'if kind[1] in "SH" and rows != columns:',
        "a skew-symmetric matrix may be no square",
        f"{_OF_HARWELL}::test_header_against_its_matrix_is_refused",
    ),
    Row(
        "elements_pass",
        f"{_IO}harwell_boeing.py",
        'if kind[2:] != "A" or elemental:',
        'if kind[2:] != "A":',
        "entries of elements are ignored",
        f"{_OF_HARWELL}::test_header_against_its_matrix_is_refused",
    ),
    Row(
        "last_pointer_unread",
        f"{_IO}harwell_boeing.py",
        "if indptr[-1] != header.entries:",
        "if indptr[-1] > header.entries:",
        "entries behind the last pointer are ignored",
        f"{_OF_HARWELL}::test_header_against_its_matrix_is_refused",
    ),
    Row(
        "format_before_the_line",
        f"{_IO}fortran_format.py",
        "self._column = max(self._column + step, 0)",
        "self._column = self._column + step",
        "TL goes to the line before",
        f"{_OF_HARWELL}::test_tab_to_the_left_ends_at_the_first_column",
    ),
    # --- memory and messages on a device ---------------------------------------------------------
    Row(
        "messages_too_few_for_the_solution",
        f"{_SPARSE}messages.py",
        "return tasks.between, max(tasks.messages, n), TILE * tasks.partials, n",
        "return tasks.between, tasks.messages, TILE * tasks.partials, n",
        "a solution has no more room than messages have",
        "tests/gpu/sparse/test_gpu_front_solve.py::test_solution_without_update_rows_has_room",
    ),
    Row(
        "messages_of_graphs_believed_unset",
        f"{_SPARSE}messages.py",
        "anywhen = graph or self.shared or (self.width > width and self._device.capturing())",
        "anywhen = graph or (self.width > width and self._device.capturing())",
        "solutions that a graph leaves are messages of the next solve",
        "tests/gpu/sparse/test_gpu_front_solve.py::test_solutions_of_graphs_are_no_messages",
    ),
    Row(
        "places_free_at_the_first_front",
        f"{_SPARSE}places.py",
        "free = np.maximum.reduceat(time + 1, begins)",
        "free = (time + 1)[begins]",
        "a part of the messages is free when its first front is done",
        _OF_SCHEDULE,
    ),
    Row(
        "packing_waits_for_the_last_segment",
        f"{_SPARSE}packing.py",
        "        found = max(found, free[j])\n",
        "        found = free[j]\n",
        "who takes a place waits for its last segment alone",
        _OF_SCHEDULE,
    ),
    Row(
        "streamed_tickets_of_the_first_segment",
        f"{_SPARSE}streamed/solve.py",
        "ticket = messages.tickets[len(_KERNELS) * g + q :]",
        "ticket = messages.tickets[q:]",
        "segments share tickets",
        f"{_OF_STREAMED}[spd-f8-copies]",
    ),
    Row(
        "streamed_products_not_waited_for",
        f"{_SPARSE}streamed/places.py",
        "need = clock.over[np.maximum(waits[:fronts], waits[fronts : 2 * fronts])]",
        "need = clock.over[waits[:fronts]]",
        "nobody waits for the place of L·D",
        _OF_SEGMENTS,
    ),
    # --- calls that come again, orders, one call -------------------------------------------------
    Row(
        "recorded_extent_begins_at_its_pointer",
        _RECORDED,
        "return address + low, address + high + array.itemsize",
        "return address, address + high + array.itemsize",
        "an array with negative strides begins at its first element",
        f"{_OF_AGAIN}::test_arrays_that_begin_behind_others_are_not_apart",
    ),
    Row(
        "recorded_addresses_uploaded",
        _RECORDED,
        "        if array.dtype == np.uint64:  # addresses, which are others the next time\n"
        "            self.give_up()\n",
        "",
        "addresses in uploaded lists are those of the first call",
        f"{_OF_AGAIN}::test_uploaded_addresses_make_no_record",
    ),
    Row(
        "dissection_counts_of_heavy_nodes",
        f"{_DISSECTION}grafted.py",
        "parent[column], counts[column] = column + 1, rows[k] - i",
        "parent[column], counts[column] = column + 1, rows[k]",
        "all columns of a separator's node have the count of its first",
        "tests/ordering/test_layers.py::test_tree_is_that_of_the_order",
    ),
    Row(
        "dissection_sides_marked_alike",
        f"{_DISSECTION}layers.py",
        "            mark[v] = own + MARKS * zero\n",
        "            mark[v] = own\n",
        "both sides of a separator are one part",
        "tests/ordering/test_layers.py::test_no_edge_joins_the_sides_of_a_separator",
    ),
    Row(
        "factor_at_once_norms_exchanged",
        "frontal/cpu/factor_at_once.py",
        "matrix = matrix.known(self._method, (infinity, one))",
        "matrix = matrix.known(self._method, (one, infinity))",
        "the norms of A and of its transpose are exchanged",
        "tests/factor/test_factor_at_once.py::test_factors_are_those_of_all_factorizations",
    ),
    Row(
        "hopes_never_tried_again",
        "frontal/numeric/hopes.py",
        "            self._left -= 1\n",
        "",
        "after a solution that needed refinement none is tried at once",
        "tests/factor/test_at_once.py::test_next_factors_are_passed_over_after_a_failure",
    ),
    Row(
        "hopes_of_one_failure_as_of_many",
        "frontal/numeric/hopes.py",
        "            self._skipped = 0\n",
        "            pass\n",
        "one failure among good solutions passes over fifteen factors",
        "tests/factor/test_at_once.py::test_next_factors_are_passed_over_after_a_failure",
    ),
    Row(
        "hopes_not_of_the_last_solution",
        "frontal/cpu/factor.py",
        "            made.hopeful = not made.failed\n",
        "            pass\n",
        "a factor that was passed over is never tried, however good its solutions",
        "tests/factor/test_at_once.py::"
        "test_good_solutions_of_a_factor_that_was_passed_over_are_followed_by_others",
    ),
    Row(
        "rows_of_the_largest_error_taken_for_short",
        "frontal/numeric/backward_error.py",
        "return indptr[i + 1] - indptr[i] > _LONG_ROW",
        "return False",
        "a long row with the largest error has the limit of a short one",
        "tests/factor/test_acceptance.py",
    ),
    Row(
        "refine_small_rows_before_norms",
        "frontal/factor/refine.py",
        "np.where(normwise > 1, _FIRST * normwise, errors.merit(limits))",
        "errors.merit(limits)",
        "a correction that gains digits of the norm is dropped for a small row that loses some",
        "tests/factor/test_refine.py::test_norms_are_corrected_before_small_rows",
    ),
)
