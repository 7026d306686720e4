"""Online trend aggregation: every event extends the aggregates of the trends before it, and no trend is built.

A cell holds what all (partial) trends that end at one event, or at any event of one state, add up to. Windows are taken
one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, Weights, add_cell, add_trend, clear_cell, extend_cell, is_empty_cell
from pipeline.engines.kernels.machine import Code, holds
from pipeline.engines.kernels.numbers import LARGEST, is_crowded
from pipeline.engines.kernels.sase import Plan, open_before, unguarded
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.events import Array

# Registers.
PART, INSIDE, WINDOW, LOW, HIGH, AT, BUSY, ENDED, ROWS, MOMENT = range(10)


class Layout(NamedTuple):
    """What the loop reads besides the plan."""

    instance: Array  # instances in the order of their events
    begin: Array  # where each event's instances begin
    part: Array  # where each partition's events begin
    slot: Array  # per instance: its number among those that are kept; -1: only its state's total is
    first_slot: Array  # per event: the number of the first kept instance from it on
    total: Array  # edges that take the total of their source state
    totalled: Array  # states whose total such an edge takes
    last: Array
    moment: Array  # without SLIDE: where each group's times begin, at which a trend may end
    moments: Array


class Work(NamedTuple):
    """What the loop writes besides the cells, and where these are."""

    register: Array
    total: int  # the first cell of the states' totals, over the times before this one
    fresh: int  # of the states, at this time
    scratch: int  # of the event at hand
    result: int  # of the window
    row: int  # the first cell of finished rows; kept events have those from 0 on
    row_part: Array
    row_window: Array
    row_ended: Array


def next_window(p: Plan, o: Layout, k: Work) -> int:
    """Go on to the next window that holds an event of a partition."""
    r = k.register
    if r[ROWS] == len(k.row_window):
        return DRAIN
    while r[PART] < len(o.part) - 1:
        end = o.part[r[PART] + 1]
        if r[INSIDE] != r[PART]:
            r[INSIDE] = r[PART]
            r[LOW] = r[HIGH] = o.part[r[PART]]
            r[MOMENT] = o.moment[p.group[r[LOW]]]
            if p.slide > 0:
                r[WINDOW] = max(p.first_window, (p.place[r[LOW]] - p.within) // p.slide + 1)
        elif p.slide > 0:
            r[WINDOW] += 1
        if p.slide > 0:
            start = r[WINDOW] * p.slide
            stop = start + p.within
            over = False
        else:
            over = r[MOMENT] == o.moment[p.group[o.part[r[PART]]] + 1]
            if not over:
                r[WINDOW] = o.moments[r[MOMENT]]
                r[MOMENT] += 1
            start = r[WINDOW] - p.within + 1
            stop = r[WINDOW] + 1
        while r[LOW] < end and p.place[r[LOW]] < start:
            r[LOW] += 1
        if over or r[LOW] == end:
            r[PART] += 1
            continue
        if p.slide > 0 and p.place[r[LOW]] >= stop:
            r[WINDOW] = (p.place[r[LOW]] - p.within) // p.slide
            continue
        r[HIGH] = max(r[HIGH], r[LOW])
        while r[HIGH] < end and p.place[r[HIGH]] < stop:
            r[HIGH] += 1
        if r[HIGH] > r[LOW]:
            return MORE
    return DONE


def begin_window(p: Plan, k: Work, c: Cells) -> None:
    """Forget the window before."""
    r = k.register
    r[AT] = r[LOW]
    r[BUSY] = 1
    r[ENDED] = 0
    clear_cell(c, k.result)
    for state in range(len(p.first)):
        clear_cell(c, k.total + state)
        clear_cell(c, k.fresh + state)


def extend(p: Plan, o: Layout, k: Work, c: Cells, w: Weights, code: Code, instance: int) -> int:
    """Aggregate all trends that end at an instance; the number of steps taken."""
    r = k.register
    first_slot = o.first_slot[r[LOW]]
    y = p.event[instance]
    state = p.state[instance]
    edges = len(p.source)
    if p.slide > 0:
        start = r[WINDOW] * p.slide
        stop = start + p.within
    else:
        start = r[WINDOW] - p.within + 1
        stop = r[WINDOW] + 1
    clear_cell(c, k.scratch)
    if p.first[state] and open_before(p, edges + state, y, start):
        add_trend(c, k.scratch, 0)
    steps = 1
    for edge in range(p.into[state], p.into[state + 1]):
        if o.total[edge]:
            add_cell(c, k.scratch, k.total + p.source[edge])
            continue
        at = p.pointer[edge] + instance - p.stack[state]
        for candidate in range(p.high[at] - 1, p.low[at] - 1, -1):
            steps += 1
            earlier = p.candidate[candidate]
            x = p.event[earlier]
            if x < r[LOW]:
                if p.sorted:
                    break
                continue
            if not unguarded(p, edge, p.after_time, x, p.time[y]):
                continue
            if p.program[edge] < 0 or holds(code, p.program[edge], x, y):
                add_cell(c, k.scratch, o.slot[earlier] - first_slot)
    if not is_empty_cell(c, k.scratch):
        extend_cell(c, w, k.scratch, y, state)
        if o.last[state] and unguarded(p, edges + len(p.first) + state, p.after_place, y, stop):
            add_cell(c, k.result, k.scratch)
            if p.place[y] == r[WINDOW]:
                r[ENDED] = 1
        if o.totalled[state]:
            add_cell(c, k.fresh + state, k.scratch)
    if o.slot[instance] >= 0:
        clear_cell(c, o.slot[instance] - first_slot)
        add_cell(c, o.slot[instance] - first_slot, k.scratch)
    return steps


def aggregate(p: Plan, o: Layout, k: Work, c: Cells, w: Weights, code: Code, steps: int) -> int:
    """Aggregate windows for a number of steps; GROW asks for cells with more room."""
    r = k.register
    while steps > 0:
        if not r[BUSY]:
            status = next_window(p, o, k)
            if status != MORE:
                return status
            begin_window(p, k, c)
        if is_crowded(c.numbers):
            return GROW
        at = r[AT]
        if at == r[HIGH]:
            r[BUSY] = 0
            if not is_empty_cell(c, k.result):
                row = r[ROWS]
                r[ROWS] += 1
                k.row_part[row] = r[PART]
                k.row_window[row] = r[WINDOW]
                k.row_ended[row] = r[ENDED]
                clear_cell(c, k.row + row)
                add_cell(c, k.row + row, k.result)
            steps -= 1
            continue
        if at > r[LOW] and p.time[at] != p.time[at - 1]:
            for state in range(len(p.first)):
                if o.totalled[state]:
                    add_cell(c, k.total + state, k.fresh + state)
                    clear_cell(c, k.fresh + state)
        for number in range(o.begin[at], o.begin[at + 1]):
            steps -= extend(p, o, k, c, w, code, o.instance[number]) * (1 + c.numbers.register[LARGEST])
        r[AT] = at + 1
        steps -= 1
    return MORE


HELPERS = (next_window, begin_window, extend)
