"""Updates of factors on a GPU are refused; solutions with a changed matrix are not."""

import numpy as np
import pytest

import frontal
from frontal import problems

pytestmark = pytest.mark.usefixtures("gpu_backend")


@pytest.mark.parametrize("problem", [problems.poisson2d, problems.convdiff2d])
def test_changes_of_a_factor_on_a_device(problem):
    A, b, C = problem(9), np.ones(81), np.zeros((81, 2))
    C[[3, 4], 0], C[7, 1] = (1, -1), 2
    factor = frontal.factorize(A, backend="gpu")
    assert factor.info["backend"] == "gpu"
    for change in (factor.update, factor.downdate, lambda C: factor.rowdel(3)):
        with pytest.raises(ValueError, match="solve_plus"):
            change(C)
    x, info = factor.solve_plus(b, C, return_info=True)
    assert np.allclose(A @ x + C @ (C.T @ x), b)
    assert info.backward_error <= 1e-15
    if problem is problems.poisson2d:
        assert np.allclose(factor.to_cpu().update(C).solve(b), x)
