"""The command line advises its own options only, and refuses output files before it works."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from frontal import errors, gpu
from frontal import io as files
from frontal.cli import commands as cli
from frontal.cli import output
from frontal.cli.wording import as_options
from frontal.io import write_matrix, write_vector

OF_A_SOLVE = {"matrix", "rhs", "kind", "ordering", "backend", "output", "report", "json"}
ERRORS = [
    errors.SingularMatrixError.structural(3, np.array([1])),
    errors.SingularMatrixError.stored_zeros(3, np.array([1])),
    errors.SingularMatrixError.of_rank(3, np.array([1])),
    errors.SingularMatrixError.numerical(1, dtype="float32"),
    errors.SolutionOverflowError("float32"),
    errors.NotPositiveDefiniteError(2),
    errors.NonFiniteInputError("A", (1, 2), np.nan),
    errors.FactorMemoryError(2**40, 2**30),
    gpu.DeviceNotFoundError(f"CuPy finds no device. Try: {gpu._INSTALL}"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("options", [OF_A_SOLVE, {"backend"}, set()], ids=["solve", "warm", "info"])
def test_no_argument_of_the_library_is_advised(error, options):
    text = as_options(str(error), options)
    assert re.findall(r"\b\w+='?\w+", text) == []
    assert re.findall(r"\w\(", text) == []
    assert set(re.findall(r"--(\w+)", text)) <= options
    assert text[:40] == str(error)[:40]
    assert not text.endswith((" or", ",", ":", ". "))


def test_advice_in_the_words_of_a_command():
    said = {type(e).__name__: as_options(str(e), OF_A_SOLVE) for e in ERRORS}
    assert said["NotPositiveDefiniteError"].endswith(
        "Try: --kind symmetric or --kind hermitian (LDL^T or LDL^H of an indefinite matrix)"
    )
    assert said["NonFiniteInputError"].endswith("(b) memory that was never filled")
    assert said["FactorMemoryError"].endswith(
        "Try: --ordering dissection, --ordering nesdis or --backend cpu if the GPU is too small "
        "(--backend auto falls back to it)"
    )
    assert said["DeviceNotFoundError"].endswith("'cupy-cuda12x[ctk]'), or use --backend cpu")
    of_rank = as_options(str(ERRORS[2]), OF_A_SOLVE)
    assert of_rank.endswith("Try: fix these unknowns or remove dependent equations")


def test_errors_and_warnings_of_a_command(tmp_path, capsys):
    ill = sp.csc_array([[1.0, 1.0], [1.0, 1.0 + 1e-14]])
    cases = {"singular": sp.csc_array(np.ones((3, 3))), "ill": ill}
    for name, A in cases.items():
        write_matrix(tmp_path / f"{name}.mtx", A)
        cli.main(["solve", str(tmp_path / f"{name}.mtx")])
        err = capsys.readouterr().err
        assert "Try: " in err
        assert "=" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "poisson2d:5", "-o", "{tmp}/nodir/x.npy"],
        ["analyze", "poisson2d:5", "--plot", "{tmp}/nodir/fill.png"],
        ["bench", "poisson2d:5", "--plot", "{tmp}/nodir/chart.svg"],
        ["solve", "poisson2d:5", "-o", "{tmp}/x.xyz"],
        ["analyze", "poisson2d:5", "--plot", "{tmp}/x.xyz"],
    ],
)
def test_wrong_output_is_found_before_the_work(tmp_path, capsys, monkeypatch, arguments):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    monkeypatch.setattr(cli, "_read", lambda *_: pytest.fail("the matrix was read"))
    assert cli.main([part.format(tmp=tmp_path) for part in arguments]) == 1
    missing = f"cannot be written: there is no folder {tmp_path / 'nodir'}"
    wrong = missing if "nodir" in arguments[-1] else "x.xyz has an unknown file extension"
    assert wrong in capsys.readouterr().err


def test_folder_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "x.npy").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        output.require_vector(str(tmp_path / "x.npy"))
    output.require_folder(str(tmp_path / "new" / "a.json"), create=True)
    with pytest.raises(FileNotFoundError):
        output.require_folder(str(tmp_path / "x.txt" / "a.json"))


def test_endings_are_those_that_can_be_written(tmp_path):
    for ending in output.VECTORS:
        write_vector(tmp_path / f"x{ending}", np.ones(2))
        assert files.read_vector(tmp_path / f"x{ending}").tolist() == [1, 1]
    with pytest.raises(ValueError, match="unknown file extension"):
        write_vector(tmp_path / "x.rb", np.ones(2))
