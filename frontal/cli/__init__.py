"""The command line; see `frontal.cli.commands`."""

from __future__ import annotations

from .commands import main

__all__ = ["main"]
