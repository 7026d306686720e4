"""Trend aggregation under contiguous and skip-till-next-match: each event is extended at one later time at most.

A cell holds what all (partial) trends that end at one event and begin in one slide add up to, so that one pass serves
all windows: a trend is in the windows from the first that holds its end to the last that holds its beginning. Cells
wait in the list of the time that extends them, and are given back after it.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, Weights, add_cell, add_trend, clear_cell, extend_cell
from pipeline.engines.kernels.machine import Code, holds
from pipeline.engines.kernels.numbers import LARGEST, clear, is_crowded
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.events import Array

# Registers: where the loop is; lists of cells; the windows that hold the event at hand, and where they change.
PART, AT, END, WAITING, RESULTS, FREE, SPARE, USED, ROWS, FIRST, FIRST_END, LAST, LAST_END = range(13)
REGISTERS = 13


class Plan(NamedTuple):
    """What the loops read."""

    time: Array
    place: Array
    begins: Array  # where each partition's events begin, and the last one's end
    symbol: Array  # per event
    bound: Array  # where each symbol's states begin, in `state`
    state: Array
    first: Array  # per state: whether it may begin a trend
    last: Array
    open: Array  # whether another state follows it
    within: int
    slide: int
    first_window: int  # the least number of a window
    contiguous: bool
    alone: bool  # skip-till-next-match, one state, no two events at a time: what waits for a time waits for its event


class Edges(NamedTuple):
    """What events must satisfy to be neighbours: equal codes, keys in order, or a program."""

    number: Array  # per two states: the edge between them; -1: none
    x_code: Array  # per edge: row of `code` for the earlier event; -1: no equality
    y_code: Array
    x_key: Array  # row of `key`; -1: no order
    y_key: Array
    sign: Array  # 1: the later event's key is to be less; -1: greater
    loose: Array  # or equal
    program: Array
    code: Array  # per row and event; -1: null
    key: Array  # per row and event; NaN: null


class Work(NamedTuple):
    """What the loop writes besides the cells."""

    register: Array
    plenty: int  # as many cells as any event may need
    extension: Array  # skip-till-next-match: per state of its symbol and event, where the time begins that extends it
    head: Array  # the list of the time that begins at an event; contiguous: only of the next time
    next: Array  # per cell: the one behind it in its list
    event: Array  # per cell
    state: Array
    slide: Array  # per cell: the slide that its trends begin in, which is the last window that holds them
    own: Array  # by the last bits of a slide: the event's own cell
    result: Array  # and the cell of all finished trends
    row_part: Array  # finished rows have the first cells
    row_window: Array


def fits(e: Edges, code: Code, edge: int, x: int, y: int) -> bool:
    """Whether two events satisfy the conditions of an edge."""
    if e.x_code[edge] >= 0:
        wanted = e.code[e.x_code[edge], x]
        if wanted < 0 or wanted != e.code[e.y_code[edge], y]:
            return False
    if e.x_key[edge] >= 0:
        high = e.sign[edge] * e.key[e.x_key[edge], x]
        low = e.sign[edge] * e.key[e.y_key[edge], y]
        return bool(low < high or (e.loose[edge] and low == high))
    return bool(e.program[edge] < 0 or holds(code, e.program[edge], x, y))


def take(k: Work, c: Cells, slide: int, behind: int) -> int:
    """An empty cell, put before a list."""
    r = k.register
    cell = r[FREE]
    if cell >= 0:
        r[FREE] = k.next[cell]
    else:
        cell = r[USED]
        r[USED] += 1
    r[SPARE] -= 1
    k.slide[cell] = slide
    k.next[cell] = behind
    clear_cell(c, cell)
    return int(cell)


def give_back(k: Work, cell: int) -> None:
    """Make a cell free."""
    r = k.register
    k.next[cell] = r[FREE]
    r[FREE] = cell
    r[SPARE] += 1


def drop(k: Work, cell: int) -> None:
    """Give a list of cells back."""
    while cell >= 0:
        behind = k.next[cell]
        give_back(k, cell)
        cell = behind


def lacks_cells(p: Plan, k: Work, at: int) -> bool:
    """Whether an event may need more cells than there are: a state of it, and the results, one a slide that lives."""
    r = k.register
    symbol = p.symbol[at]
    slides = min(r[LAST] - r[FIRST], len(k.next) - r[SPARE]) + 1
    return bool(r[SPARE] < (p.bound[symbol + 1] - p.bound[symbol] + 1) * slides)


def move_windows(p: Plan, r: Array, place: int) -> None:
    """Find the first and the last window that hold a place."""
    r[FIRST] = max(p.first_window, (place - p.within) // p.slide + 1)
    r[FIRST_END] = r[FIRST] * p.slide + p.within
    r[LAST] = place // p.slide
    r[LAST_END] = (r[LAST] + 1) * p.slide


def close_window(p: Plan, k: Work, c: Cells) -> None:
    """Add up the first window, which is over: all results of it and of those that begin later."""
    r = k.register
    row = r[ROWS]
    r[ROWS] += 1
    k.row_part[row] = r[PART]
    k.row_window[row] = r[FIRST]
    clear_cell(c, row)
    cell = r[RESULTS]
    before = -1
    while cell >= 0:
        behind = k.next[cell]
        add_cell(c, row, cell)
        if k.slide[cell] > r[FIRST]:
            before = cell
        else:
            if before < 0:
                r[RESULTS] = behind
            else:
                k.next[before] = behind
            k.result[r[FIRST] & (len(k.result) - 1)] = -1
            give_back(k, cell)
        cell = behind
    r[FIRST] += 1
    r[FIRST_END] += p.slide


def next_time(p: Plan, k: Work, at: int) -> None:
    """Forget the events that the time before extended, and find those that this one does."""
    r = k.register
    drop(k, r[WAITING])
    time = 0 if p.contiguous else at
    r[WAITING] = k.head[time]
    k.head[time] = -1


def gather(p: Plan, e: Edges, k: Work, c: Cells, code: Code, y: int, state: int) -> tuple[int, int]:
    """Add up what an event extends, by slides; the list of its cells, and the number of steps taken."""
    r = k.register
    mask = len(k.own) - 1
    mine = x = v = -1
    if p.first[state] and not p.alone:
        mine = take(k, c, r[LAST], mine)
        k.own[r[LAST] & mask] = mine
        add_trend(c, mine, 0)
    fit = p.alone
    steps = 1
    cell = r[WAITING]
    if p.alone:
        r[WAITING] = -1
    while cell >= 0:
        behind = k.next[cell]
        slide = k.slide[cell]
        if slide >= r[FIRST]:
            if not p.alone and (k.event[cell] != x or k.state[cell] != v):
                x = k.event[cell]
                v = k.state[cell]
                edge = e.number[v, state]
                fit = edge >= 0 and fits(e, code, edge, x, y)
            if fit:
                own = k.own[slide & mask]
                if own < 0 and p.alone:  # nothing else needs the cell: it becomes the event's own
                    k.next[cell] = mine
                    k.own[slide & mask] = mine = own = cell
                elif own < 0:
                    k.own[slide & mask] = mine = own = take(k, c, slide, mine)
                if own != cell:
                    add_cell(c, own, cell)
        if p.alone and mine != cell:
            give_back(k, cell)
        steps += 1
        cell = behind
    if p.first[state] and p.alone:
        own = k.own[r[LAST] & mask]
        if own < 0:
            k.own[r[LAST] & mask] = mine = own = take(k, c, r[LAST], mine)
        add_trend(c, own, 0)
    return mine, steps


def finish(k: Work, c: Cells, cell: int) -> None:
    """Add a cell to the finished trends."""
    at = k.slide[cell] & (len(k.result) - 1)
    if k.result[at] < 0:
        k.result[at] = k.register[RESULTS] = take(k, c, k.slide[cell], k.register[RESULTS])
    add_cell(c, k.result[at], cell)


def aggregate(p: Plan, e: Edges, k: Work, c: Cells, w: Weights, code: Code, steps: int) -> int:
    """Aggregate for a number of steps; GROW asks for cells with more room, or for more cells."""
    r = k.register
    while steps > 0:
        steps -= 1
        if is_crowded(c.numbers):
            return GROW
        y = r[AT]
        if y == r[END] or p.place[y] >= r[FIRST_END]:
            if r[RESULTS] >= 0:
                if r[ROWS] == len(k.row_window):
                    return DRAIN
                close_window(p, k, c)
                continue
            if y == r[END]:
                drop(k, r[WAITING])
                drop(k, k.head[0])
                r[WAITING] = k.head[0] = -1
                r[PART] += 1
                if r[PART] == len(p.begins) - 1:
                    return DONE
                r[END] = p.begins[r[PART] + 1]
            move_windows(p, r, p.place[y])
        elif p.place[y] >= r[LAST_END]:
            move_windows(p, r, p.place[y])
        if r[SPARE] < k.plenty and lacks_cells(p, k, y):
            return GROW
        if y == p.begins[r[PART]] or p.time[y] != p.time[y - 1]:
            next_time(p, k, y)
        first = p.bound[p.symbol[y]]
        for number in range(first, p.bound[p.symbol[y] + 1]):
            state = p.state[number]
            mine, walked = gather(p, e, k, c, code, y, state)
            steps -= walked * (1 + c.numbers.register[LARGEST])
            time = 0 if p.open[state] else -1
            if not p.contiguous:
                time = k.extension[number - first, y]
            while mine >= 0:
                cell = mine
                mine = k.next[cell]
                k.own[k.slide[cell] & (len(k.own) - 1)] = -1
                if not w.plain[state]:
                    extend_cell(c, w, cell, y, state)
                if p.last[state]:
                    finish(k, c, cell)
                if time < 0:
                    give_back(k, cell)
                    continue
                k.event[cell] = y
                k.state[cell] = state
                k.next[cell] = k.head[time]
                k.head[time] = cell
        r[AT] = y + 1
    return MORE


HELPERS = (
    fits,
    take,
    give_back,
    drop,
    lacks_cells,
    move_windows,
    close_window,
    next_time,
    gather,
    finish,
)
# A call would take longer than what they do.
INLINED = (clear, clear_cell, fits, take, give_back, drop, next_time, gather, finish)
