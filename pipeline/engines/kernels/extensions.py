"""Skip-till-next-match: the time that first extends each event, found from the last event back without a scan.

Of the later events that an edge can lead to, a stack keeps those that some event may meet first: of events with the
same code, each one's key is less than those of all nearer ones. So the first that satisfies an order is found by a
binary search, and without an order it is the nearest one, the only one that is kept. Only conditions that are no
equality and order of two single values are tested event by event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.engines.kernels.machine import Code
from pipeline.engines.kernels.neighbours import Edges, Plan, fits
from pipeline.engines.kernels.status import DONE, MORE
from pipeline.events import Array

NEAR = 8  # steps from the top of a stack, before the search begins to halve it
# Registers: partitions and events that are left, where the present slide begins, the nearest later event.
PART, AT, SLIDE, NEAREST = range(4)
REGISTERS = 4


class Index(NamedTuple):
    """The stacks of later events; edges to the same events, compared in the same way, share theirs."""

    register: Array
    out: Array  # where the edges out of each state begin, in `out_edge`
    out_edge: Array
    target: Array  # state that an edge enters
    member: Array  # per symbol and state
    of_edge: Array  # the index of each edge; -1: its events are tested one by one
    code: Array  # per index: row of its events' codes; -1: none
    key: Array  # row of its events' keys; -1: the nearest event will do
    sign: Array
    first: Array  # the first stack of each index, which has one a code
    indexed: Array  # where each symbol's indexes begin, in `entry`
    entry: Array
    begin: Array  # where each stack begins
    height: Array
    stack_key: Array  # least first
    stack_tie: Array  # where the event's time begins


def nearest(n: Index, stack: int, limit: float, loose: bool, end: int) -> int:
    """Where the first time begins at which a stack has a key below a limit; `end`: at none."""
    bottom = n.begin[stack]
    low = bottom - 1
    high = low + n.height[stack]
    if high < bottom or n.stack_tie[high] >= end:
        return end
    # Most are found near the top; the others in the middle of what is left.
    for _ in range(NEAR):
        if low == high or n.stack_key[high] < limit or (loose and n.stack_key[high] == limit):
            low = high
            break
        high -= 1
    while low < high:
        at = (low + high + 1) >> 1
        if n.stack_key[at] < limit or (loose and n.stack_key[at] == limit):
            low = at
        else:
            high = at - 1
    return end if low < bottom else int(n.stack_tie[low])


def push(n: Index, stack: int, key: float, tie: int, end: int) -> None:
    """Put an event on a stack instead of those that no earlier event meets first any more."""
    begin = n.begin[stack]
    top = begin + n.height[stack] - 1
    if top >= begin and n.stack_tie[top] >= end:  # of the partition after this one
        top = begin - 1
    while top >= begin and n.stack_key[top] >= key:
        top -= 1
    top += 1
    n.stack_key[top] = key
    n.stack_tie[top] = tie
    n.height[stack] = top - begin + 1


def search(e: Edges, n: Index, edge: int, x: int, end: int) -> int:
    """Where the first time begins at which an indexed edge extends an event."""
    code = 0
    if e.x_code[edge] >= 0:
        code = e.code[e.x_code[edge], x]
        if code < 0:
            return end
    limit = np.inf
    if e.x_key[edge] >= 0:
        limit = e.sign[edge] * e.key[e.x_key[edge], x]
    return nearest(n, n.first[n.of_edge[edge]] + code, limit, e.loose[edge], end)


def add(p: Plan, e: Edges, n: Index, y: int, tie: int, end: int) -> None:
    """Put an event on the stacks of its indexes."""
    symbol = p.symbol[y]
    for number in range(n.indexed[symbol], n.indexed[symbol + 1]):
        index = n.entry[number]
        code = 0
        key = 0.0
        if n.code[index] >= 0:
            code = e.code[n.code[index], y]
        if n.key[index] >= 0:
            key = n.sign[index] * e.key[n.key[index], y]
        if code >= 0 and key == key:
            push(n, n.first[index] + code, key, tie, end)


def extend(p: Plan, e: Edges, n: Index, extension: Array, code: Code, steps: int) -> int:
    """Find, for a number of steps, where the time begins that first extends each event in each of its states."""
    r = n.register
    while steps > 0:
        stop = r[AT]
        if stop == p.begins[r[PART]]:
            r[PART] -= 1
            if r[PART] < 0:
                return DONE
            continue
        end = p.begins[r[PART] + 1]
        tie = stop - 1
        while tie > p.begins[r[PART]] and p.time[tie - 1] == p.time[tie]:
            tie -= 1
        for x in range(tie, stop):
            if not r[SLIDE] <= p.place[x] < r[SLIDE] + p.slide:
                r[SLIDE] = p.place[x] // p.slide * p.slide
            # Beyond this place nothing shares a window with x, so that it does not matter what extends it there.
            horizon = r[SLIDE] + p.within
            first = p.bound[p.symbol[x]]
            for number in range(first, p.bound[p.symbol[x] + 1]):
                steps -= 1
                found = end
                for at in range(n.out[p.state[number]], n.out[p.state[number] + 1]):
                    edge = n.out_edge[at]
                    if n.of_edge[edge] >= 0:
                        found = min(found, search(e, n, edge, x, end))
                        continue
                    y = stop
                    while y < found and p.place[y] < horizon:
                        steps -= 1
                        if n.member[p.symbol[y], n.target[edge]] and fits(e, code, edge, x, y):
                            while p.time[y - 1] == p.time[y]:
                                y -= 1
                            found = y
                        y += 1
                extension[number - first, x] = found if found < end and p.place[found] < horizon else -1
        for y in range(tie, stop):
            add(p, e, n, y, tie, end)
        r[AT] = tie
    return MORE


def chain(p: Plan, e: Edges, r: Array, extension: Array, steps: int) -> int:
    """The same for a chain: an event is extended by the next lesser one, to which those that are not less lead."""
    key, found = e.key[e.x_key[0]], extension[0]
    sign, loose = e.sign[0], e.loose[0]
    while steps > 0:
        begin = p.begins[r[PART]]
        if r[AT] == begin:
            r[PART] -= 1
            if r[PART] < 0:
                return DONE
            r[NEAREST], r[SLIDE] = -1, 2**62
            continue
        slide, near = r[SLIDE], r[NEAREST]
        x = r[AT]
        while x > begin and steps > 0:
            x -= 1
            steps -= 1
            found[x] = -1
            high = sign * key[x]
            if p.bound[p.symbol[x]] == p.bound[p.symbol[x] + 1] or high != high:
                continue
            y = near
            while y >= 0 and (sign * key[y] > high or (not loose and sign * key[y] == high)):
                y = found[y]
                steps -= 1
            near = x
            if p.place[x] < slide:
                slide = p.place[x] // p.slide * p.slide
            if y >= 0 and p.place[y] < slide + p.within:
                found[x] = y
        r[AT], r[SLIDE], r[NEAREST] = x, slide, near
    return MORE


HELPERS = (nearest, push, search, add)
INLINED = HELPERS  # a call would take longer than what they do
