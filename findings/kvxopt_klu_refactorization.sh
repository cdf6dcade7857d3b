#!/usr/bin/env bash
# kvxopt 1.3.3.3: the docstring of klu.numeric says that a previous numeric factorization can be
# given, for a refactorization with its pivots. The function accepts two arguments only, so each call
# seeks pivots anew. The wheel's libklu has klu_refactor: it can be called through ctypes.
# Exits 0 while this is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 kvxopt==1.3.3.3
cd "$folder"
venv/bin/python - <<'PYTHON'
import ctypes
from importlib.metadata import version
from pathlib import Path

import kvxopt
from kvxopt import klu, spmatrix

A = spmatrix([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 0, 1, 1], (2, 2))
symbolic = klu.symbolic(A)
numeric = klu.numeric(A, symbolic)
try:
    klu.numeric(A, symbolic, numeric)
    refused = "accepted"
except TypeError as error:
    refused = str(error)
promised = "previous numeric factorization" in " ".join(klu.numeric.__doc__.split())
libraries = Path(kvxopt.__file__).parent.with_name("kvxopt.libs").glob("libklu-*")
has_refactor = hasattr(ctypes.CDLL(str(next(libraries))), "klu_refactor")
print("kvxopt", version("kvxopt"), promised, refused, has_refactor)
raise SystemExit(not (promised and "exactly 2 arguments" in refused and has_refactor))
PYTHON
# Output: kvxopt 1.3.3.3 True function takes exactly 2 arguments (3 given) True
