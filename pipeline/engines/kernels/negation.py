"""The matches of a negated pattern nearest to each event: the first to end after it, the last to begin before it.

One pass back and one forth over the events sorted by partition and time. An edge without conditions needs only the
best of all later (earlier) events; one with conditions looks at each of them.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.machine import Code, holds
from pipeline.engines.kernels.status import DONE, MORE
from pipeline.events import Array


class Pattern(NamedTuple):
    """A negated pattern over the events in their order by partition and time."""

    event: Array  # index in the stream of each event in this order
    part: Array
    place: Array
    tie: Array  # where the events of the same partition and time begin, in this order
    tie_end: Array
    member: Array  # per state and event
    first: Array
    last: Array
    source: Array  # of each edge
    target: Array
    program: Array
    within: int  # no gap is longer


class Nearest(NamedTuple):
    """What the passes find; `at` says where they are, so that they can be interrupted."""

    at: Array  # next event back, next event forth
    end: Array  # per state and event: the first event that ends a match which goes on from here; the size: none
    begin: Array  # per state and event: the last event that begins a match which comes this far; -1: none
    best_end: Array  # per state, over the later times of the partition
    best_begin: Array  # per state, over the earlier ones
    after: Array  # per event: the end of the first match that begins after it
    before: Array  # per event: the beginning of the last match that ends before it


def back(p: Pattern, n: Nearest, code: Code, steps: int) -> int:
    """Go from the last event to the first for a number of steps."""
    size = len(p.event)
    states = len(p.first)
    while steps > 0:
        high = n.at[0]
        if high == 0:
            return DONE
        low = p.tie[high - 1]
        if high == size or p.part[high] != p.part[high - 1]:
            n.best_end[:] = size
        for x in range(low, high):
            n.after[x] = size
            for v in range(states):
                if p.first[v]:
                    n.after[x] = min(n.after[x], n.best_end[v])
                best = x if p.last[v] else size
                for e in range(len(p.source)):
                    if p.source[e] != v or not p.member[v, x]:
                        continue
                    w = p.target[e]
                    if p.program[e] < 0:
                        best = min(best, n.best_end[w])
                        continue
                    for y in range(high, size):
                        steps -= 1
                        if y >= best or p.part[y] != p.part[x] or p.place[y] - p.place[x] >= p.within:
                            break
                        if n.end[w, y] < best and holds(code, p.program[e], p.event[x], p.event[y]):
                            best = n.end[w, y]
                n.end[v, x] = best if p.member[v, x] else size
                steps -= 1
        for v in range(states):
            for x in range(low, high):
                n.best_end[v] = min(n.best_end[v], n.end[v, x])
        n.at[0] = low
    return MORE


def forth(p: Pattern, n: Nearest, code: Code, steps: int) -> int:
    """Go from the first event to the last for a number of steps."""
    size = len(p.event)
    states = len(p.first)
    while steps > 0:
        low = n.at[1]
        if low == size:
            return DONE
        high = p.tie_end[low]
        if low == 0 or p.part[low] != p.part[low - 1]:
            n.best_begin[:] = -1
        for y in range(low, high):
            n.before[y] = -1
            for w in range(states):
                if p.last[w]:
                    n.before[y] = max(n.before[y], n.best_begin[w])
                best = y if p.first[w] else -1
                for e in range(len(p.source)):
                    if p.target[e] != w or not p.member[w, y]:
                        continue
                    v = p.source[e]
                    if p.program[e] < 0:
                        best = max(best, n.best_begin[v])
                        continue
                    x = low - 1
                    while x > best and x >= 0:
                        steps -= 1
                        if p.part[x] != p.part[y] or p.place[y] - p.place[x] >= p.within:
                            break
                        if n.begin[v, x] > best and holds(code, p.program[e], p.event[x], p.event[y]):
                            best = n.begin[v, x]
                        x -= 1
                n.begin[w, y] = best if p.member[w, y] else -1
                steps -= 1
        for w in range(states):
            for y in range(low, high):
                n.best_begin[w] = max(n.best_begin[w], n.begin[w, y])
        n.at[1] = high
    return MORE
