"""Tuned numbers by device, in small JSON files: the user's numbers override the shipped ones.

A file is named after the device and maps routine to field to value, for the tuning dataclasses of
``launch``. Fields that a file does not contain have the default of the dataclass.
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

trial: Numbers = {}  # values that a sweep is timing; override all files


def file_name(device_name: str) -> str:
    """Return the file name of a device.

    Examples
    --------
    >>> file_name("NVIDIA H200")
    'nvidia_h200.json'
    """
    return re.sub(r"\W+", "_", device_name.strip().lower()) + ".json"


def folder() -> Path:
    """Return the folder of the user's files: ``FRONTAL_CACHE_DIR``, else in the user's cache."""
    home = os.environ.get("FRONTAL_CACHE_DIR")
    if home:
        return Path(home) / "tuned"
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(base or Path("~/.cache").expanduser()) / "frontal" / "tuned"


def numbers(device_name: str) -> Numbers:
    """Return the numbers by routine: shipped, overridden by the user's, then by `trial`."""
    merged: Numbers = {}
    name = file_name(device_name)
    for source in (files(__package__).joinpath(name), folder() / name):
        for routine, values in _read(source).items():
            merged.setdefault(routine, {}).update(values)
    for routine, values in trial.items():
        merged.setdefault(routine, {}).update(values)
    return merged


def _read(source: Traversable) -> Numbers:
    """Return the numbers of a file; none if it is missing, or invalid (with a log message)."""
    try:
        routines = json.loads(source.read_text(encoding="utf-8"))["routines"]
        return {routine: dict(values) for routine, values in routines.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("the tuned numbers in %s are ignored: %s", source, error)
        return {}


def write(device_name: str, routines: Numbers, about: dict[str, object], to: Path) -> None:
    """Write the file of a device atomically, so that no reader sees a partial file."""
    to.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"device": device_name, **about, "routines": routines}, indent=2)
    temporary = to.with_suffix(f".{os.getpid()}")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(to)
