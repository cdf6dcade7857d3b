"""Kernels that are ready to be launched, again and again."""

from __future__ import annotations

from typing import Any, NamedTuple


class Launch(NamedTuple):
    """A kernel with all that it is called with."""

    kernel: Any
    blocks: int
    threads: int
    arguments: tuple[Any, ...]
    shared: int = 0

    def __call__(self) -> None:
        """Enqueue the kernel."""
        self.kernel((self.blocks,), (self.threads,), self.arguments, self.shared)
