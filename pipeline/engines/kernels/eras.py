"""Fenwick trees over the keys of an era: as fenwick.py has them, for windows that slide over a partition.

An era is as long as some windows. Its trees have a cell a key that its own events have, or that trends of windows
which are still open have: what is stored for these goes on into the next era's trees.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.fenwick import (
    ROW,
    SOURCE,
    SPARSE,
    X_CODE,
    X_KEY,
    Y_BOUND,
    Y_CODE,
    Keys,
    read,
    sort_distinct,
)
from pipeline.engines.kernels.sums import Sums, add_all, clear_slot, clear_slots, empty, subtract_all, trim_all
from pipeline.events import Array

# Of a lookup's trees: the first cell, how many there are, the least key, how many keys there are from it to the
# greatest (0: too many for a table of them), and where that table begins.
FIRST, SIZE, LEAST, SPAN, TABLE = range(5)


class Eras(NamedTuple):
    """Where the trees of an era are; they take turns with those of the era before."""

    tree: Array  # per lookup
    key: Array  # per cell
    unsorted: Array  # the keys of a lookup, as they come
    table: Array  # per lookup and key, from the least on: how many cells are for smaller ones
    cells: int  # of one era; the other's follow


def rank(t: Eras, lookup: int, key: int) -> int:
    """How many cells of a lookup are for smaller keys."""
    size, span = t.tree[lookup, SIZE], t.tree[lookup, SPAN]
    if span > 0:
        at = key - t.tree[lookup, LEAST]
        if at < 0:
            return 0
        return int(size if at >= span else t.table[t.tree[lookup, TABLE] + at])
    first = t.tree[lookup, FIRST]
    low = 0
    while low < size:
        middle = (low + size) // 2
        if t.key[first + middle] < key:
            low = middle + 1
        else:
            size = middle
    return low


def one_code(x: Keys, row: int) -> bool:
    """Whether all events have the same code, so that there is one tree."""
    return bool(x.segment_begin[row + 1] - x.segment_begin[row] == 2)


def keep(x: Keys, t: Eras, n: Sums, lookup: int, event: int, a: int) -> None:
    """Add an event's aggregate to the tree of its code."""
    row = x.lookup[lookup, ROW]
    code = read(x, row, X_CODE, event)
    if code >= 0:
        begin, end = 0, t.tree[lookup, SIZE]
        if not one_code(x, row):
            segment = x.segment_begin[row] + code
            begin, end = rank(t, lookup, x.segment[segment]), rank(t, lookup, x.segment[segment + 1])
        at = rank(t, lookup, read(x, row, X_KEY, event)) - begin
        first = t.tree[lookup, FIRST] + begin
        while begin + at < end:
            add_all(n, first + at, a)
            at |= at + 1


def find(x: Keys, t: Eras, n: Sums, lookup: int, event: int, a: int) -> None:
    """Add up the aggregates of the stored events that may come before an event."""
    row = x.lookup[lookup, ROW]
    code = read(x, row, Y_CODE, event)
    if code >= 0:
        begin = 0 if one_code(x, row) else rank(t, lookup, x.segment[x.segment_begin[row] + code])
        count = rank(t, lookup, read(x, row, Y_BOUND, event)) - begin
        first = t.tree[lookup, FIRST] + begin
        while count > 0:
            add_all(n, a, first + count - 1)
            count &= count - 1


