"""Overlapping windows out of panes: each pane's linear map is made once, and a window is the product of its panes.

The panes of a window are in two stacks. Of those in front, the product of each with all behind it is known; those at
the back are multiplied as they come. When the front is used up, the back becomes the front. So a pane takes part in
two products, however many windows it is in.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.affine import Affine, begin_cells, walk
from pipeline.engines.kernels.cells import (
    Cells,
    Weights,
    add_cell,
    add_product,
    add_trend,
    clear_cell,
    has_trend,
    is_empty_cell,
    trim_cell,
)
from pipeline.engines.kernels.numbers import LARGEST, is_crowded, lacks_room
from pipeline.engines.kernels.status import GROW, MORE
from pipeline.engines.kernels.windows import (
    ENDED,
    HIGH,
    LOW,
    PART,
    WINDOW,
    Rows,
    Windows,
    give_row,
    next_window,
    start_and_stop,
)
from pipeline.events import Array

# Registers, besides those of windows.py: the event to go on with, the stacks' ends, and what is to be done.
EVENT, LO, MID, HI, PHASE, KNOWN_PART, PANE_END, FLIP = range(8, 16)
WAIT, BUILD, BACK, FRONT, RESULT, LAST, LAST_BACK, LAST_RESULT, GIVE = range(9)
IN_MATRICES, IN_VECTORS = 0, 1  # which numbers GROW asks more room for


class Panes(NamedTuple):
    """Where the maps are. Those of nodes have a slot a row: what waited at a node, or (row 0) began in the pane."""

    length: int  # of a pane
    ring: int  # how many panes' maps are kept
    number: Array  # of each kept pane
    row: Array  # per node: its row, -1 where what waits there takes no part in later events
    stays: Array  # per node: whether what waits there stays, though it has no row
    back: Array  # the maps at the back, and a spare one: their first cells; then the same of the flip
    constant: int  # the cell that is one in row 0
    stored: int  # the first cell of maps that are there already, one an event; -1: events are
    front: int  # among the vectors: that of each kept pane
    vector: int  # of the window
    result: int
    one: int
    grow: Array  # which numbers need room


def make_identity(a: Affine, g: Panes, m: Cells, at: int) -> None:
    """Make the map that changes nothing."""
    for node in range(a.nodes):
        clear_cell(m, at + node)
        if g.row[node] >= 0:
            add_trend(m, at + node, g.row[node])


def most_digits(c: Cells, first: int, count: int) -> int:
    """The most digits of some cells."""
    most = 0
    for block in range(first * c.parts, (first + count) * c.parts):
        most = max(most, c.numbers.size[block])
    return int(most)


def has_room(a: Affine, g: Panes, c: Cells, x: int, f: Cells, y: int, which: int) -> bool:
    """Whether there is room for the product of two maps; if not, ask for it."""
    if lacks_room(c.numbers, most_digits(c, x, a.nodes) + most_digits(f, y, a.nodes) + 2):
        g.grow[which] = 1
        return False
    return True


def multiply(a: Affine, g: Panes, m: Cells, to: int, x: int, y: int) -> None:
    """Make a map that of x, then y."""
    for node in range(a.nodes):
        clear_cell(m, to + node)
        add_product(m, to + node, g.constant, m, y + node, 0)
        for k in range(a.nodes):
            if g.row[k] >= 0 and not is_empty_cell(m, x + k):
                add_product(m, to + node, x + k, m, y + node, g.row[k])
        if g.stays[node]:
            add_cell(m, to + node, x + node)
        trim_cell(m, to + node)


def first_row(a: Affine, g: Panes, m: Cells, v: Cells, at: int, to: int) -> None:
    """Write down as a vector what a map makes of a window's beginning."""
    for node in range(a.nodes):
        clear_cell(v, to + node)
        add_product(v, to + node, g.one, m, at + node, 0)
        if a.start_width > 0:
            add_product(v, to + node, g.one, m, at + node, g.row[a.start])


