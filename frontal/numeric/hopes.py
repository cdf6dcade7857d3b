"""Which factors of a pattern are tried for solutions that need no refinement."""

_MOST = 15  # factors that are passed over at once


class Hopes:
    """Whether a factor's solutions are likely good without refinement, by those of the last ones.

    A try that fails costs a solution, and values of one pattern are mostly alike: after one failure
    the next factor is passed over, after two in a row the next three, and so on.
    """

    def __init__(self) -> None:
        self._left = self._passed = 0
        self._tried = False  # the last one, and nothing is known of a failure

    def next(self) -> bool:
        """Whether the next factor is to be tried."""
        if self._left:
            self._left -= 1
            return False
        if self._tried:
            self._passed = 0
        self._tried = True
        return True

    def failed(self) -> None:
        """Take note of a solution that needed refinement."""
        self._tried = False
        self._left = self._passed = min(2 * self._passed + 1, _MOST)
