"""Counting trends of one state where an event is extended by one other at most: paths of a forest.

Under contiguous that is the next event, under skip-till-next-match with one order the next lesser one. No two events
have the same time, so that n events have at most n² trends, and a machine word holds their number. A stack has the
events that are not extended yet, an entry for each slide that trends ending there begin in. Under skip-till-next-match
no entry is above a lesser one, so that what an event extends is on top.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.machine import Code
from pipeline.engines.kernels.neighbours import (
    AT,
    END,
    FIRST,
    FIRST_END,
    LAST,
    LAST_END,
    PART,
    ROWS,
    Edges,
    Plan,
    fits,
    move_windows,
)
from pipeline.engines.kernels.status import DONE, DRAIN, MORE
from pipeline.events import Array

# Registers, besides those of neighbours.py; OPEN: whether windows have trends.
HEIGHT, KEPT, PEAK, OPEN = 13, 14, 15, 16
REGISTERS = 17
FEW = 1000  # entries, for which it does not pay to look whether they still matter


class Paths(NamedTuple):
    """What the loop writes."""

    register: Array
    key: Array  # per entry of the stack: the event's key, turned so that a lesser one extends it
    slide: Array  # the slide that its trends begin in
    trends: Array  # how many they are
    older: Array  # by the last bits of a slide: what the event at hand extends of it; zero between events
    result: Array  # by the last bits of a slide: the finished trends that begin in it
    row_part: Array
    row_window: Array
    row_count: Array


def close_window(p: Plan, k: Paths) -> None:
    """Give the row of the first window, which is over: all trends of it and of slides that begin later."""
    r = k.register
    mask = len(k.result) - 1
    total = 0
    for slide in range(r[FIRST], r[LAST] + 1):
        total += k.result[slide & mask]
    k.result[r[FIRST] & mask] = 0
    if total == 0:
        r[OPEN] = 0
        return
    row = r[ROWS]
    r[ROWS] += 1
    k.row_part[row] = r[PART]
    k.row_window[row] = r[FIRST]
    k.row_count[row] = total
    r[FIRST] += 1
    r[FIRST_END] += p.slide


def forget(k: Paths) -> None:
    """Take from the stack what shares no window with later events."""
    r = k.register
    height = 0
    for at in range(r[HEIGHT]):
        if k.slide[at] >= r[FIRST]:
            k.key[height] = k.key[at]
            k.slide[height] = k.slide[at]
            k.trends[height] = k.trends[at]
            height += 1
    r[HEIGHT] = r[KEPT] = height


def count(p: Plan, e: Edges, k: Paths, code: Code, steps: int) -> int:
    """Count for a number of steps."""
    r = k.register
    mask = len(k.result) - 1
    edge = e.number[0, 0]
    sign, loose, keys = 1.0, False, k.key
    if not p.contiguous:
        sign, loose, keys = e.sign[edge], e.loose[edge], e.key[e.x_key[edge]]
    while steps > 0:
        steps -= 1
        y = r[AT]
        if y == r[END] or p.place[y] >= r[FIRST_END]:
            if r[OPEN]:
                if r[ROWS] == len(k.row_window):
                    return DRAIN
                close_window(p, k)
                continue
            if y == r[END]:
                r[HEIGHT] = 0
                r[PART] += 1
                if r[PART] == len(p.begins) - 1:
                    return DONE
                r[END] = p.begins[r[PART] + 1]
        move_windows(p, r, p.place[y])
        if r[HEIGHT] > 2 * r[KEPT] + FEW:
            forget(k)
        first, last, height = r[FIRST], r[LAST], r[HEIGHT]
        limit = min(r[FIRST_END], r[LAST_END])
        end = min(r[END], y + steps)
        begin = y
        total = 0
        while y < end and p.place[y] < limit:
            if p.bound[p.symbol[y]] == p.bound[p.symbol[y] + 1]:
                if p.contiguous:
                    height = 0
                y += 1
                continue
            here = 1
            oldest = last
            low = 0.0 if p.contiguous else sign * keys[y]
            base = height
            if not p.contiguous:
                while base > 0 and (k.key[base - 1] > low or (loose and k.key[base - 1] == low)):
                    base -= 1
            elif height > 0 and edge >= 0 and fits(e, code, edge, y - 1, y):
                base = 0
            for at in range(base, height):
                slide = k.slide[at]
                if slide == last:
                    here += k.trends[at]
                elif slide >= first:
                    k.older[slide & mask] += k.trends[at]
                    oldest = min(oldest, slide)
            height = 0 if p.contiguous else base
            total += here
            if p.contiguous or low == low:
                for slide in range(oldest, last):
                    if k.older[slide & mask] > 0:
                        k.result[slide & mask] += k.older[slide & mask]
                        k.key[height] = low
                        k.slide[height] = slide
                        k.trends[height] = k.older[slide & mask]
                        k.older[slide & mask] = 0
                        height += 1
                k.key[height] = low
                k.slide[height] = last
                k.trends[height] = here
                height += 1
                r[PEAK] = max(r[PEAK], height)
            y += 1
        if total > 0:
            k.result[last & mask] += total
            r[OPEN] = 1
        steps -= y - begin
        r[AT] = y
        r[HEIGHT] = height
    return MORE


HELPERS = (close_window, forget)
