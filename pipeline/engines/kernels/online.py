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
from pipeline.engines.kernels.status import GROW, MORE
from pipeline.engines.kernels.windows import (
    ENDED,
    HIGH,
    LOW,
    WINDOW,
    Rows,
    Windows,
    give_row,
    next_window,
    start_and_stop,
)
from pipeline.events import Array

AT, BUSY = 8, 9  # registers, besides those of windows.py


class Layout(NamedTuple):
    """What the loop reads besides the plan."""

    instance: Array  # instances in the order of their events
    begin: Array  # where each event's instances begin
    slot: Array  # per instance: its number among those that are kept; -1: only its state's total is
    first_slot: Array  # per event: the number of the first kept instance from it on
    total: Array  # edges that take the total of their source state
    totalled: Array  # states whose total such an edge takes
    last: Array


class Places(NamedTuple):
    """Where the loop's cells are; kept events have those from 0 on."""

    total: int  # the first of the states' totals, over the times before this one
    fresh: int  # of the states, at this time
    scratch: int  # of the event at hand
    result: int  # of the window


def begin_window(p: Plan, k: Places, r: Array, c: Cells) -> None:
    """Forget the window before."""
    r[AT] = r[LOW]
    r[BUSY] = 1
    clear_cell(c, k.result)
    for state in range(len(p.first)):
        clear_cell(c, k.total + state)
        clear_cell(c, k.fresh + state)


def extend(p: Plan, o: Layout, s: Windows, k: Places, r: Array, c: Cells, w: Weights, code: Code, instance: int) -> int:
    """Aggregate all trends that end at an instance; the number of steps taken."""
    first_slot = o.first_slot[r[LOW]]
    y = p.event[instance]
    state = p.state[instance]
    edges = len(p.source)
    start, stop = start_and_stop(s, r[WINDOW])
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


def aggregate(
    p: Plan, o: Layout, s: Windows, k: Places, rows: Rows, c: Cells, w: Weights, code: Code, steps: int
) -> int:
    """Aggregate windows for a number of steps; GROW asks for cells with more room."""
    r = rows.register
    while steps > 0:
        if not r[BUSY]:
            status = next_window(s, rows)
            if status != MORE:
                return status
            begin_window(p, k, r, c)
        if is_crowded(c.numbers):
            return GROW
        at = r[AT]
        if at == r[HIGH]:
            r[BUSY] = 0
            give_row(rows, c, k.result)
            steps -= 1
            continue
        if at > r[LOW] and p.time[at] != p.time[at - 1]:
            for state in range(len(p.first)):
                if o.totalled[state]:
                    add_cell(c, k.total + state, k.fresh + state)
                    clear_cell(c, k.fresh + state)
        for number in range(o.begin[at], o.begin[at + 1]):
            steps -= extend(p, o, s, k, r, c, w, code, o.instance[number]) * (1 + c.numbers.register[LARGEST])
        r[AT] = at + 1
        steps -= 1
    return MORE


HELPERS = (begin_window, extend)
