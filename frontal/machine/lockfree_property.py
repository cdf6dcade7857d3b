"""Properties computed once for each instance, without a lock.

Before Python 3.12 a `functools.cached_property` has one lock for all instances, held while a value
is computed: threads with factors of their own wait for each other, and a process that is forked
meanwhile waits for ever. Two threads that ask at once may both compute a value, which is the same.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class _Unlocked(functools.cached_property):
        """As Python 3.12's."""

        def __get__(self, instance: object, owner: type | None = None) -> object:
            """The value of an instance; the property itself where the class is asked."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]

    cached_property = _Unlocked
