"""Real matrices that other packages ship or assemble, named ``package:name``.

Power-flow Jacobians of pandapower, the example files of PyAMG, assemblies of scikit-fem. A name is
listed only where its package is installed (``pip install pandapower pyamg scikit-fem``).
"""

from __future__ import annotations

import importlib.util

import numpy as np
import scipy.sparse as sp

NAMES = {
    "pandapower": ("case118", "case1354pegase", "case2869pegase", "case9241pegase"),
    "pyamg": ("airfoil", "bar", "helmholtz_2D", "knot", "local_disc_galerkin_diffusion",
              "recirc_flow", "unit_cube", "unit_square"),
    "skfem": ("poisson_p2", "elasticity_p2", "stokes"),
}  # fmt: skip


def names() -> list[str]:
    """Return the problems of the packages that are installed."""
    found = (package for package in NAMES if importlib.util.find_spec(package))
    return [f"{package}:{name}" for package in found for name in NAMES[package]]


def read(problem: str) -> sp.csc_array | None:
    """Return the matrix of a name of `NAMES`; None for any other problem."""
    package, _, name = problem.partition(":")
    if name not in NAMES.get(package, ()):
        return None
    return sp.csc_array({"pandapower": _jacobian, "pyamg": _example, "skfem": _form}[package](name))


def _jacobian(name: str):
    """Return the Jacobian of the last Newton step of a power flow."""
    import pandapower
    import pandapower.networks

    net = getattr(pandapower.networks, name)()
    pandapower.runpp(net, numba=False)
    return net._ppc["internal"]["J"]


def _example(name: str):
    from pyamg.gallery import load_example

    return load_example(name)["A"]


def _form(name: str):
    """Return an assembly on a refined triangulation, with its boundary conditions."""
    import skfem
    from skfem.models.elasticity import lame_parameters, linear_elasticity
    from skfem.models.general import divergence
    from skfem.models.poisson import laplace, vector_laplace

    mesh = skfem.MeshTri().refined(6).with_defaults()
    if name == "poisson_p2":
        basis = skfem.Basis(mesh, skfem.ElementTriP2())
        return skfem.condense(laplace.assemble(basis), D=basis.get_dofs(), expand=False)
    vector = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTriP2()))
    if name == "elasticity_p2":
        stiffness = linear_elasticity(*lame_parameters(1e3, 0.3)).assemble(vector)
        return skfem.condense(stiffness, D=vector.get_dofs("left"), expand=False)
    pressure = vector.with_element(skfem.ElementTriP1())
    A, B = vector_laplace.assemble(vector), -divergence.assemble(vector, pressure)
    saddle = sp.block_array([[A, B.T], [B, None]], format="csr")
    fixed = np.append(vector.get_dofs().all(), A.shape[0])  # and one pressure
    return skfem.condense(saddle, D=fixed, expand=False)
