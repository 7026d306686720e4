"""What a round of Nishimura's construction keeps: stacks, links, cached partial matches, totals and rows.

A round is the window of the oldest first event: all that came since the round before is put on the stacks, all matches
that end in it are built, and that first event leaves. So no match of a round leaves its windows before the round ends:
it counts from the window that its last event enters on (one total an end), and in later rounds as long as its first
event is there (one total a start).
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.sase import FIRST_FREE, TRENDS, Plan, join, measure, open_row, reset
from pipeline.events import Array

# Registers of a search, beside those that it shares with SASE's.
(
    PART,
    FIRST,  # the oldest first event: the round is its window
    STAGE,
    DEPTH,  # of the last event on the current path; -1: there is no path
    BASE,  # the depth that the search of this path began at; above 0 it is a cached partial match
    CLUSTER,  # the first events that share the current path: from here
    CLUSTER_END,
    MEMBER,  # the next of them to build a match with; CLUSTER_END: the path is not whole
    HOLDER,  # the first event whose cached partial matches are next
    ENTRY,
    NEXT,  # the first event of the next cluster
    WINDOW,  # the next window to give out: its number, or without SLIDE the moment's
    ENDED,  # the ends that the current window holds: up to here
    COUNTED,  # matches whose first event is on its stack
    LINKS,
    HITS,
    CACHED,
    UNUSED,  # the first cache entry that was never used
    FREED,  # the last cache entry that was given back, -1: none
    PEAK,
) = range(16, 36)

# Stages of a round, as the paper's steps: 1; 2 to 4; then the aggregation; 5 and 6.
OPEN, SEARCH, CLOSE, LEAVE = range(4)


class Layout(NamedTuple):
    """What a search reads beside SASE's plan. An instance is an event on the stack of a state."""

    bound: Array  # per partition and state: where its instances begin
    link: Array  # per instance: the earliest later one on the next stack (RIS)
    clusters: bool  # first events of one link share it: no condition tells them apart
    caches: bool
    moments: Array  # per group, the places at which a trend may end, for windows that move
    moment: Array  # per event: the first of its group's moments that is not before it
    moment_end: Array  # per group
    starts: int  # how many first events there are at most in a window
    ends: int


class Work(NamedTuple):
    """What a search writes."""

    register: Array
    low: Array  # per state: the instances on its stack are those from here
    loaded: Array  # up to here
    path: Array  # instances of the current path, by state
    cursor: Array  # per depth: the instance to go on to
    run: Array  # per depth and measure
    run_sum: Array
    cell_count: Array  # totals: one a start, one an end, one of the current window
    cell: Array
    cell_sum: Array
    head: Array  # per start: its last cached partial match
    cache_next: Array
    cache_length: Array
    cache_path: Array
    row_group: Array
    row_window: Array
    row_count: Array
    row_ended: Array
    row: Array
    row_sum: Array
    match: Array


def clear_cell(p: Plan, w: Work, cell: int) -> None:
    """Make a total that of no match."""
    w.cell_count[cell] = 0
    reset(p, w.cell[cell], w.cell_sum[cell])


def add_cell(p: Plan, w: Work, cell: int, other: int) -> None:
    """Add a total to another."""
    w.cell_count[cell] += w.cell_count[other]
    join(p, w.cell[cell], w.cell_sum[cell], w.cell[other], w.cell_sum[other])


def window_of_start(p: Plan, place: int) -> int:
    """The last window that holds a place: its number, or without SLIDE the place that it ends at."""
    return place + p.within - 1 if p.slide == 0 else place // p.slide


def window_of_end(p: Plan, place: int) -> int:
    """The first window that holds a place."""
    return place if p.slide == 0 else max(p.first_window, (place - p.within) // p.slide + 1)


def next_window(p: Plan, y: Layout, w: Work, group: int) -> int:
    """The next window to give out; beyond all of them where there is none."""
    if p.slide > 0:
        return int(w.register[WINDOW])
    if w.register[WINDOW] < y.moment_end[group]:
        return int(y.moments[w.register[WINDOW]])
    return 2**62


def build_match(p: Plan, y: Layout, w: Work) -> None:
    """Build and aggregate the match of the current path and one of its first events."""
    register = w.register
    first = register[MEMBER]
    register[MEMBER] = first + 1
    states = len(w.low)
    w.path[0] = first
    measure(p, w, states, first)
    for cell in (first % y.starts, y.starts + w.path[states - 1] % y.ends):
        w.cell_count[cell] += 1
        join(p, w.cell[cell], w.cell_sum[cell], w.run[states], w.run_sum[states])
    register[COUNTED] += 1
    register[TRENDS] += 1
    if len(w.match) > 0:
        for state in range(states):
            w.match[register[FIRST_FREE] + state] = w.path[state]
        register[FIRST_FREE] += states


def close_window(p: Plan, y: Layout, w: Work) -> None:
    """Give out the next window that ends with this round, if it holds a match."""
    register = w.register
    start = p.event[register[FIRST]]
    final = len(w.low) - 1
    total = len(w.cell_count) - 1
    last_window = window_of_start(p, p.place[start])
    empty = w.cell_count[total] == 0
    if empty and register[ENDED] < w.loaded[final]:  # there may be any number of empty windows before the next end
        end = p.event[register[ENDED]]
        enters = y.moment[end] if p.slide == 0 else window_of_end(p, p.place[end])
        register[WINDOW] = max(register[WINDOW], enters)
    window = next_window(p, y, w, p.group[start])
    if window > last_window or (empty and register[ENDED] == w.loaded[final]):
        register[STAGE] = LEAVE
        return
    register[WINDOW] += 1
    ended = 0
    while register[ENDED] < w.loaded[final]:
        place = p.place[p.event[register[ENDED]]]
        if window_of_end(p, place) > window:
            break
        cell = y.starts + register[ENDED] % y.ends
        register[ENDED] += 1
        if w.cell_count[cell] > 0:
            add_cell(p, w, total, cell)
            ended = 1
    if w.cell_count[total] > 0:
        row = open_row(p, w, p.group[start], window)
        w.row_ended[row] = ended
        w.row_count[row] = w.cell_count[total]
        join(p, w.row[row], w.row_sum[row], w.cell[total], w.cell_sum[total])


HELPERS = (clear_cell, add_cell, window_of_start, window_of_end, next_window, build_match, close_window)
