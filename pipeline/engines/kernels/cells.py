"""Aggregates in compiled loops: what all trends that end at one place add up to.

An aggregate is a block of numbers a part (how many trends there are, then each COUNT and SUM over them) and a rank a
MIN or MAX. Its slots are aggregates of their own, of trends that began at different places.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.numbers import Numbers, clear, is_zero, plus, plus_one, plus_product, plus_times, trim
from pipeline.events import Array

NO_MINIMUM, NO_MAXIMUM = 2**31 - 1, -1  # ranks that stand for no value


class Cells(NamedTuple):
    """Aggregates; those of number `a` have the blocks from `a * parts` on."""

    numbers: Numbers
    parts: int
    rank: Array  # per aggregate, MIN or MAX, and slot
    least: Array  # per rank: whether it is a MIN


class Weights(NamedTuple):
    """What each event adds to the trends that it ends."""

    plain: Array  # states whose events add nothing but the trends' number
    sums: Array  # per part but the first: which row of `digit`; -1: a COUNT
    part_counts: Array  # per part but the first, and state
    present: Array  # per part but the first, and event: whether a COUNT counts it
    digit: Array  # per SUM, digit and event
    rank_counts: Array  # per rank and state
    value: Array  # per rank and event


def clear_cell(c: Cells, a: int) -> None:
    """Make an aggregate that of no trend."""
    for block in range(a * c.parts, (a + 1) * c.parts):
        clear(c.numbers, block)
    for r in range(len(c.least)):
        none = NO_MINIMUM if c.least[r] else NO_MAXIMUM
        for slot in range(c.numbers.slots):
            c.rank[a, r, slot] = none


def add_cell(c: Cells, a: int, b: int) -> None:
    """Add the trends of another aggregate."""
    for part in range(c.parts):
        plus(c.numbers, a * c.parts + part, b * c.parts + part)
    for r in range(len(c.least)):
        for slot in range(c.numbers.slots):
            join_rank(c, a, r, slot, c.rank[b, r, slot])


def join_rank(c: Cells, a: int, r: int, slot: int, rank: int) -> None:
    """Take another value into a MIN or MAX."""
    if c.least[r]:
        c.rank[a, r, slot] = min(c.rank[a, r, slot], rank)
    else:
        c.rank[a, r, slot] = max(c.rank[a, r, slot], rank)


def add_trend(c: Cells, a: int, slot: int) -> None:
    """Add one trend without events."""
    plus_one(c.numbers, a * c.parts, slot)


def has_trend(c: Cells, a: int, slot: int) -> bool:
    """Whether a slot has any trend."""
    return not is_zero(c.numbers, a * c.parts, slot)


def is_empty_cell(c: Cells, a: int) -> bool:
    """Whether an aggregate was never added to."""
    return bool(c.numbers.size[a * c.parts] == 0)


def extend_cell(c: Cells, w: Weights, a: int, event: int, state: int) -> None:
    """Let an event contribute to every trend that ends at it."""
    if w.plain[state]:
        return
    first = a * c.parts
    for part in range(1, c.parts):
        if w.part_counts[part - 1, state]:
            row = w.sums[part - 1]
            if row >= 0:
                plus_product(c.numbers, first + part, first, w.digit[row, :, event], w.digit.shape[1])
            elif w.present[part - 1, event]:
                plus(c.numbers, first + part, first)
    for r in range(len(c.least)):
        if w.rank_counts[r, state]:
            for slot in range(c.numbers.slots):
                if has_trend(c, a, slot):
                    join_rank(c, a, r, slot, w.value[r, event])


def add_product(c: Cells, a: int, b: int, f: Cells, k: int, slot: int) -> None:
    """Add the trends of b, each followed by every one of those of a slot of k."""
    parts = c.parts
    plus_times(c.numbers, a * parts, b * parts, f.numbers, k * parts, slot)
    for part in range(1, parts):
        plus_times(c.numbers, a * parts + part, b * parts + part, f.numbers, k * parts, slot)
        plus_times(c.numbers, a * parts + part, b * parts, f.numbers, k * parts + part, slot)
    if len(c.least) > 0 and has_trend(f, k, slot):
        for s in range(c.numbers.slots):
            if has_trend(c, b, s):
                for r in range(len(c.least)):
                    join_rank(c, a, r, s, c.rank[b, r, s])
                    join_rank(c, a, r, s, f.rank[k, r, slot])


def trim_cell(c: Cells, a: int) -> None:
    """Carry, and give up leading zeros."""
    for block in range(a * c.parts, (a + 1) * c.parts):
        trim(c.numbers, block)


HELPERS = (clear_cell, join_rank, add_cell, add_trend, has_trend, is_empty_cell, extend_cell, add_product, trim_cell)
INLINED = (clear_cell, join_rank, add_cell, add_trend, is_empty_cell)
