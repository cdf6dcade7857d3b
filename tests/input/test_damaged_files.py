"""Random damage to files of all formats: refused, or read as slow readers in Python read it."""

from __future__ import annotations

import warnings

from tests.input.damaged_files import run


def test_damaged_files_are_refused_or_read_exactly(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what NumPy says of damaged headers
        outcomes, examples = run(500, 11, tmp_path)
    assert outcomes.keys() == {"refused", "same"}, examples
    assert outcomes["same"] > 20
