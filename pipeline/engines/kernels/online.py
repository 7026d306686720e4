"""Online trend aggregation: every event extends the aggregates of the trends before it, and no trend is built.

A cell holds what all (partial) trends that end at one event, or at any event of one state, add up to: their number and
their sums as integers of any size, their least and greatest values as ranks. Windows are taken one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.limbs import carried, carried_product, is_full
from pipeline.engines.kernels.machine import Code, holds
from pipeline.engines.kernels.sase import (
    COUNT,
    MAXIMUM,
    MINIMUM,
    NO_MAXIMUM,
    NO_MINIMUM,
    SUM,
    Plan,
    open_before,
    unguarded,
)
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.events import Array

# Registers.
PART, INSIDE, WINDOW, LOW, HIGH, AT, BUSY, ENDED, ROWS, MOMENT, CROWDED = range(11)

BETWEEN, IN_WINDOW, AGAIN = 0, 1, 2  # of BUSY; AGAIN: the window begins anew, with more digits


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


class Cells(NamedTuple):
    """What the loop writes. Rows of `number` are cells: the count, then one integer a COUNT or SUM measure."""

    register: Array
    number: Array  # of the kept events
    rank: Array
    total: Array  # of each state, over the times before this one
    total_rank: Array
    fresh: Array  # of each state, at this time
    fresh_rank: Array
    scratch: Array  # of the event at hand; then the window's result
    scratch_rank: Array
    row_part: Array
    row_window: Array
    row_ended: Array
    row: Array
    row_rank: Array


RESULT = 1  # row of `scratch`; row 0 is the event at hand


def clear(p: Plan, number: Array, rank: Array) -> None:
    """Make a cell that of no trend."""
    number[:, :] = 0
    for m in range(len(p.measure)):
        rank[m] = NO_MINIMUM if p.measure[m] == MINIMUM else NO_MAXIMUM


def copy(number: Array, rank: Array, other: Array, other_rank: Array) -> None:
    """Make a cell the same as another; digit by digit, since a copy of a whole array would need numba's memory."""
    for component in range(number.shape[0]):
        for at in range(number.shape[1]):
            number[component, at] = other[component, at]
    for m in range(len(rank)):
        rank[m] = other_rank[m]


def is_empty(number: Array) -> bool:
    """Whether a cell is that of no trend."""
    empty = True
    for at in range(number.shape[1]):
        empty &= number[0, at] == 0
    return empty


def add(p: Plan, number: Array, rank: Array, other: Array, other_rank: Array) -> bool:
    """Add the trends of another cell; whether a number is full then."""
    full = False
    for component in range(number.shape[0]):
        carried(number[component], other[component])
        full |= is_full(number[component])
    for m in range(len(p.measure)):
        if p.measure[m] == MINIMUM:
            rank[m] = min(rank[m], other_rank[m])
        elif p.measure[m] == MAXIMUM:
            rank[m] = max(rank[m], other_rank[m])
    return full


def measure(p: Plan, number: Array, rank: Array, event: int, state: int) -> bool:
    """Let the event at hand contribute to every trend that ends at it; whether that needs more digits."""
    component = 0
    sums = 0
    # A product has as many digits as its factors together.
    if p.limb.shape[0] > 0:
        for at in range(number.shape[1] - p.limb.shape[1], number.shape[1]):
            if number[0, at] != 0:
                return True
    for m in range(len(p.measure)):
        kind = p.measure[m]
        counts = p.measured[m, state]
        if kind == COUNT:
            component += 1
            if counts and p.weight[m, event] > 0:
                carried(number[component], number[0])
        elif kind == SUM:
            component += 1
            if counts:
                carried_product(number[component], p.limb[sums, :, event], number[0])
            sums += 1
        elif counts and kind == MINIMUM:
            rank[m] = min(rank[m], p.weight[m, event])
        elif counts:
            rank[m] = max(rank[m], p.weight[m, event])
    return False


def next_window(p: Plan, o: Layout, c: Cells) -> int:
    """Go on to the next window that holds an event of a partition."""
    r = c.register
    if r[ROWS] == len(c.row_window):
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


