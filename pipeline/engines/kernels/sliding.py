"""Sliding windows over one traversal: an event finds the trends that it extends, for all of its windows at once.

An aggregate has a slot a SLIDE in which trends of open windows start. They are in the window that begins with it, and
in those before it that are not over yet. When that window is over the slot is free for a later one: it is cleared with
others, since the words of several slots stand side by side. Until then it is no part of any row.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Weights
from pipeline.engines.kernels.eras import Eras, begin_era, find, forget_all, forget_slot, forget_slots, keep
from pipeline.engines.kernels.fenwick import Keys
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.engines.kernels.sums import (
    AT_ONCE,
    LARGEST,
    Sums,
    add,
    add_all,
    add_one,
    add_times,
    clear_slot,
    clear_slots,
    empty,
    lacks_digits,
    settle_sum,
    total,
)
from pipeline.events import Array

# Registers. Slots have the numbers from OLDEST up to NEWEST, modulo how many there are; those from OVER up to OLDEST
# are of windows that are over, and still to be cleared.
PART, AT, END, ERA_END, PANE, PANE_END, SLOT, OVER, OLDEST, NEWEST, WINDOW, WINDOW_END, WAITING, PEAK, ROWS = range(15)

ERA = 2  # windows long: making trees costs as much as some of the events, but those of many keys are deep


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
    overlap: int  # how many windows an event is in
    first_window: int


class Work(NamedTuple):
    """What the loop writes besides the trees."""

    register: Array
    pane: Array  # per slot: which SLIDE its trends start in
    event_cell: int  # the first cell of the events at this time
    waiting_event: Array  # at this time: they are stored when it is over
    waiting_state: Array
    result: int
    row_digits: Array
    row_part: Array
    row_window: Array


def begin_partition(p: Plan, k: Work) -> None:
    """Go on to the first event of a partition; the one before has left nothing, since its windows are over."""
    r = k.register
    r[AT] = r[ERA_END] = p.part[r[PART]]
    r[END] = p.part[r[PART] + 1]
    place = p.place[r[AT]]
    r[PANE] = place // p.slide
    r[PANE_END] = place  # so that the first event begins a slot
    r[WINDOW] = max(p.first_window, (place - p.within) // p.slide + 1)
    r[WINDOW_END] = r[WINDOW] * p.slide + p.within


def next_era(p: Plan, x: Keys, t: Eras, k: Work, n: Sums) -> None:
    """Make trees for the events of about two windows' length."""
    r = k.register
    at = r[AT]
    stop = (p.place[at] // p.slide + ERA * p.overlap) * p.slide
    end = at
    while end < r[END] and p.place[end] < stop:
        end += 1
    r[ERA_END] = end
    for number in range(r[OVER], r[OLDEST]):  # so that they do not grow until their slots are used again
        forget_slot(x, t, n, number % n.slots)
    if r[WAITING] > 0:  # where windows are measured in events, a time may go on
        at = k.waiting_event[0]
    r[PEAK] = max(r[PEAK], begin_era(x, t, n, p.symbol, p.member, at, end, r[OLDEST] == r[NEWEST]))


def clear_over(x: Keys, t: Eras, k: Work, n: Sums) -> None:
    """Forget the trends of the slots whose windows were over first, so that these can be used again."""
    r = k.register
    low = r[OVER] % n.slots
    forget_slots(x, t, n, low)
    clear_slots(n, k.result, low)
    for number in range(r[WAITING]):
        clear_slots(n, k.event_cell + number, low)
    r[OVER] += AT_ONCE


def close_windows(p: Plan, x: Keys, t: Eras, k: Work, n: Sums, place: int) -> int:
    """Give rows for the windows that end at or before a place, and free their slots."""
    r = k.register
    end = (place - p.within) // p.slide + 1
    while r[WINDOW] < min(end, r[PANE] + 1) and r[OLDEST] < r[NEWEST]:
        row = r[ROWS]
        if row == len(k.row_window):
            return DRAIN
        for number in range(r[OVER], r[OLDEST]):
            clear_slot(n, k.result, number % n.slots)
        if total(n, k.result, k.row_digits[row]):
            k.row_part[row] = r[PART]
            k.row_window[row] = r[WINDOW]
            r[ROWS] += 1
        if k.pane[r[OLDEST] % n.slots] == r[WINDOW]:
            r[OLDEST] += 1
            if r[OLDEST] == r[NEWEST]:
                forget_all(x, t, n)
                for number in range(r[WAITING]):
                    empty(n, k.event_cell + number)
                empty(n, k.result)
                r[OVER] = r[OLDEST] // AT_ONCE * AT_ONCE
        r[WINDOW] += 1
    r[WINDOW] = max(r[WINDOW], end)
    r[WINDOW_END] = r[WINDOW] * p.slide + p.within
    return MORE


def begin_pane(p: Plan, x: Keys, t: Eras, k: Work, n: Sums, place: int) -> None:
    """Go on to the SLIDE that a place is in; it has no slot yet, but there is one for it."""
    r = k.register
    if r[NEWEST] - r[OVER] == n.slots:
        clear_over(x, t, k, n)
    r[PANE] = place // p.slide
    r[PANE_END] = (r[PANE] + 1) * p.slide
    r[SLOT] = -1


def start_trend(k: Work, n: Sums, a: int) -> None:
    """Add the trend that an event starts."""
    r = k.register
    if r[SLOT] < 0:
        r[SLOT] = r[NEWEST] % n.slots
        k.pane[r[SLOT]] = r[PANE]
        r[NEWEST] += 1
    add_one(n, a, r[SLOT])


def measure(w: Weights, n: Sums, a: int, event: int, state: int) -> None:
    """Let an event contribute to every trend that ends at it."""
    first = a * n.parts
    for part in range(1, n.parts):
        if w.part_counts[part - 1, state]:
            row = w.sums[part - 1]
            if row >= 0:
                add_times(n, first + part, first, w.digit[row, :, event])
            elif w.present[part - 1, event]:
                add(n, first + part, first)
        settle_sum(n, first + part)


def extend(p: Plan, x: Keys, t: Eras, k: Work, n: Sums, w: Weights, event: int, state: int) -> None:
    """Aggregate all trends that end at an event."""
    r = k.register
    cell = k.event_cell + r[WAITING]
    empty(n, cell)
    for at in range(p.into[state], p.into[state + 1]):
        find(x, t, n, p.into_lookup[at], event, cell)
    if p.first[state]:
        start_trend(k, n, cell)
    if n.size[cell * n.parts] > 0:
        settle_sum(n, cell * n.parts)
        if n.parts > 1:
            measure(w, n, cell, event, state)
        if p.last[state]:
            add_all(n, k.result, cell)
        if p.out[state] < p.out[state + 1]:
            k.waiting_event[r[WAITING]] = event
            k.waiting_state[r[WAITING]] = state
            r[WAITING] += 1


def keep_waiting(p: Plan, x: Keys, t: Eras, k: Work, n: Sums) -> None:
    """Store the events of a time that is over, so that later ones find them."""
    r = k.register
    for number in range(r[WAITING]):
        state = k.waiting_state[number]
        for at in range(p.out[state], p.out[state + 1]):
            keep(x, t, n, p.out_lookup[at], k.waiting_event[number], k.event_cell + number)
    r[WAITING] = 0


def aggregate(p: Plan, x: Keys, t: Eras, k: Work, n: Sums, w: Weights, steps: int) -> int:
    """Aggregate partitions for a number of steps; GROW asks for numbers with more room."""
    r = k.register
    while steps > 0:
        if lacks_digits(n):
            return GROW
        at = r[AT]
        over = at == r[END]
        place = (r[PANE] + 1) * p.slide + p.within if over else p.place[at]
        if over or r[WAITING] == 0 or p.time[at] != p.time[at - 1]:
            keep_waiting(p, x, t, k, n)
        if place >= r[WINDOW_END] and close_windows(p, x, t, k, n, place) == DRAIN:
            return DRAIN
        steps -= 1 + n.register[LARGEST] * n.slots
        if over:
            r[PART] += 1
            if r[PART] >= len(p.part) - 1:
                return DONE
            begin_partition(p, k)
            continue
        if at == r[ERA_END]:
            next_era(p, x, t, k, n)
        if place >= r[PANE_END]:
            begin_pane(p, x, t, k, n, place)
        for state in range(len(p.first)):
            if p.member[p.symbol[at], state]:
                extend(p, x, t, k, n, w, at, state)
        r[AT] = at + 1
    return MORE


HELPERS = (
    begin_partition,
    clear_over,
    next_era,
    close_windows,
    begin_pane,
    start_trend,
    measure,
    extend,
    keep_waiting,
)
INLINED = (start_trend, extend, keep_waiting)
