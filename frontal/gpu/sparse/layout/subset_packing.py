"""Packing of arrays of solves into the memory of factorizations, and additional memory for them."""

from __future__ import annotations

from itertools import combinations

_ALIGNED = 256  # bytes to which a device aligns allocations


def packed_subset(sizes: list[int], room: int) -> tuple[list[int | None], int]:
    """Return offsets of the arrays that fill a memory best, None for others, and the end.

    Examples
    --------
    >>> packed_subset([300, 600, 100], 1024)
    ([None, 0, 768], 1024)
    """
    padded = [aligned(size) for size in sizes]
    best: tuple[int, ...] = ()
    for count in range(1, len(sizes) + 1):
        for chosen in combinations(range(len(sizes)), count):
            taken = sum(padded[i] for i in chosen)
            if sum(padded[i] for i in best) < taken <= room // _ALIGNED * _ALIGNED:
                best = chosen
    places: list[int | None] = [None] * len(sizes)
    end = 0
    for i in best:
        places[i], end = end, end + padded[i]
    return places, end


def worth_having(sizes: list[int], room: int, most: int) -> int:
    """Return the additional bytes, at most `most`, that let the most bytes of arrays fit.

    An additional byte counts as two, since solves for few right-hand sides do not use it.

    Examples
    --------
    >>> worth_having([300, 600, 100], 1000, 64), worth_having([300, 600, 100], 800, 64)
    (24, 0)
    """

    def gain(more: int) -> int:
        places, _ = packed_subset(sizes, room + more)
        inside = (size for size, place in zip(sizes, places, strict=True) if place is not None)
        return sum(inside) - 2 * more

    padded = [aligned(size) for size in sizes]
    ends = (sum(some) for count in range(len(sizes) + 1) for some in combinations(padded, count))
    useful = sorted(end - room for end in ends if 0 < end - room <= most)
    return max([0, *useful], key=gain) if useful else 0


def aligned(size: int) -> int:
    """Return the bytes that an array occupies."""
    return -(-size // _ALIGNED) * _ALIGNED