def begin_window(p: Plan, c: Cells) -> None:
    """Forget the window before."""
    r = c.register
    r[AT] = r[LOW]
    r[BUSY] = IN_WINDOW
    r[ENDED] = 0
    clear(p, c.scratch[RESULT], c.scratch_rank[RESULT])
    for state in range(len(c.total)):
        clear(p, c.total[state], c.total_rank[state])
        clear(p, c.fresh[state], c.fresh_rank[state])


def extend(p: Plan, o: Layout, c: Cells, code: Code, instance: int) -> int:
    """Aggregate all trends that end at an instance; the number of steps taken."""
    r = c.register
    first_slot = o.first_slot[r[LOW]]
    full = False
    y = p.event[instance]
    w = p.state[instance]
    edges = len(p.source)
    if p.slide > 0:
        start = r[WINDOW] * p.slide
        stop = start + p.within
    else:
        start = r[WINDOW] - p.within + 1
        stop = r[WINDOW] + 1
    number = c.scratch[0]
    rank = c.scratch_rank[0]
    clear(p, number, rank)
    if p.first[w] and open_before(p, edges + w, y, start):
        number[0, 0] = 1
    steps = 1
    for edge in range(p.into[w], p.into[w + 1]):
        if o.total[edge]:
            full |= add(p, number, rank, c.total[p.source[edge]], c.total_rank[p.source[edge]])
            continue
        at = p.pointer[edge] + instance - p.stack[w]
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
                slot = o.slot[earlier] - first_slot
                full |= add(p, number, rank, c.number[slot], c.rank[slot])
    if not is_empty(number):
        full |= measure(p, number, rank, y, w)
        if o.last[w] and unguarded(p, edges + len(p.first) + w, p.after_place, y, stop):
            full |= add(p, c.scratch[RESULT], c.scratch_rank[RESULT], number, rank)
            if p.place[y] == r[WINDOW]:
                r[ENDED] = 1
        if o.totalled[w]:
            full |= add(p, c.fresh[w], c.fresh_rank[w], number, rank)
    if o.slot[instance] >= 0:
        slot = o.slot[instance] - first_slot
        copy(c.number[slot], c.rank[slot], number, rank)
    if full:
        r[CROWDED] = 1
    return steps


def aggregate(p: Plan, o: Layout, c: Cells, code: Code, steps: int) -> int:
    """Aggregate windows for a number of steps; GROW asks for cells with more digits, and begins the window again."""
    r = c.register
    while steps > 0:
        if r[BUSY] != IN_WINDOW:
            if r[BUSY] == BETWEEN:
                status = next_window(p, o, c)
                if status != MORE:
                    return status
            begin_window(p, c)
        at = r[AT]
        if at == r[HIGH]:
            r[BUSY] = BETWEEN
            if not is_empty(c.scratch[RESULT]):
                row = r[ROWS]
                r[ROWS] += 1
                c.row_part[row] = r[PART]
                c.row_window[row] = r[WINDOW]
                c.row_ended[row] = r[ENDED]
                copy(c.row[row], c.row_rank[row], c.scratch[RESULT], c.scratch_rank[RESULT])
            steps -= 1
            continue
        if at > r[LOW] and p.time[at] != p.time[at - 1]:
            for state in range(len(c.fresh)):
                if o.totalled[state]:
                    if add(p, c.total[state], c.total_rank[state], c.fresh[state], c.fresh_rank[state]):
                        r[CROWDED] = 1
                    clear(p, c.fresh[state], c.fresh_rank[state])
        for number in range(o.begin[at], o.begin[at + 1]):
            steps -= extend(p, o, c, code, o.instance[number]) * c.scratch.shape[2]
        if r[CROWDED]:
            r[CROWDED] = 0
            r[BUSY] = AGAIN
            return GROW
        r[AT] = at + 1
        steps -= 1
    return MORE


HELPERS = (
    carried_product,
    is_full,
    clear,
    copy,
    is_empty,
    add,
    measure,
    next_window,
    begin_window,
    extend,
)
