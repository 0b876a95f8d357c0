"""Repeated structure: where a sequence is the same piece many times, as the nodes of an unrolled loop are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

_WINDOWS = 9
"""Pieces of 1, 2, 4, ... so many doublings are looked for: of long ones, few are the same by chance."""

_CANDIDATES = 4
"""As many distances between equal pieces of a length are tried."""


class Repeat(NamedTuple):
    """From `start` on, `times` pieces of `period` elements that are the same."""

    start: int
    period: int
    times: int


def repeat(sequence: Sequence[Hashable], cost: Callable[[int], int], least: int = 3) -> Repeat | None:
    """The repetition that covers most of a sequence, if it is `least` times and half of it; of equal ones that of least period.

    Where pieces may begin at several places, they begin where `cost` is least: of a loop, where the fewest values go on.
    """
    number: dict[Hashable, int] = {}
    ids = [number.setdefault(element, len(number)) for element in sequence]
    best = Repeat(0, 0, 0)
    for period in sorted(_distances(ids)):
        start, length = _longest(ids, period)
        times = length // period
        if times >= least and times * period > 1.1 * best.period * best.times:
            best = _begun(start, period, length, cost, least)
    return best if best.times and 2 * best.period * best.times >= len(sequence) else None


def _distances(ids: list[int]) -> set[int]:
    """How far equal pieces are from one another, most often and over the greatest lengths."""
    distances: set[int] = set()
    width = 1
    for _ in range(_WINDOWS):
        last: dict[int, int] = {}
        weights: Counter[int] = Counter()
        for k, piece in enumerate(ids):
            if piece in last:
                weights[k - last[piece]] += k - last[piece]
            last[piece] = k
        distances.update(distance for distance, _ in weights.most_common(_CANDIDATES))
        if len(ids) <= width:
            break
        number: dict[tuple[int, int], int] = {}
        ids = [number.setdefault(pair, len(number)) for pair in zip(ids, ids[width:], strict=False)]
        width *= 2
    return distances


def _longest(ids: list[int], period: int) -> tuple[int, int]:
    """Where the longest stretch begins that repeats after this period, and how long it is."""
    start, length, begun = 0, 0, None
    for k, (a, b) in enumerate(zip(ids, ids[period:], strict=False)):
        if a != b:
            begun = None
            continue
        if begun is None:
            begun = k
        if k - begun + 1 > length:
            start, length = begun, k - begun + 1
    return start, length + period if length else 0


def _begun(start: int, period: int, length: int, cost: Callable[[int], int], least: int) -> Repeat:
    """The repetition in a stretch, from the best place on; one piece less is no matter."""
    shifts = [s for s in range(period) if (length - s) // period >= max(least, length // period - 1)]
    shift = min(shifts, key=lambda s: (cost(start + s + period), s))
    return Repeat(start + shift, period, (length - shift) // period)
