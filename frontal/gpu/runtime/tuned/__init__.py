"""Tuned numbers by device: the user's own over the shipped ones; small JSON files.

A file is named by the device and maps routine to field to value, for the tuning dataclasses of
``launch``. What a file does not name keeps the dataclass's default.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

log = logging.getLogger("frontal")
Numbers = dict[str, dict[str, object]]

trial: Numbers = {}  # what a sweep tries at the moment; goes before any file


def file_name(device_name: str) -> str:
    """Name of a device's file.

    Examples
    --------
    >>> file_name("NVIDIA H200")
    'nvidia_h200.json'
    """
    return re.sub(r"\W+", "_", device_name.strip().lower()) + ".json"


def folder() -> Path:
    """Where the user's files are: ``FRONTAL_CACHE_DIR``, else the user's cache folder."""
    home = os.environ.get("FRONTAL_CACHE_DIR")
    if home:
        return Path(home) / "tuned"
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(base or Path("~/.cache").expanduser()) / "frontal" / "tuned"


def numbers(device_name: str) -> Numbers:
    """Return the numbers by routine: shipped, then the user's, then those on trial."""
    merged: Numbers = {}
    name = file_name(device_name)
    for source in (files(__package__).joinpath(name), folder() / name):
        for routine, values in _read(source).items():
            merged.setdefault(routine, {}).update(values)
    for routine, values in trial.items():
        merged.setdefault(routine, {}).update(values)
    return merged


def _read(source: Traversable) -> Numbers:
    """Return a file's numbers; none where it is absent, or broken (a log line says so)."""
    try:
        routines = json.loads(source.read_text(encoding="utf-8"))["routines"]
        return {routine: dict(values) for routine, values in routines.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("tuned numbers in %s are left aside: %s", source, error)
        return {}


def write(device_name: str, routines: Numbers, about: dict[str, object], to: Path) -> None:
    """Write a device's file in one step, so that a reader never finds half of it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"device": device_name, **about, "routines": routines}, indent=2)
    temporary = to.with_suffix(f".{os.getpid()}")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(to)
