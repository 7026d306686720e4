"""Indexed trend aggregation: an event finds the trends that it extends in Fenwick trees over the earlier events' keys.

x may come before y if they have the same code and x's key is below y's bound: every lookup has a tree a code over the
keys of the events stored so far, whose cells are sums of aggregates. An equality is a tree of one key a code, a total
one of a single key.

Windows are taken in blocks of `width`. An aggregate has a slot a window of the block, for the trends that start in its
first SLIDE; a trend that starts there is in that window, and in those before it that are not over yet.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import (
    NO_MAXIMUM,
    NO_MINIMUM,
    Cells,
    Weights,
    add_cell,
    add_trend,
    clear_cell,
    extend_cell,
    has_trend,
    is_empty_cell,
    join_rank,
)
from pipeline.engines.kernels.numbers import LARGEST, MASK, is_crowded, make_floats, plus_float, settle
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.events import Array

# Registers.
PART, INSIDE, BLOCK, LOW, HIGH, STOP, AT, BUSY, WINDOW, WAITING, PEAK, ROWS = range(12)


class Plan(NamedTuple):
    """What the loop reads: the events, what they can be bound to, and the windows."""

    time: Array
    place: Array
    part: Array  # where each partition's events begin
    symbol: Array
    member: Array  # per symbol and state
    first: Array
    last: Array
    into: Array  # per state: where the lookups of its predecessors begin
    into_lookup: Array
    out: Array  # per state: where the lookups that its events are stored for begin
    out_lookup: Array
    within: int
    slide: int
    width: int  # windows in a block
    before: int  # windows before the block's first that its trends may be in
    span: int  # how long after a block's beginning trends may start
    first_window: int


class Keys(NamedTuple):
    """What lookups compare; a row may serve several."""

    row: Array  # per lookup
    source: Array  # per lookup: the state whose events it stores
    distinct: Array  # per row: how many keys there are
    segment: Array  # per row and code: the first key; and the end of the last
    segment_begin: Array  # per row: where its segments begin
    x_code: Array  # per row and event; -1: not stored
    x_key: Array
    y_code: Array  # -1: asks for nothing
    y_bound: Array


class Work(NamedTuple):
    """What the loop writes besides the cells, and where these are; trees have those from 0 on."""

    register: Array
    tree: Array  # per lookup: the first cell of its trees
    size: Array  # per lookup: how many cells they have
    dense: Array  # per lookup: whether each key has a cell, or only those of the block's events
    key: Array  # per cell of a tree that is not dense: its key
    waiting: int  # the first cell of the events at this time, which are stored when it is over
    waiting_event: Array
    waiting_state: Array
    result: int  # of the block
    row: int  # the first cell of finished rows, of which only the first slot counts
    row_part: Array
    row_window: Array


def next_block(p: Plan, k: Work) -> int:
    """Go on to the next block in which a trend of a partition may start."""
    r = k.register
    stride = p.width * p.slide
    while r[PART] < len(p.part) - 1:
        end = p.part[r[PART] + 1]
        if r[INSIDE] != r[PART]:
            r[INSIDE] = r[PART]
            r[LOW] = r[HIGH] = p.part[r[PART]]
            r[BLOCK] = max(p.first_window, (p.place[r[LOW]] - p.span) // stride + 1)
        else:
            r[BLOCK] += 1
        while r[LOW] < end and p.place[r[LOW]] < r[BLOCK] * stride:
            r[LOW] += 1
        if r[LOW] == end:
            r[PART] += 1
            continue
        r[BLOCK] = max(r[BLOCK], (p.place[r[LOW]] - p.span) // stride + 1)
        r[STOP] = ((r[BLOCK] + 1) * p.width - 1) * p.slide + p.within
        r[HIGH] = max(r[HIGH], r[LOW])
        while r[HIGH] < end and p.place[r[HIGH]] < r[STOP]:
            r[HIGH] += 1
        return MORE
    return DONE


def begin_block(p: Plan, x: Keys, k: Work, c: Cells) -> None:
    """Make empty trees for the keys of a block's events."""
    r = k.register
    r[AT] = r[LOW]
    r[BUSY] = 1
    r[WAITING] = 0
    r[WINDOW] = max(p.first_window, r[BLOCK] * p.width - p.before)
    clear_cell(c, k.result)
    first = 0
    for lookup in range(len(x.row)):
        row = x.row[lookup]
        k.tree[lookup] = first
        k.dense[lookup] = x.distinct[row] <= r[HIGH] - r[LOW]
        if k.dense[lookup]:
            end = first + x.distinct[row]
        else:
            end = first
            for event in range(r[LOW], r[HIGH]):
                if p.member[p.symbol[event], x.source[lookup]] and x.x_code[row, event] >= 0:
                    k.key[end] = x.x_key[row, event]
                    end += 1
            end = sort_distinct(k.key, first, end)
        k.size[lookup] = end - first
        for cell in range(first, end):
            clear_cell(c, cell)
        first = end
    r[PEAK] = max(r[PEAK], first)


