"""Indexed trend aggregation: an event finds the trends that it extends in trees over the keys of earlier events.

Windows are taken in blocks. An aggregate has a slot a window of the block, for the trends that start in that window's
first SLIDE: they are in it, and in the windows before it that are not over yet.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import (
    Cells,
    Weights,
    add_cell,
    add_trend,
    clear_cell,
    extend_cell,
    has_trend,
    is_empty_cell,
)
from pipeline.engines.kernels.conquer import Halves, conquer, find_moments
from pipeline.engines.kernels.fenwick import Keys, Trees, look_up, plant, store
from pipeline.engines.kernels.numbers import LARGEST, is_crowded
from pipeline.engines.kernels.slots import drop_slots, join_slots
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.events import Array

# Registers.
PART, INSIDE, BLOCK, LOW, HIGH, STOP, AT, BUSY, WINDOW, WAITING, TIMES, PEAK, ROWS = range(13)


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
    keeps: bool  # the cells of all events of a block, for divide and conquer


class Work(NamedTuple):
    """What the loop writes besides the cells, and where these are; trees have those from 0 on."""

    register: Array
    event_cell: int  # the first cell of the events at this time, or for divide and conquer of those of the block
    waiting_event: Array  # at this time: they are stored when it is over
    waiting_state: Array
    waiting_cell: Array
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


def begin_block(p: Plan, x: Keys, t: Trees, h: Halves, k: Work, c: Cells) -> None:
    """Forget the block before."""
    r = k.register
    r[AT] = r[LOW]
    r[BUSY] = 1
    r[WAITING] = r[TIMES] = 0
    r[WINDOW] = max(p.first_window, r[BLOCK] * p.width - p.before)
    clear_cell(c, k.result)
    cells = plant(x, t, c, p.symbol, p.member, r[LOW], r[HIGH])
    if p.keeps:
        find_moments(h, p.time, r[LOW], r[HIGH])
        kept = (r[HIGH] - r[LOW]) * len(p.first)
        for cell in range(k.event_cell, k.event_cell + kept):
            clear_cell(c, cell)
        cells += kept
    r[PEAK] = max(r[PEAK], cells)


def close_windows(p: Plan, k: Work, c: Cells, place: int) -> int:
    """Give rows for the windows of a block that end at or before a place."""
    r = k.register
    end = min((r[BLOCK] + 1) * p.width, (place - p.within) // p.slide + 1)
    if is_empty_cell(c, k.result):
        r[WINDOW] = max(r[WINDOW], end)
    while r[WINDOW] < end:
        row = r[ROWS]
        if row == len(k.row_window):
            return DRAIN
        join_slots(c, k.row + row, k.result, max(r[WINDOW] - r[BLOCK] * p.width, 0))
        if has_trend(c, k.row + row, 0):
            k.row_part[row] = r[PART]
            k.row_window[row] = r[WINDOW]
            r[ROWS] += 1
        r[WINDOW] += 1
    return MORE


def extend(p: Plan, x: Keys, t: Trees, k: Work, c: Cells, w: Weights, event: int, state: int) -> int:
    """Aggregate all trends that end at an event; the number of steps taken."""
    r = k.register
    cell = k.event_cell
    if p.keeps:
        cell += (event - r[LOW]) * len(p.first) + state
    else:
        cell += r[WAITING]
        clear_cell(c, cell)
    since = p.place[event] - r[BLOCK] * p.width * p.slide
    if p.first[state] and since < p.span:
        add_trend(c, cell, since // p.slide if p.width > 1 else 0)
    for at in range(p.into[state], p.into[state + 1]):
        look_up(x, t, c, p.into_lookup[at], event, cell)
    steps = 1 + int(p.into[state + 1] - p.into[state])
    if not is_empty_cell(c, cell):
        if since >= p.within:
            # Trends of windows that are over count nowhere, but would make the numbers longer than any window's own.
            drop_slots(c, cell, (since - p.within) // p.slide + 1)
        if not w.plain[state]:
            extend_cell(c, w, cell, event, state)
        if p.last[state]:
            add_cell(c, k.result, cell)
        if p.out[state] < p.out[state + 1]:
            number = r[WAITING]
            k.waiting_event[number] = event
            k.waiting_state[number] = state
            k.waiting_cell[number] = cell
            r[WAITING] += 1
    return steps


def store_waiting(p: Plan, x: Keys, t: Trees, k: Work, c: Cells) -> None:
    """Store the events of a time that is over, so that later ones find them."""
    r = k.register
    for number in range(r[WAITING]):
        state = k.waiting_state[number]
        for at in range(p.out[state], p.out[state + 1]):
            store(x, t, c, p.out_lookup[at], k.waiting_event[number], k.waiting_cell[number])
    r[WAITING] = 0


def aggregate(p: Plan, x: Keys, t: Trees, h: Halves, k: Work, c: Cells, w: Weights, steps: int) -> int:
    """Aggregate blocks for a number of steps; GROW asks for cells with more room."""
    r = k.register
    while steps > 0:
        if not r[BUSY]:
            status = next_block(p, k)
            if status != MORE:
                return status
            begin_block(p, x, t, h, k, c)
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
        words = 1 + c.numbers.register[LARGEST] * c.numbers.slots
        if at > r[LOW] and p.time[at] != p.time[at - 1]:
            store_waiting(p, x, t, k, c)
            if p.keeps:
                r[TIMES] += 1
                steps -= words * conquer(h, x, t, c, p.symbol, p.member, r[LOW], r[HIGH], k.event_cell, r[TIMES])
        for state in range(len(p.first)):
            if p.member[p.symbol[at], state]:
                steps -= extend(p, x, t, k, c, w, at, state) * words
        r[AT] = at + 1
    return MORE


HELPERS = (next_block, begin_block, close_windows, extend, store_waiting)
INLINED = (extend, store_waiting)