def apply(a: Affine, g: Panes, m: Cells, v: Cells, x: int, y: int, node: int, to: int) -> None:
    """Add to a cell what a map makes of a vector, at one node."""
    add_product(v, to, g.one, m, y + node, 0)
    for k in range(a.nodes):
        if g.row[k] >= 0 and not is_empty_cell(v, x + k):
            add_product(v, to, x + k, m, y + node, g.row[k])


def build(a: Affine, g: Panes, s: Windows, r: Array, m: Cells, w: Weights, high: int, steps: int) -> int:
    """Make the map of the next pane before `high`, or as much of it as there are steps for; how many were taken."""
    at = r[HI] % g.ring * a.nodes
    if r[PANE_END] <= r[EVENT]:
        number = s.place[r[EVENT]] // g.length
        end = r[EVENT] + 1
        while end < high and s.place[end] < (number + 1) * g.length:
            end += 1
        r[PANE_END] = end
        g.number[r[HI] % g.ring] = number
        make_identity(a, g, m, at)
    if g.stored >= 0:
        for node in range(a.nodes):
            clear_cell(m, at + node)
            add_cell(m, at + node, g.stored + r[EVENT] * a.nodes + node)
        r[EVENT] += 1
        return 1
    before = r[EVENT]
    r[EVENT] = walk(a, m, w, at, r[EVENT], r[PANE_END], steps)
    if r[EVENT] == r[PANE_END]:
        for node in range(a.nodes):
            trim_cell(m, at + node)
    elif is_crowded(m.numbers):
        g.grow[IN_MATRICES] = 1
    return int(r[EVENT] - before) + 1


def push_back(a: Affine, g: Panes, r: Array, m: Cells) -> bool:
    """Multiply the maps at the back with that of the next pane; False where there is no room."""
    at = r[HI] % g.ring * a.nodes
    if not has_room(a, g, m, g.back[0], m, at, IN_MATRICES):
        return False
    multiply(a, g, m, g.back[1], g.back[0], at)
    g.back[0], g.back[1] = g.back[1], g.back[0]
    r[HI] += 1
    return True


def flip(a: Affine, g: Panes, r: Array, m: Cells, v: Cells) -> bool:
    """Take the next pane from the back to the front; False where there is no room."""
    pane = r[FLIP] - 1
    at = pane % g.ring * a.nodes
    if not has_room(a, g, m, at, m, g.back[2], IN_MATRICES):
        return False
    if lacks_room(v.numbers, most_digits(m, at, a.nodes) + most_digits(m, g.back[2], a.nodes) + 2):
        g.grow[IN_VECTORS] = 1
        return False
    multiply(a, g, m, g.back[3], at, g.back[2])
    g.back[2], g.back[3] = g.back[3], g.back[2]
    first_row(a, g, m, v, g.back[2], g.front + pane % g.ring * a.nodes)
    r[FLIP] = pane
    return True


def make_vector(a: Affine, g: Panes, r: Array, m: Cells, v: Cells) -> bool:
    """What waits at each node after all the window's panes; False where there is no room."""
    front = g.front + r[LO] % g.ring * a.nodes
    if r[LO] == r[MID]:
        front = g.vector + a.nodes
        begin_cells(a, v, front)
    if not has_room(a, g, v, front, m, g.back[0], IN_VECTORS):
        return False
    for node in range(a.nodes):
        clear_cell(v, g.vector + node)
        apply(a, g, m, v, front, g.back[0], node, g.vector + node)
        if g.stays[node]:
            add_cell(v, g.vector + node, front + node)
        trim_cell(v, g.vector + node)
    return True


