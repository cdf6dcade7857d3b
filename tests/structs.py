"""Headers of structs, made of their descriptions: ``python -m tests.structs`` writes them."""

from __future__ import annotations

from pathlib import Path

from frontal.gpu.dense import structs as dense
from frontal.gpu.runtime import jit
from frontal.gpu.sparse import structs as sparse

HEADERS = (dense.HEADER, sparse.HEADER)

if __name__ == "__main__":
    for header in HEADERS:
        Path(str(jit.folder())).joinpath(header.path).write_text(header.text(), encoding="utf-8")
