"""Fenwick trees of aggregates: x may come before y if they have the same code and x's key is below y's bound.

A lookup has a tree a code over the keys of the events stored so far. An equality is a tree of one key a code, a total
one tree of one key.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, add_cell, clear_cell
from pipeline.events import Array

ROW, SOURCE, TARGET = 0, 1, 2  # of a lookup: its row of keys, the state that is stored, and the one that asks
X_CODE, X_KEY, Y_CODE, Y_BOUND = 0, 1, 2, 3  # what an event is stored as, and what it asks for; no code is -1
FIRST, SIZE, DENSE = 0, 1, 2  # of a lookup's trees: the first cell, how many there are, and whether each key has one

SPARSE = 4  # keys an event, from which on it is worth while to look for those in use


class Keys(NamedTuple):
    """What lookups compare; a row may serve several."""

    lookup: Array
    field: Array  # per row and X_CODE …: which of the columns has it; -1: it is 0 in all events
    column: Array  # per column and event
    segment: Array  # per row and code: the first key; and the end of the last
    segment_begin: Array  # per row: where its segments begin
    distinct: Array  # per row: how many keys there are


class Trees(NamedTuple):
    """Where the trees of a block are."""

    tree: Array  # per lookup
    key: Array  # per cell of trees that are not dense


def read(x: Keys, row: int, field: int, event: int) -> int:
    """What an event is stored as, or asks for."""
    column = x.field[row, field]
    return 0 if column < 0 else x.column[column, event]


def plant(x: Keys, t: Trees, c: Cells, symbol: Array, member: Array, low: int, high: int) -> int:
    """Make empty trees for a range of events, of their keys alone if there are many others; the number of cells."""
    first = 0
    for lookup in range(len(x.lookup)):
        row, source = x.lookup[lookup, ROW], x.lookup[lookup, SOURCE]
        dense = x.distinct[row] <= SPARSE * (high - low)
        end = first
        if dense:
            end += x.distinct[row]
        else:
            for event in range(low, high):
                if member[symbol[event], source] and read(x, row, X_CODE, event) >= 0:
                    t.key[end] = read(x, row, X_KEY, event)
                    end += 1
            end = sort_distinct(t.key, first, end)
        t.tree[lookup, FIRST] = first
        t.tree[lookup, SIZE] = end - first
        t.tree[lookup, DENSE] = dense
        for cell in range(first, end):
            clear_cell(c, cell)
        first = end
    return first


def sort_distinct(keys: Array, first: int, end: int) -> int:
    """Sort a range of keys in place (heapsort) and drop those that occur again; its new end."""
    root = (end - first) // 2
    size = end - first
    while size > 1:
        # First every root sinks into the heap below it, then what stood last does, while the largest takes its place.
        if root > 0:
            root -= 1
            key = keys[first + root]
        else:
            size -= 1
            key = keys[first + size]
            keys[first + size] = keys[first]
        at = root
        child = 2 * at + 1
        while child < size:
            if child + 1 < size and keys[first + child] < keys[first + child + 1]:
                child += 1
            if key >= keys[first + child]:
                break
            keys[first + at] = keys[first + child]
            at = child
            child = 2 * at + 1
        keys[first + at] = key
    kept = first
    for at in range(first, end):
        if at == first or keys[at] != keys[kept - 1]:
            keys[kept] = keys[at]
            kept += 1
    return kept


def position(dense: bool, keys: Array, first: int, size: int, key: int) -> int:
    """How many cells of the trees from `first` on are for smaller keys."""
    if dense:
        return key
    low = 0
    while low < size:
        middle = (low + size) // 2
        if keys[first + middle] < key:
            low = middle + 1
        else:
            size = middle
    return low


def tree_of(x: Keys, t: Trees, lookup: int, code: int) -> tuple[int, int]:
    """Where the tree of a code begins, among the cells of its lookup, and ends."""
    size, row = t.tree[lookup, SIZE], x.lookup[lookup, ROW]
    segment = x.segment_begin[row]
    if x.segment_begin[row + 1] - segment == 2:  # there is but one code
        return 0, size
    first, dense = t.tree[lookup, FIRST], t.tree[lookup, DENSE]
    begin = position(dense, t.key, first, size, x.segment[segment + code])
    return begin, position(dense, t.key, first, size, x.segment[segment + code + 1])


def store(x: Keys, t: Trees, c: Cells, lookup: int, event: int, cell: int) -> None:
    """Add an event's aggregate to the tree of its code."""
    row, first = x.lookup[lookup, ROW], t.tree[lookup, FIRST]
    code = read(x, row, X_CODE, event)
    if code >= 0:
        begin, end = tree_of(x, t, lookup, code)
        key = read(x, row, X_KEY, event)
        at = position(t.tree[lookup, DENSE], t.key, first, t.tree[lookup, SIZE], key) - begin
        while begin + at < end:
            add_cell(c, first + begin + at, cell)
            at |= at + 1


def forget(x: Keys, t: Trees, c: Cells, lookup: int, event: int) -> None:
    """Empty all that a stored event was added to."""
    row, first = x.lookup[lookup, ROW], t.tree[lookup, FIRST]
    begin, end = tree_of(x, t, lookup, read(x, row, X_CODE, event))
    key = read(x, row, X_KEY, event)
    at = position(t.tree[lookup, DENSE], t.key, first, t.tree[lookup, SIZE], key) - begin
    while begin + at < end:
        clear_cell(c, first + begin + at)
        at |= at + 1


def look_up(x: Keys, t: Trees, c: Cells, lookup: int, event: int, cell: int) -> None:
    """Add up the aggregates of the stored events that may come before an event."""
    row, first = x.lookup[lookup, ROW], t.tree[lookup, FIRST]
    code = read(x, row, Y_CODE, event)
    if code >= 0:
        begin, _ = tree_of(x, t, lookup, code)
        bound = read(x, row, Y_BOUND, event)
        count = position(t.tree[lookup, DENSE], t.key, first, t.tree[lookup, SIZE], bound) - begin
        while count > 0:
            add_cell(c, cell, first + begin + count - 1)
            count &= count - 1


HELPERS = (read, sort_distinct, plant, position, tree_of, store, forget, look_up)
INLINED = (read, position, tree_of, store, look_up)
