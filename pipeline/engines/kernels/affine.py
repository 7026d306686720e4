"""Trends without conditions between their events: all events of one time change a few aggregates at once, linearly.

A node is a state of the pattern together with what was seen, since the event bound to it, of each negated pattern that
may matter later; its cell holds all partial trends that wait there. The same steps on cells with one slot give a
window's aggregates, and on cells with a slot a node they give the linear map that any aggregates before go through.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, Weights, add_cell, add_trend, clear_cell, extend_cell, is_empty_cell
from pipeline.engines.kernels.numbers import LARGEST, is_crowded
from pipeline.engines.kernels.status import GROW, MORE
from pipeline.engines.kernels.windows import ENDED, HIGH, LOW, WINDOW, Rows, Windows, give_row, next_window
from pipeline.events import Array

AT, BUSY = 8, 9  # registers, besides those of windows.py

ANY, NEXT, CONTIGUOUS = 0, 1, 2
NOTHING, GENERAL = -1, -2  # in `quick`
NO, FREE, GUARDED = 0, 1, 2  # in `first` and `last`


class Affine(NamedTuple):
    """A query as steps on nodes. A carrier is what has nodes: the beginning (if guarded), states, finished trends."""

    time: Array
    symbol: Array
    member: Array  # where each symbol's states begin, in `state`
    state: Array
    quick: Array  # per symbol: the state that alone is changed, by addition alone; or NOTHING, or GENERAL
    offer: Array  # per symbol and negated pattern: its states, as bits
    offers: Array  # per symbol: whether there are any
    into: Array  # where the edges into each state begin; one from the state itself comes first
    source: Array
    open: Array  # per edge: where it is said for which nodes of its source it may be taken, in `allows`; -1: for all
    first: Array  # per state: NO, FREE or GUARDED
    first_open: Array
    last: Array  # per state: NO, FREE or GUARDED
    base: Array  # per state: its first node
    width: Array
    start: int  # the first node of the guarded beginning
    start_width: int
    final: int  # the node of finished trends, if they are kept apart from their states; -1
    final_base: Array  # per state, where trends that end there are kept, if apart; -1
    allows: Array
    carrier: Array  # first node of each carrier that has several
    carrier_width: Array
    carrier_negation: Array  # where each carrier's negated patterns begin
    negation: Array
    shift: Array  # of each: where its bits are in the number of a node
    seen: Array  # per negated pattern: its bits once it has matched, and the mask of all its bits
    mask: Array
    negated: Array  # where each negated pattern's states begin
    negated_first: Array
    negated_last: Array
    before: Array  # per state of a negated pattern: the bits of those before it
    bit: Array
    nodes: int
    semantics: int
    result: Array  # the nodes whose trends count at the window's end
    fresh: int  # the first cell of what this time adds to each state
    scratch: int
    touched: Array  # per state, then how many, then which


def begin_cells(a: Affine, c: Cells, at: int) -> None:
    """Make the nodes from this cell on those of a window's beginning."""
    for node in range(a.nodes):
        clear_cell(c, at + node)
    if a.start_width > 0:
        add_trend(c, at + a.start, 0)


def step_negation(a: Affine, number: int, bits: int, offer: int) -> int:
    """What was seen of a negated pattern, after a time that offers some of its states."""
    if bits == a.seen[number]:
        return bits
    after = bits
    first = a.negated[number]
    for s in range(first, a.negated[number + 1]):
        if offer >> (s - first) & 1 and (a.negated_first[s] or (a.before[s] & bits)):
            if a.negated_last[s]:
                return a.seen[number]  # type: ignore[no-any-return]
            after |= a.bit[s]
    return after


def negate(a: Affine, c: Cells, at: int, begin: int, end: int) -> None:
    """Let the nodes see the negated events of one time."""
    any_offer = False
    for event in range(begin, end):
        any_offer |= a.offers[a.symbol[event]]
    if not any_offer:
        return
    for k in range(len(a.carrier)):
        # What was seen only grows, so that from the highest on nothing is moved twice.
        for q in range(a.carrier_width[k] - 1, -1, -1):
            source = at + a.carrier[k] + q
            if is_empty_cell(c, source):
                continue
            moved = q
            for m in range(a.carrier_negation[k], a.carrier_negation[k + 1]):
                number = a.negation[m]
                offer = 0
                for event in range(begin, end):
                    offer |= a.offer[a.symbol[event], number]
                bits = (q >> a.shift[m]) & a.mask[number]
                moved += (step_negation(a, number, bits, offer) - bits) << a.shift[m]
            if moved != q:
                add_cell(c, at + a.carrier[k] + moved, source)
                clear_cell(c, source)


def add_sources(a: Affine, c: Cells, at: int, w: int, to: int) -> None:
    """Add to a cell what a new event of a state extends."""
    if a.first[w] == FREE:
        add_trend(c, to, 0)
    elif a.first[w] == GUARDED:
        for q in range(a.start_width):
            if a.allows[a.first_open[w] + q]:
                add_cell(c, to, at + a.start + q)
    for edge in range(a.into[w], a.into[w + 1]):
        v = a.source[edge]
        for q in range(a.width[v]):
            if a.open[edge] < 0 or a.allows[a.open[edge] + q]:
                add_cell(c, to, at + a.base[v] + q)


