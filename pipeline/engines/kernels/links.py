"""Nishimura's construction: rounds of a depth-first search forward along links, which may cache partial matches.

Like SASE's, the search keeps all its state in arrays and stops after a number of steps.
"""

from __future__ import annotations

from pipeline.engines.kernels import rounds
from pipeline.engines.kernels.machine import Code, holds
from pipeline.engines.kernels.rounds import (
    BASE,
    CACHED,
    CLOSE,
    CLUSTER,
    CLUSTER_END,
    COUNTED,
    DEPTH,
    ENDED,
    ENTRY,
    FIRST,
    FREED,
    HITS,
    HOLDER,
    LEAVE,
    LINKS,
    MEMBER,
    NEXT,
    OPEN,
    PART,
    PEAK,
    SEARCH,
    STAGE,
    UNUSED,
    WINDOW,
    Layout,
    Work,
    add_cell,
    build_match,
    clear_cell,
    close_window,
    next_window,
    window_of_start,
)
from pipeline.engines.kernels.sase import FIRST_FREE, MAX_TRENDS, ROWS, TRENDS, Plan, measure
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, LIMIT, MORE


def open_part(p: Plan, y: Layout, w: Work) -> None:
    """Begin a partition with empty stacks."""
    register = w.register
    for state in range(len(w.low)):
        w.low[state] = w.loaded[state] = y.bound[register[PART], state]
    register[FIRST] = w.low[0]
    register[WINDOW] = 0 if p.slide == 0 else -(2**62)
    drop_unreached(y, w)


def drop_unreached(y: Layout, w: Work) -> None:
    """Drop the events that the first events on the stack do not lead to: those below every link."""
    part = w.register[PART]
    reached = w.register[FIRST]
    for state in range(len(w.low)):
        end = y.bound[part + 1, state]
        if state > 0:
            reached = min(y.link[reached], end) if reached < y.bound[part + 1, state - 1] else end
        w.low[state] = max(w.low[state], reached)
        w.loaded[state] = max(w.loaded[state], reached)


def open_round(p: Plan, y: Layout, w: Work) -> int:
    """Put the events of the oldest first event's window on the stacks (STEP 1); the number of events looked at."""
    register = w.register
    first = register[FIRST]
    start = p.event[first]
    last_window = window_of_start(p, p.place[start])
    horizon = last_window + 1 if p.slide == 0 else last_window * p.slide + p.within
    looked = 1
    for state in range(len(w.low)):
        begin = w.loaded[state]
        while w.loaded[state] < y.bound[register[PART] + 1, state] and p.place[p.event[w.loaded[state]]] < horizon:
            w.loaded[state] += 1
        looked += w.loaded[state] - begin
        if state == 0:
            for instance in range(begin, w.loaded[0]):
                clear_cell(p, w, instance % y.starts)
                w.head[instance % y.starts] = -1
    final = len(w.low) - 1
    if w.low[final] < w.loaded[final]:
        register[STAGE] = SEARCH
        register[HOLDER] = first if y.caches else w.loaded[0]
        register[ENTRY] = -1
        register[NEXT] = first
    else:
        register[STAGE] = CLOSE if register[COUNTED] > 0 else LEAVE
    if p.slide == 0:
        register[WINDOW] = max(register[WINDOW], y.moment[start])
    register[ENDED] = w.low[final]
    for instance in range(w.low[final], w.loaded[final]):
        clear_cell(p, w, y.starts + instance % y.ends)
    total = len(w.cell_count) - 1
    clear_cell(p, w, total)
    if register[COUNTED] > 0 and next_window(p, y, w, p.group[start]) <= last_window:
        looked += w.loaded[0] - first
        for instance in range(first, w.loaded[0]):
            if w.cell_count[instance % y.starts] > 0:
                add_cell(p, w, total, instance % y.starts)
    return looked


def next_path(p: Plan, y: Layout, w: Work) -> None:
    """Begin the next path: a cached partial match (STEP 2), or first events that have the same link (STEP 3)."""
    register = w.register
    if register[ENTRY] >= 0:
        entry = register[ENTRY]
        register[ENTRY] = w.cache_next[entry]
        depth = w.cache_length[entry] - 1
        for at in range(1, depth + 1):
            w.path[at] = w.cache_path[entry, at]
            measure(p, w, at, w.path[at])
        register[CLUSTER] = w.cache_path[entry, 0]
        register[CLUSTER_END] = register[CLUSTER] + 1
    elif register[HOLDER] < w.loaded[0]:
        register[ENTRY] = w.head[register[HOLDER] % y.starts]
        register[HOLDER] += 1
        return
    elif register[NEXT] < w.loaded[0]:
        depth = 0
        begin = max(register[NEXT], w.low[0])
        end = begin + 1
        if len(w.low) == 1:
            end = w.loaded[0]
        elif y.clusters:
            while end < w.loaded[0] and max(y.link[end], w.low[1]) == max(y.link[begin], w.low[1]):
                end += 1
        register[NEXT] = end
        if len(w.low) > 1 and max(y.link[begin], w.low[1]) >= w.loaded[1]:
            return
        register[CLUSTER] = begin
        register[CLUSTER_END] = end
        w.path[0] = begin
        register[LINKS] += end - begin
    else:
        register[STAGE] = CLOSE
        return
    register[MEMBER] = register[CLUSTER_END]
    register[BASE] = depth
    if len(w.low) == 1:
        register[MEMBER] = register[CLUSTER]
        return
    go_on(y, w, depth)


