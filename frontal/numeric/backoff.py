"""Choice of the factors or solves that try the fast path, which does not refine solutions."""

_MAX_SKIPPED = 15  # consecutive factors or solves that do not try, after 4 or more failures


class Backoff:
    """Exponential backoff of the fast path over the factors of one pattern, or solves of a factor.

    A failed try costs one solve, and factors of one pattern mostly behave alike. After 1, 2, 3, 4
    failures in a row the next 1, 3, 7, 15 do not try.
    """

    def __init__(self) -> None:
        self._remaining = self._skipped = 0
        self._tried = False  # the last factor tried and has not failed

    def should_try(self) -> bool:
        """Return whether the next one tries."""
        if self._remaining:
            self._remaining -= 1
            return False
        if self._tried:
            self._skipped = 0
        self._tried = True
        return True

    def record_failure(self) -> None:
        """Record a solution that was no use."""
        self._tried = False
        self._remaining = self._skipped = min(2 * self._skipped + 1, _MAX_SKIPPED)
