"""The table of fallbacks."""

from frontal.factor import fallbacks


def test_fallbacks_of_each_outcome_end_without_condition():
    """An outcome that no line of the table handles would repeat the same attempt forever."""
    last = {outcome: condition for outcome, condition, _ in fallbacks.FALLBACKS}
    assert set(last) == set(fallbacks.OUTCOMES)
    assert set(last.values()) == {fallbacks._always}