def step_time(a: Affine, c: Cells, w: Weights, at: int, begin: int, end: int) -> None:
    """Take all events of one time."""
    states = len(a.base)
    count = 0
    for event in range(begin, end):
        symbol = a.symbol[event]
        for m in range(a.member[symbol], a.member[symbol + 1]):
            state = a.state[m]
            if not a.touched[state]:
                a.touched[state] = 1
                a.touched[states + count] = state
                count += 1
                clear_cell(c, a.fresh + state)
            to = a.fresh + state
            if not w.plain[state]:
                to = a.scratch
                clear_cell(c, to)
            add_sources(a, c, at, state, to)
            if to == a.scratch and not is_empty_cell(c, to):
                extend_cell(c, w, to, event, state)
                add_cell(c, a.fresh + state, to)
    if a.semantics == NEXT:
        for t in range(count):
            state = a.touched[states + t]
            for edge in range(a.into[state], a.into[state + 1]):
                v = a.source[edge]
                for q in range(a.width[v]):
                    if a.open[edge] < 0 or a.allows[a.open[edge] + q]:
                        clear_cell(c, at + a.base[v] + q)
    elif a.semantics == CONTIGUOUS:
        for v in range(states):
            for q in range(a.width[v]):
                clear_cell(c, at + a.base[v] + q)
    if len(a.carrier) > 0:
        negate(a, c, at, begin, end)
    for t in range(count):
        state = a.touched[states + t]
        a.touched[state] = 0
        fresh = a.fresh + state
        if is_empty_cell(c, fresh):
            continue
        add_cell(c, at + a.base[state], fresh)
        final = a.final_base[state]
        if final >= 0:
            add_cell(c, at + final, fresh)


def ends_here(a: Affine, c: Cells, s: Windows, r: Array) -> bool:
    """Whether a trend ends just where a window does, after its last time was taken."""
    event = r[HIGH] - 1
    while event >= r[LOW] and s.place[event] == r[WINDOW]:
        symbol = a.symbol[event]
        for m in range(a.member[symbol], a.member[symbol + 1]):
            if a.last[a.state[m]] and not is_empty_cell(c, a.fresh + a.state[m]):
                return True
        event -= 1
    return False


def walk(a: Affine, c: Cells, w: Weights, at: int, event: int, high: int, steps: int) -> int:
    """Take events up to `high`, as many as there are steps and room for; the event to go on from."""
    stop = min(high, event + steps)
    while event < stop and not is_crowded(c.numbers):
        symbol = a.symbol[event]
        quick = a.quick[symbol]
        tied = event + 1 < high and a.time[event + 1] == a.time[event]
        if quick == GENERAL or tied:
            end = event + 1
            while end < high and a.time[end] == a.time[event]:
                end += 1
            step_time(a, c, w, at, event, end)
            event = end
            continue
        # So few events cannot fill the room that is still left.
        end = min(event + 8, stop)
        if quick == NOTHING:
            event += 1
            continue
        to = at + a.base[quick]
        first, last = a.into[quick], a.into[quick + 1]
        while True:
            for edge in range(first, last):
                add_cell(c, to, at + a.base[a.source[edge]])
            if a.first[quick]:
                add_trend(c, to, 0)
            event += 1
            if event == end or a.symbol[event] != symbol or (event + 1 < high and a.time[event + 1] == a.time[event]):
                break
    return event


def give_result(a: Affine, rows: Rows, c: Cells) -> None:
    """Give out a window's row."""
    clear_cell(c, a.scratch)
    for at in range(len(a.result)):
        add_cell(c, a.scratch, a.result[at])
    give_row(rows, c, a.scratch)


def aggregate(a: Affine, s: Windows, rows: Rows, c: Cells, w: Weights, steps: int) -> int:
    """Aggregate windows one by one for a number of steps; GROW asks for cells with more room."""
    r = rows.register
    while steps > 0:
        if not r[BUSY]:
            status = next_window(s, rows)
            if status != MORE:
                return status
            r[BUSY] = 1
            r[AT] = r[LOW]
            begin_cells(a, c, 0)
        before = r[AT]
        r[AT] = walk(a, c, w, 0, r[AT], r[HIGH], steps)
        steps -= (r[AT] - before + 1) * (1 + c.numbers.register[LARGEST] // 64)
        if r[AT] < r[HIGH]:
            if is_crowded(c.numbers):
                return GROW
            continue
        r[BUSY] = 0
        if s.slide == 0:
            r[ENDED] = ends_here(a, c, s, r)
        give_result(a, rows, c)
    return MORE


HELPERS = (
    begin_cells,
    step_negation,
    negate,
    add_sources,
    step_time,
    ends_here,
    walk,
    give_result,
)
INLINED = (begin_cells, add_sources, step_time, walk, give_result)