def go_on(y: Layout, w: Work, depth: int) -> None:
    """Let the path's last event look at its link: the events from there on upwards."""
    w.register[DEPTH] = depth
    w.cursor[depth] = max(y.link[w.path[depth]], w.low[depth + 1])


def follow(p: Plan, y: Layout, w: Work, code: Code, steps: int) -> tuple[int, int]:
    """Follow the links of the current path (STEP 4-1), and cache the partial matches that this makes (STEP 4-2).

    Stops where a match is whole or the path is done; returns a status and the number of steps that are left.
    """
    register = w.register
    final = len(w.low) - 1
    depth = register[DEPTH]
    while depth >= 0 and steps > 0:
        steps -= 1
        state = depth + 1
        instance = w.cursor[depth]
        if instance >= w.loaded[state]:
            depth = depth - 1 if depth > register[BASE] else -1
            register[DEPTH] = depth
            continue
        caches = y.caches and state < final
        if caches and len(w.cache_next) - register[CACHED] < register[CLUSTER_END] - register[CLUSTER]:
            return GROW, steps
        w.cursor[depth] = instance + 1
        register[HITS if 0 < depth == register[BASE] else LINKS] += 1
        if p.program[depth] >= 0 and not holds(code, p.program[depth], p.event[w.path[depth]], p.event[instance]):
            continue
        w.path[state] = instance
        measure(p, w, state, instance)
        if state == final:
            register[MEMBER] = register[CLUSTER]
            break
        if caches:
            for first in range(register[CLUSTER], register[CLUSTER_END]):
                remember(y, w, first, state)
        go_on(y, w, state)
        depth = state
    return MORE, steps


def remember(y: Layout, w: Work, first: int, state: int) -> None:
    """Cache the current path from one of its first events up to a state."""
    register = w.register
    entry = register[FREED]
    if entry >= 0:
        register[FREED] = w.cache_next[entry]
    else:
        entry = register[UNUSED]
        register[UNUSED] += 1
    register[CACHED] += 1
    w.cache_path[entry, 0] = first
    for at in range(1, state + 1):
        w.cache_path[entry, at] = w.path[at]
    w.cache_length[entry] = state + 1
    w.cache_next[entry] = w.head[first % y.starts]
    w.head[first % y.starts] = entry


def leave(p: Plan, y: Layout, w: Work) -> None:
    """Empty the last stack, with a cache also those before it (STEP 5), and drop the oldest first event (STEP 6)."""
    register = w.register
    final = len(w.low) - 1
    stored = register[CACHED]
    for state in range(final + 1):
        stored += (w.loaded[state] - w.low[state]) * (2 if state < final else 1)
    register[PEAK] = max(register[PEAK], stored)
    if w.low[final] < w.loaded[final]:
        for state in range(1 if y.caches else final, final):
            w.low[state] = w.loaded[state]
        w.low[final] = w.loaded[final]
    register[COUNTED] -= w.cell_count[register[FIRST] % y.starts]
    entry = w.head[register[FIRST] % y.starts]
    while entry >= 0:
        following = w.cache_next[entry]
        w.cache_next[entry] = register[FREED]
        register[FREED] = entry
        register[CACHED] -= 1
        entry = following
    register[FIRST] += 1
    drop_unreached(y, w)


def build(p: Plan, y: Layout, w: Work, code: Code, steps: int) -> int:
    """Build and aggregate matches for a number of steps."""
    register = w.register
    while steps > 0:
        steps -= 1
        stage = register[STAGE]
        if stage == SEARCH:
            if register[MEMBER] < register[CLUSTER_END]:
                if len(w.match) > 0 and register[FIRST_FREE] + len(w.low) > len(w.match):
                    return DRAIN
                build_match(p, y, w)
                if register[TRENDS] > register[MAX_TRENDS]:
                    return LIMIT
            elif register[DEPTH] < 0:
                next_path(p, y, w)
            else:
                status, steps = follow(p, y, w, code, steps + 1)  # it counts this step itself
                if status != MORE:
                    return status
        elif stage == CLOSE:
            if register[ROWS] == len(w.row_count):
                return DRAIN
            close_window(p, y, w)
        elif stage == LEAVE:
            leave(p, y, w)
            register[STAGE] = OPEN
        elif register[PART] == len(y.bound) - 1:
            return DONE
        elif register[FIRST] == y.bound[register[PART] + 1, 0]:
            register[PART] += 1
            if register[PART] < len(y.bound) - 1:
                open_part(p, y, w)
        else:
            steps -= open_round(p, y, w)
    return MORE


HELPERS = (*rounds.HELPERS, open_part, drop_unreached, open_round, next_path, go_on, follow, remember, leave)
