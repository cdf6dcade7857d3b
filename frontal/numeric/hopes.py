"""Which factors of a pattern are tried for solutions that need no refinement."""

_PASSED_OVER = 15  # factors, after one whose solution needed it


class Hopes:
    """Whether a factor's solutions are likely good without refinement, by those of the last ones.

    A try that fails costs a solution, and values of one pattern are mostly alike.
    """

    def __init__(self) -> None:
        self._left = 0

    def next(self) -> bool:
        """Whether the next factor is to be tried."""
        if self._left == 0:
            return True
        self._left -= 1
        return False

    def failed(self) -> None:
        """Take note of a solution that needed refinement: the next few factors are passed over."""
        self._left = _PASSED_OVER