def sort_distinct(keys: Array, first: int, end: int) -> int:
    """Sort keys in place and drop those that occur again; their new end."""
    size = end - first
    root = size // 2
    last = size
    while last > 1:
        # Heapsort: build the heap while `root` counts down, then take the largest away while `last` does.
        if root > 0:
            root -= 1
            key = keys[first + root]
        else:
            last -= 1
            key = keys[first + last]
            keys[first + last] = keys[first]
        at = root
        child = 2 * at + 1
        while child < last:
            if child + 1 < last and keys[first + child] < keys[first + child + 1]:
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


def store(x: Keys, k: Work, c: Cells, lookup: int, event: int, cell: int) -> None:
    """Add an event's aggregate to the tree of its code."""
    row = x.row[lookup]
    code = x.x_code[row, event]
    if code >= 0:
        dense, first, size = k.dense[lookup], k.tree[lookup], k.size[lookup]
        segment = x.segment_begin[row] + code
        begin = position(dense, k.key, first, size, x.segment[segment])
        end = position(dense, k.key, first, size, x.segment[segment + 1]) - begin
        at = position(dense, k.key, first, size, x.x_key[row, event]) - begin
        while at < end:
            add_cell(c, first + begin + at, cell)
            at |= at + 1


def look_up(x: Keys, k: Work, c: Cells, lookup: int, event: int, cell: int) -> None:
    """Add up the aggregates of the stored events that may come before an event."""
    row = x.row[lookup]
    code = x.y_code[row, event]
    if code >= 0:
        dense, first, size = k.dense[lookup], k.tree[lookup], k.size[lookup]
        begin = position(dense, k.key, first, size, x.segment[x.segment_begin[row] + code])
        count = position(dense, k.key, first, size, x.y_bound[row, event]) - begin
        while count > 0:
            add_cell(c, cell, first + begin + count - 1)
            count &= count - 1


def drop_slots(c: Cells, a: int, count: int) -> None:
    """Forget the trends of the first slots."""
    n = c.numbers
    for block in range(a * c.parts, (a + 1) * c.parts):
        if n.size[block] < 0:
            for slot in range(count):
                n.mantissa[block, slot] = 0.0
        for first in range(0, n.size[block] * n.slots, n.slots):
            for at in range(first, first + count):
                n.digits[block, at] = 0
    for r in range(len(c.least)):
        for slot in range(count):
            c.rank[a, r, slot] = NO_MINIMUM if c.least[r] else NO_MAXIMUM


def join_slots(c: Cells, a: int, b: int, begin: int) -> None:
    """Make the first slot of an aggregate the sum of another's slots from one on."""
    n = c.numbers
    clear_cell(c, a)
    for part in range(c.parts):
        total, block = a * c.parts + part, b * c.parts + part
        settle(n, block)
        if n.size[block] < 0:
            make_floats(n, total)
            for slot in range(begin, n.slots):
                plus_float(n, total, 0, n.mantissa[block, slot], n.exponent[block, slot])
            continue
        for first in range(0, n.size[block] * n.slots, n.slots):
            digit = 0
            for at in range(first, first + n.slots):
                n.digits[total, at] = 0
            for at in range(first + begin, first + n.slots):
                digit += n.digits[block, at]
            n.digits[total, first] = digit
        n.size[total] = n.size[block]
        n.bound[total] = n.slots * (MASK + 1)
    for r in range(len(c.least)):
        for slot in range(begin, n.slots):
            join_rank(c, a, r, 0, c.rank[b, r, slot])


