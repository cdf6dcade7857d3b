#!/usr/bin/env bash
# SciPy 1.17.1: scipy.io.hb_write declares a format for values that is one column wider than the
# fields it writes: (3E25.16) above fields of 24 columns. SciPy's own reader goes by blanks and does
# not notice; a program that reads by the format, as Fortran does, takes the sign of the third value
# of a line into the field of the second. Pointers and row indices have the widths of their formats.
# Exits 0 while this is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1
cd "$folder"
venv/bin/python - <<'PYTHON'
import numpy as np
import scipy
import scipy.io
import scipy.sparse as sp

scipy.io.hb_write("a.rua", sp.csc_matrix(np.diag([1.0, 2.0, -3.0])))
lines = open("a.rua").read().splitlines()
format_, values = lines[3][32:52].strip(), lines[-1] or lines[-2]
field = values[25:50]
print("scipy", scipy.__version__, format_, len(values) // 3, repr(field))
raise SystemExit((format_, len(values), field[-1]) != ("(3E25.16)", 72, "-"))
PYTHON
# Output: scipy 1.17.1 (3E25.16) 24 ' 2.0000000000000000E+00 -'