def add_last(a: Affine, g: Panes, r: Array, m: Cells, v: Cells) -> bool:
    """Without SLIDE: let the window's last time end trends; False where there is no room."""
    at = (r[HI] - 1) % g.ring * a.nodes
    if not has_room(a, g, v, g.vector, m, at, IN_VECTORS):
        return False
    clear_cell(v, g.result)
    apply(a, g, m, v, g.vector, at, a.final, g.result)
    r[ENDED] = has_trend(v, g.result, 0)
    add_cell(v, g.result, g.vector + a.final)
    return True


def open_window(a: Affine, g: Panes, s: Windows, r: Array, m: Cells) -> None:
    """Forget what a new window does not hold."""
    if r[KNOWN_PART] != r[PART]:
        r[KNOWN_PART] = r[PART]
        r[EVENT] = r[PANE_END] = s.begins[r[PART]]
        r[LO] = r[MID] = r[HI] = 0
        make_identity(a, g, m, g.back[0])
    start, _ = start_and_stop(s, r[WINDOW])
    while r[LO] < r[HI] and g.number[r[LO] % g.ring] * g.length < start:
        r[LO] += 1
    if r[EVENT] < r[LOW]:
        r[EVENT] = r[PANE_END] = r[LOW]


def step(a: Affine, g: Panes, s: Windows, rows: Rows, m: Cells, v: Cells, w: Weights, steps: int) -> int:
    """Do what is next in a window; the number of steps taken."""
    r = rows.register
    taken = 0
    if r[PHASE] == BUILD or r[PHASE] == LAST:
        # Without SLIDE the window's last time is taken after all the others.
        if r[PHASE] == LAST or (r[EVENT] < r[HIGH] and (s.slide > 0 or s.place[r[EVENT]] < r[WINDOW])):
            taken = build(a, g, s, r, m, w, r[HIGH], steps)
            if r[EVENT] == r[PANE_END]:
                r[PHASE] = BACK if r[PHASE] == BUILD else LAST_BACK
        elif r[LO] > r[MID]:
            r[PHASE] = FRONT
            r[FLIP] = r[HI]
            make_identity(a, g, m, g.back[2])
        else:
            r[PHASE] = RESULT
    elif r[PHASE] == BACK or r[PHASE] == LAST_BACK:
        if push_back(a, g, r, m):
            r[PHASE] = BUILD if r[PHASE] == BACK else LAST_RESULT
    elif r[PHASE] == FRONT:
        if r[FLIP] > r[LO]:
            flip(a, g, r, m, v)
        else:
            r[MID] = r[HI]
            make_identity(a, g, m, g.back[0])
            r[PHASE] = RESULT
    elif r[PHASE] == RESULT:
        if make_vector(a, g, r, m, v):
            clear_cell(v, g.result)
            for at in range(len(a.result)):
                add_cell(v, g.result, g.vector + a.result[at])
            r[PHASE] = GIVE if r[EVENT] == r[HIGH] else LAST
    elif r[PHASE] == LAST_RESULT:
        if add_last(a, g, r, m, v):
            r[PHASE] = GIVE
    else:
        give_row(rows, v, g.result)
        r[PHASE] = WAIT
    return taken


def slide(a: Affine, g: Panes, s: Windows, rows: Rows, m: Cells, v: Cells, w: Weights, steps: int) -> int:
    """Aggregate windows for a number of steps; GROW asks for more room, as `grow` says."""
    r = rows.register
    while steps > 0:
        if g.grow[IN_MATRICES] or g.grow[IN_VECTORS]:
            return GROW
        if r[PHASE] == WAIT:
            status = next_window(s, rows)
            if status != MORE:
                return status
            open_window(a, g, s, r, m)
            r[PHASE] = BUILD
        steps -= 1 + (a.nodes + m.numbers.register[LARGEST]) // 8
        steps -= step(a, g, s, rows, m, v, w, steps)
    return MORE


HELPERS = (
    make_identity,
    most_digits,
    has_room,
    multiply,
    first_row,
    apply,
    build,
    push_back,
    flip,
    make_vector,
    add_last,
    open_window,
    step,
)
