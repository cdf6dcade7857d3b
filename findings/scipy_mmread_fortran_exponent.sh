#!/usr/bin/env bash
# SciPy 1.17.1: scipy.io.mmread reads a number of a Matrix Market file up to its first character
# that C does not know, and returns that prefix without an error or a warning. Exponents with the
# letter D, or with no letter, which Fortran programs write for double precision, are dropped:
# 1.5D+03 is read as 1.5, and 0.5-100 as 0.5. Decimal commas are cut as well: 2,5 is read as 2.
# Exits 0 while this is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1
cd "$folder"
venv/bin/python - <<'PYTHON'
import io

import scipy
import scipy.io

seen = {}
for token in ("1.5E+03", "1.5D+03", "0.5-100", "2,5"):
    text = f"%%MatrixMarket matrix array real general\n1 1\n{token}\n"
    try:
        seen[token] = scipy.io.mmread(io.BytesIO(text.encode())).item()
    except ValueError as error:
        seen[token] = f"refused: {error}"
print("scipy", scipy.__version__, seen)
raise SystemExit(seen != {"1.5E+03": 1500.0, "1.5D+03": 1.5, "0.5-100": 0.5, "2,5": 2.0})
PYTHON
# Output: scipy 1.17.1 {'1.5E+03': 1500.0, '1.5D+03': 1.5, '0.5-100': 0.5, '2,5': 2.0}
