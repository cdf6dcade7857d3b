"""Calls with stacks or lists of shapes that came before: what those launched, on other arrays.

A call of a shape is checked, described and launched in the ordinary way the first time, noted the
second time, and launched from these notes from then on: some ten microseconds of the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..runtime.array import Array
from ..runtime.device import Device
from ..runtime.recorded import Recorded, Recorder
from .arguments import device_for
from .lists import Batch, Form, described

_MOST = 512  # shapes that are known
_known: dict[tuple, _Call | bool] = {}  # True: came once; False: cannot be noted


def again(
    work: Callable[..., tuple],
    name: str,
    arrays: tuple,
    options: tuple,
    overwrite: int = False,
    lists: bool = True,
) -> tuple:
    """Return ``work(device, *arrays, *options, overwrite)``, quickly for shapes seen before.

    Lists reach it as `Batch`; what comes back is a list if no `Batch` was given.

    Parameters
    ----------
    work : callable
        Returns arrays. What it does to stacks and lists depends on their shapes, strides and types
        alone, but for ``overwrite``.
    name : str
        What users call the first of the arrays.
    arrays : tuple of matrices
    options : tuple
        Hashable, or ``work`` says what is wrong with them.
    overwrite : bool or int
        Whether, or which, an input may become the result.
    lists : bool
        Whether ``work`` takes a `Batch`; else lists come as they are, each time as the first time.
    """
    device = device_for(arrays[0], name)
    plain = not any(isinstance(x, Batch) for x in arrays)
    given = _given(arrays, device, lists and not overwrite)
    results = _again(device, work, given, options, overwrite)
    if plain:
        return tuple(list(x) if isinstance(x, Batch) else x for x in results)
    return tuple(Batch(x) if isinstance(x, list) else x for x in results)


def _given(arrays: tuple, device: Device, together: bool) -> tuple:
    """Lists as `Batch` if they may be and are as they should be, else as lists."""
    if not any(isinstance(x, (list, tuple, Batch)) for x in arrays):
        return arrays
    if together:
        found = [described(x, device) if isinstance(x, (list, tuple)) else x for x in arrays]
        if all(x is not None for x in found):
            return tuple(found)
    return tuple(list(x) if isinstance(x, Batch) else x for x in arrays)


def _again(
    device: Device,
    work: Callable[..., tuple],
    arrays: tuple,
    options: tuple,
    overwrite: int,
) -> tuple:
    first = arrays[0]
    if overwrite or (getattr(first, "ndim", 0) != 3 and not isinstance(first, Batch)):
        return work(device, *arrays, *options, overwrite)
    try:
        key = (device, work, options, *[_form(x, device.xp.ndarray) for x in arrays])
        known = _known.get(key)
    except TypeError:  # not an array, or an option that is none
        return work(device, *arrays, *options, overwrite)
    inputs = [x.pointers if isinstance(x, Batch) else x for x in arrays]
    if isinstance(known, _Call):
        return known(device, inputs)
    if known is None:
        if len(_known) >= _MOST:
            _known.pop(next(iter(_known)), None)  # another thread may have been here
        _known[key] = True
    if not known:
        return work(device, *arrays, *options, overwrite)
    recorder = Recorder(device, inputs)
    try:
        results = work(recorder, *arrays, *options, overwrite)
        _known[key] = _Call.of(recorder, results) or False
    finally:
        recorder.forget()
    for x in results:
        if isinstance(x, Batch):
            x.device = device  # not the recorder
    return results


class _Call(NamedTuple):
    """A call that was noted: its launches, and of each result its form if it is a `Batch`."""

    recorded: Recorded
    forms: tuple[Form | None, ...]

    @classmethod
    def of(cls, recorder: Recorder, results: tuple) -> _Call | None:
        """Note what a call returns; None where not all of the call was noted."""
        arrays: list[Array] = []
        for x in results:
            arrays += x.memory if isinstance(x, Batch) else [x]
        recorded = recorder.recorded(arrays)
        forms = tuple(x.form if isinstance(x, Batch) else None for x in results)
        return None if recorded is None else cls(recorded, forms)

    def __call__(self, device: Device, inputs: list[Array]) -> tuple:
        made = iter(self.recorded(inputs))
        return tuple(
            [
                next(made) if form is None else Batch.at(form, device, next(made), next(made))
                for form in self.forms
            ]
        )


def _form(array: Array | Batch, kind: type) -> tuple | Form:
    """All that a call's launches depend on."""
    if isinstance(array, Batch):
        return array.form
    if not isinstance(array, kind):
        raise TypeError
    index = getattr(getattr(array, "data", None), "device_id", None)  # CuPy's Device has no hash
    return array.shape, array.strides, array.dtype, index
