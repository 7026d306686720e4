"""Two comparisons by divide and conquer: when half of the times are done, what they add to the other half.

After the m-th time, with 2^k the largest power of two that divides m, the last 2^k times are added to the next 2^k: so
every pair of times is looked at once. The events of both sides are sorted by the first comparison, and a Fenwick tree
answers the second.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, add_cell, is_empty_cell
from pipeline.engines.kernels.fenwick import (
    ROW,
    SOURCE,
    TARGET,
    X_CODE,
    X_KEY,
    Y_BOUND,
    Y_CODE,
    Keys,
    Trees,
    forget,
    look_up,
    read,
    sort_distinct,
    store,
)
from pipeline.events import Array

FEW_PAIRS = 256  # are compared one by one
EVENTS = 2**32  # more than there are


class Halves(NamedTuple):
    """The lookups that are answered so, what they compare first, and room for sorting."""

    lookup: Array
    x: Array  # per row and event: its own value, which must be below the other's
    y: Array
    earlier: Array
    later: Array
    moment: Array  # where the times of the block begin, and the last one ends
    states: int  # each event of the block has so many cells


def find_moments(h: Halves, time: Array, low: int, high: int) -> None:
    """Note where the times of a block begin."""
    count = 0
    for at in range(low, high):
        if at == low or time[at] != time[at - 1]:
            h.moment[count] = at
            count += 1
    h.moment[count] = high


def conquer(
    h: Halves, x: Keys, t: Trees, c: Cells, symbol: Array, member: Array, low: int, high: int, cell: int, done: int
) -> int:
    """Add what so many times of a block, the last ones of which are new, add to later ones; the steps taken."""
    half = done & -done
    begin, middle, last = h.moment[done - half], h.moment[done], done
    while last < done + half and h.moment[last] < high:
        last += 1
    end = h.moment[last]
    for at in range(len(h.lookup)):
        lookup = h.lookup[at]
        row, source, target = x.lookup[lookup, ROW], x.lookup[lookup, SOURCE], x.lookup[lookup, TARGET]
        earlier = later = 0
        for event in range(begin, middle):
            stored = member[symbol[event], source] and read(x, row, X_CODE, event) >= 0
            if stored and not is_empty_cell(c, cell + (event - low) * h.states + source):
                h.earlier[earlier] = h.x[row, event] * EVENTS + event
                earlier += 1
        for event in range(middle, end):
            if earlier > 0 and member[symbol[event], target] and read(x, row, Y_CODE, event) >= 0:
                h.later[later] = h.y[row, event] * EVENTS + event
                later += 1
        if earlier * later <= FEW_PAIRS:
            for one in range(earlier):
                for two in range(later):
                    first, second = h.earlier[one] % EVENTS, h.later[two] % EVENTS
                    if (
                        h.x[row, first] < h.y[row, second]
                        and read(x, row, X_CODE, first) == read(x, row, Y_CODE, second)
                        and read(x, row, X_KEY, first) < read(x, row, Y_BOUND, second)
                    ):
                        stored_cell = cell + (first - low) * h.states + source
                        add_cell(c, cell + (second - low) * h.states + target, stored_cell)
            continue
        sort_distinct(h.earlier, 0, earlier)
        sort_distinct(h.later, 0, later)
        count = 0
        for two in range(later):
            second = h.later[two] % EVENTS
            while count < earlier and h.earlier[count] // EVENTS < h.y[row, second]:
                first = h.earlier[count] % EVENTS
                store(x, t, c, lookup, first, cell + (first - low) * h.states + source)
                count += 1
            look_up(x, t, c, lookup, second, cell + (second - low) * h.states + target)
        for one in range(count):
            forget(x, t, c, lookup, h.earlier[one] % EVENTS)
    return int(end - begin) * len(h.lookup)


HELPERS = (find_moments, conquer)
