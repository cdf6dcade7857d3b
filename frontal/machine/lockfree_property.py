"""Properties computed once for each instance, without a lock.

Before Python 3.12 a `functools.cached_property` has one lock for all instances, held while a value
is computed: threads with separate factors wait for each other, and a process forked meanwhile
deadlocks. Without the lock two threads may both compute the same value.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class _Unlocked(functools.cached_property):
        """The `functools.cached_property` of Python 3.12."""

        def __get__(self, instance: object, owner: type | None = None) -> object:
            """Return the value of an instance; the property itself for the class."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]

    cached_property = _Unlocked