def tree_end(x: Keys, t: Eras, row: int, begin: int, end: int) -> int:
    """Where the tree ends whose first cell is given; the last one of its lookup does at `end`."""
    if one_code(x, row):
        return end
    # The first code whose keys begin behind this one.
    low, high = x.segment_begin[row], x.segment_begin[row + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if x.segment[middle] <= t.key[begin]:
            low = middle + 1
        else:
            high = middle
    stop = begin + 1
    while stop < end and t.key[stop] < x.segment[low]:
        stop += 1
    return stop


def fold(x: Keys, t: Eras, n: Sums, row: int, first: int, end: int) -> None:
    """Make trees out of cells that hold what is stored at each key."""
    begin = first
    while begin < end:
        stop = tree_end(x, t, row, begin, end)
        for at in range(stop - begin):
            if begin + (at | (at + 1)) < stop:
                add_all(n, begin + (at | (at + 1)), begin + at)
        begin = stop


def unfold(x: Keys, t: Eras, n: Sums, row: int, first: int, end: int) -> None:
    """Make cells that hold what is stored at each key out of trees."""
    begin = first
    while begin < end:
        stop = tree_end(x, t, row, begin, end)
        for at in range(stop - begin - 1, -1, -1):
            if begin + (at | (at + 1)) < stop:
                subtract_all(n, begin + (at | (at + 1)), begin + at)
        begin = stop


def sort_keys(t: Eras, lookup: int, count: int) -> int:
    """Sort the keys of a lookup without those that occur again, with a table if they are close; how many are left."""
    tree, keys = t.tree[lookup], t.unsorted
    first = tree[FIRST]
    least = most = keys[0] if count > 0 else 0
    for at in range(1, count):
        least = min(least, keys[at])
        most = max(most, keys[at])
    span = most - least + 1
    if span > SPARSE * count:
        count = sort_distinct(keys, 0, count)
        for at in range(count):
            t.key[first + at] = keys[at]
        tree[SPAN] = 0
        return count
    tree[LEAST] = least
    tree[SPAN] = span
    table = tree[TABLE]
    for at in range(table, table + span):
        t.table[at] = 0
    for at in range(count):
        t.table[table + keys[at] - least] = 1
    kept = 0
    for at in range(span):
        used = t.table[table + at]
        t.table[table + at] = kept
        if used:
            t.key[first + kept] = least + at
            kept += 1
    return kept


def begin_era(x: Keys, t: Eras, n: Sums, symbol: Array, member: Array, low: int, high: int, fresh: bool) -> int:
    """Make trees for a range of events, and for what is stored unless they are to be fresh; the number of cells."""
    begin = first = 0
    for lookup in range(len(x.lookup)):
        row, source = x.lookup[lookup, ROW], x.lookup[lookup, SOURCE]
        old = t.tree[lookup, FIRST]
        old_end = old if fresh else old + t.tree[lookup, SIZE]
        unfold(x, t, n, row, old, old_end)
        count = 0
        for cell in range(old, old_end):
            if trim_all(n, cell):
                t.unsorted[count] = t.key[cell]
                count += 1
        for event in range(low, high):
            if member[symbol[event], source] and read(x, row, X_CODE, event) >= 0:
                t.unsorted[count] = read(x, row, X_KEY, event)
                count += 1
        if lookup == 0:
            begin = first = 0 if old >= t.cells else t.cells
        t.tree[lookup, FIRST] = first
        t.tree[lookup, SIZE] = sort_keys(t, lookup, count)
        end = first + t.tree[lookup, SIZE]
        for cell in range(first, end):
            empty(n, cell)
        for cell in range(old, old_end):
            if n.size[cell * n.parts] > 0:
                add_all(n, first + rank(t, lookup, t.key[cell]), cell)
        if old < old_end:
            fold(x, t, n, row, first, end)
        first = end
    return first - begin


def forget_slot(x: Keys, t: Eras, n: Sums, slot: int) -> None:
    """Forget the trends of a slot."""
    for lookup in range(len(x.lookup)):
        first = t.tree[lookup, FIRST]
        for cell in range(first, first + t.tree[lookup, SIZE]):
            clear_slot(n, cell, slot)


def forget_slots(x: Keys, t: Eras, n: Sums, low: int) -> None:
    """Forget the trends of as many slots as are cleared at once."""
    for lookup in range(len(x.lookup)):
        first = t.tree[lookup, FIRST]
        for cell in range(first, first + t.tree[lookup, SIZE]):
            clear_slots(n, cell, low)


def forget_all(x: Keys, t: Eras, n: Sums) -> None:
    """Forget all trends."""
    for lookup in range(len(x.lookup)):
        first = t.tree[lookup, FIRST]
        for cell in range(first, first + t.tree[lookup, SIZE]):
            empty(n, cell)


HELPERS = (
    rank,
    one_code,
    keep,
    find,
    tree_end,
    fold,
    unfold,
    sort_keys,
    begin_era,
    forget_slot,
    forget_slots,
    forget_all,
)
INLINED = (rank, one_code, keep, find)
