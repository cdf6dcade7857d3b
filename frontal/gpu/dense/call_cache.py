"""Cache of the launches of calls with stacks or lists, by argument shape.

The first call with a shape is checked, described and launched, the second one is also recorded,
and later ones replay the recorded launches on other arrays: about ten microseconds of host time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..runtime.array import Array
from ..runtime.device import Device
from ..runtime.launch_plan import LaunchPlan, LaunchRecorder, disjoint
from .lists import Arrays, Batch, Form, device_for

_MAX_SHAPES = 512  # cached calls; the oldest is dropped first
_plans: dict[tuple, _CachedCall | bool] = {}  # True: called once; False: cannot be recorded


def cached_call(
    work: Callable[..., tuple],
    names: Sequence[str],
    arrays: tuple,
    options: tuple,
    overwrite: int = False,
) -> tuple:
    """Return ``work(device, *arrays, *options, overwrite)``, replayed for shapes seen before.

    Lists are passed to ``work`` and returned as `Batch`.

    Parameters
    ----------
    work : callable
        Returns arrays. Its launches depend only on the shapes, strides and types of the arrays,
        except with ``overwrite``.
    names : sequence of str
        Names of the arrays in error messages.
    arrays : tuple of matrices, or None for omitted ones
    options : tuple
        Hashable; otherwise ``work`` raises the error.
    overwrite : bool or int
        Whether, or as bits which, inputs may be overwritten by results.
    """
    device = device_for(arrays[0], names[0])
    kind = device.xp.ndarray
    if {*map(type, arrays)} <= {kind, type(None)}:
        return _replay_or_call(device, work, arrays, options, overwrite)
    fit = kind, Batch, type(None)
    inputs = [
        x if isinstance(x, fit) else Batch.from_list(name, x, device)
        for name, x in zip(names, arrays, strict=True)
    ]
    return _replay_or_call(device, work, inputs, options, overwrite)


def _replay_or_call(
    device: Device,
    work: Callable[..., tuple],
    arrays: Sequence,
    options: tuple,
    overwrite: int,
) -> tuple:
    listed = type(arrays[0]) is Batch
    if overwrite if listed else arrays[0].ndim != 3:  # addresses in lists must be checked
        return work(device, *arrays, *options, overwrite)
    forms = [*map(_form, arrays)]
    inputs = [x.pointers if type(x) is Batch else x for x in arrays if x is not None]
    places = device.pointers(inputs)
    if len(set(places)) < len(places) and not overwrite:
        inputs, places = _without_duplicates(inputs, places, arrays, forms)
    key = (device, work, options, overwrite, *forms)
    try:
        plan = _plans.get(key)
    except TypeError:  # an option that is not hashable
        return work(device, *arrays, *options, overwrite)
    if overwrite and not disjoint(places, inputs):
        return work(device, *arrays, *options, overwrite)
    if isinstance(plan, _CachedCall):
        return plan(device, inputs, places)
    if plan is None:
        if len(_plans) >= _MAX_SHAPES:
            _plans.pop(next(iter(_plans)), None)  # another thread may have removed it
        _plans[key] = True
    if not plan:
        return work(device, *arrays, *options, overwrite)
    recorder = LaunchRecorder(device, inputs)
    try:
        results = work(recorder, *arrays, *options, overwrite)
        _plans[key] = _CachedCall.from_results(recorder, inputs, results) or False
    finally:
        recorder.forget()
    for x in results:
        if isinstance(x, Batch):
            x.device = device  # not the recorder
    return results


def _without_duplicates(
    inputs: list[Array], places: list[int], arrays: Sequence, forms: list
) -> tuple[list[Array], list[int]]:
    """Return distinct inputs and addresses; add to each form the index of its first occurrence."""
    present = [k for k, x in enumerate(arrays) if x is not None]
    views = [(place, forms[k]) for place, k in zip(places, present, strict=True)]
    firsts = [views.index(x) for x in views]
    for k, first in zip(present, firsts, strict=True):
        forms[k] = forms[k], first
    distinct = [i for i, first in enumerate(firsts) if i == first]
    return [inputs[i] for i in distinct], [places[i] for i in distinct]


class _CachedCall(NamedTuple):
    """A recorded call: its launches, and the kinds of its results.

    A kind is the form of a `Batch`, the index of an input that is overwritten, or None for an
    array; there are none if all results are arrays.
    """

    recorded: LaunchPlan
    results: tuple[Form | int | None, ...]

    @classmethod
    def from_results(
        cls, recorder: LaunchRecorder, inputs: list[Array], results: tuple
    ) -> _CachedCall | None:
        """Record the results of a call; return None if the recording is not complete."""
        arrays: list[Array] = []
        kinds: list[Form | int | None] = []
        begins = [recorder.pointer(x) for x in inputs]
        for x in results:
            if isinstance(x, Batch):
                arrays += x.memory
                kinds.append(x.form)
            elif recorder.pointer(x) in begins:
                kinds.append(begins.index(recorder.pointer(x)))
            else:
                arrays.append(x)
                kinds.append(None)
        recorded = recorder.recorded(arrays)
        special = any(kind is not None for kind in kinds)
        return None if recorded is None else cls(recorded, tuple(kinds) if special else ())

    def __call__(self, device: Device, inputs: list[Array], places: list[int]) -> tuple:
        arrays = self.recorded(places)
        if not self.results:
            return arrays
        memory, outputs = iter(arrays), []
        for kind in self.results:
            if isinstance(kind, Form):
                outputs.append(Batch.at(kind, device, next(memory), next(memory)))
            else:
                outputs.append(next(memory) if kind is None else inputs[kind])
        return tuple(outputs)


def _form(array: Arrays | None) -> object:
    """Return all properties of an array that the launches of a call depend on."""
    if array is None:
        return None
    return array.form if type(array) is Batch else (array.shape, array.strides, array.dtype)