def close_windows(p: Plan, k: Work, c: Cells, place: int) -> int:
    """Give rows for the windows of a block that end at or before a place."""
    r = k.register
    end = min((r[BLOCK] + 1) * p.width, (place - p.within) // p.slide + 1)
    if is_empty_cell(c, k.result):
        r[WINDOW] = max(r[WINDOW], end)
    while r[WINDOW] < end:
        if r[ROWS] == len(k.row_window):
            return DRAIN
        row = r[ROWS]
        join_slots(c, k.row + row, k.result, max(r[WINDOW] - r[BLOCK] * p.width, 0))
        if has_trend(c, k.row + row, 0):
            k.row_part[row] = r[PART]
            k.row_window[row] = r[WINDOW]
            r[ROWS] += 1
        r[WINDOW] += 1
    return MORE


def extend(p: Plan, x: Keys, k: Work, c: Cells, w: Weights, event: int, state: int) -> int:
    """Aggregate all trends that end at an event; the number of steps taken."""
    r = k.register
    origin = r[BLOCK] * p.width * p.slide
    cell = k.waiting + r[WAITING]
    clear_cell(c, cell)
    if p.first[state] and p.place[event] < origin + p.span:
        add_trend(c, cell, (p.place[event] - origin) // p.slide if p.width > 1 else 0)
    for at in range(p.into[state], p.into[state + 1]):
        look_up(x, k, c, p.into_lookup[at], event, cell)
    steps = 1 + int(p.into[state + 1] - p.into[state])
    if is_empty_cell(c, cell):
        return steps
    if p.place[event] >= origin + p.within:
        drop_slots(c, cell, (p.place[event] - origin - p.within) // p.slide + 1)
    extend_cell(c, w, cell, event, state)
    if p.last[state]:
        add_cell(c, k.result, cell)
    if p.out[state] < p.out[state + 1]:
        k.waiting_event[r[WAITING]] = event
        k.waiting_state[r[WAITING]] = state
        r[WAITING] += 1
    return steps


def store_waiting(p: Plan, x: Keys, k: Work, c: Cells) -> None:
    """Store the events of a time that is over, so that later ones find them."""
    r = k.register
    for number in range(r[WAITING]):
        state = k.waiting_state[number]
        for at in range(p.out[state], p.out[state + 1]):
            store(x, k, c, p.out_lookup[at], k.waiting_event[number], k.waiting + number)
    r[WAITING] = 0


def aggregate(p: Plan, x: Keys, k: Work, c: Cells, w: Weights, steps: int) -> int:
    """Aggregate blocks for a number of steps; GROW asks for cells with more room."""
    r = k.register
    while steps > 0:
        if not r[BUSY]:
            status = next_block(p, k)
            if status != MORE:
                return status
            begin_block(p, x, k, c)
        if is_crowded(c.numbers):
            return GROW
        at = r[AT]
        place = p.place[at] if at < r[HIGH] else r[STOP]
        if place >= r[WINDOW] * p.slide + p.within and close_windows(p, k, c, place) == DRAIN:
            return DRAIN
        steps -= 1
        if at == r[HIGH]:
            r[BUSY] = 0
            continue
        if at > r[LOW] and p.time[at] != p.time[at - 1]:
            store_waiting(p, x, k, c)
        for state in range(len(p.first)):
            if p.member[p.symbol[at], state]:
                steps -= extend(p, x, k, c, w, at, state) * (1 + c.numbers.register[LARGEST] * c.numbers.slots)
        r[AT] = at + 1
    return MORE


HELPERS = (
    next_block,
    sort_distinct,
    begin_block,
    position,
    store,
    look_up,
    drop_slots,
    join_slots,
    close_windows,
    extend,
    store_waiting,
)
INLINED = (store, look_up, extend, store_waiting)
