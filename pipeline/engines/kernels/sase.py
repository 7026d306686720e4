"""SASE's sequence construction: a depth-first search back along the stacks, one current trend kept, and aggregation.

The search keeps all its state in arrays and stops after a number of steps, so that its caller can look at the clock,
show progress, take finished rows and trends away, and go on, in plain Python or compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pipeline.engines.kernels.cells import NO_MAXIMUM, NO_MINIMUM
from pipeline.engines.kernels.limbs import carried
from pipeline.engines.kernels.machine import Code, holds
from pipeline.engines.kernels.status import DONE, DRAIN, LIMIT, MORE
from pipeline.events import Array

# Kinds of measures: what a trend's events add up to.
COUNT, MINIMUM, MAXIMUM, SUM = 0, 1, 2, 3

# Registers of a search.
ROOT, DEPTH, GROUP, PLACE, LOW, ENDED, ACTIVE, ROWS, TRENDS, MAX_TRENDS, MATCHED, FIRST_FREE, EXTENDED = range(13)


class Plan(NamedTuple):
    """What a search reads. An instance is an event on the stack of a state; e is an edge, v and w are states."""

    time: Array
    place: Array
    part: Array
    group: Array
    tie: Array  # the event's (partition, time), as a number
    start: Array  # number of the event's (group, place)
    event: Array  # of each instance
    state: Array
    alive: Array  # the instance belongs on its stack
    local: Array  # and satisfies the conditions on single events
    stack: Array  # where each state's instances begin
    candidate: Array  # per state, its instances in the order in which `low` and `high` point at them
    into: Array  # where the edges into each state begin
    source: Array  # state that an edge leaves
    pointer: Array  # where an edge's pointers begin, one an instance of its target
    low: Array
    high: Array
    out: Array  # where the edges out of each state begin, in `out_edge`
    out_edge: Array
    target: Array
    forward_pointer: Array
    forward: Array  # per instance of an edge's source: the first instance of its target that comes later
    program: Array  # of each edge; -1 where it has no condition
    first: Array  # which states may begin a trend
    root: Array  # instances that may end a trend, by group and place
    way: Array  # ways of edges, then of beginnings and endings by state: where each one's alternatives begin
    negation: Array  # where each alternative's negations begin
    negated: Array
    after_time: Array  # per negation and event: time of the first negated event later than it
    after_place: Array
    before_place: Array  # place of the last negated event earlier than it
    other_program: Array
    other_first: Array  # per condition and state
    other_second: Array
    other_ordered: Array
    measure: Array  # kinds
    measured: Array  # per measure and state: whether its events count
    weight: Array  # per measure and event
    limb: Array  # per SUM, digit and event: the value, as limbs.py writes it
    within: int
    slide: int  # 0: the window moves with every event
    first_window: int  # the least number of a window
    partitioned: bool  # each partition has stacks of its own
    sorted: bool  # candidates are in time order
    push_window: bool  # test the window while constructing
    push_predicates: bool  # test conditions while constructing
    asks_edge: Array  # edges whose negations are too complex for `negated`
    asks_window: bool
    asks_trend: bool


class Work(NamedTuple):
    """What a search writes."""

    register: Array
    path: Array  # instances of the current trend, from its last event back
    edge: Array
    cursor: Array
    stop: Array
    run: Array  # per depth and measure
    run_sum: Array  # per depth, SUM and limb
    slot_id: Array  # accumulators: a window's number, or a start's
    slot_place: Array
    slot_count: Array
    slot: Array
    slot_sum: Array
    active: Array
    row_group: Array
    row_window: Array
    row_count: Array
    row: Array
    row_sum: Array
    match_length: Array
    match: Array
    extension: Array  # per instance: number of the (partition, time) that first extends it


def unguarded(p: Plan, owner: int, after: Array, x: int, limit: int) -> bool:
    """Whether one alternative has no negated match after x that ends before a limit: `after` in times or in places."""
    for way in range(p.way[owner], p.way[owner + 1]):
        free = True
        for at in range(p.negation[way], p.negation[way + 1]):
            if after[p.negated[at], x] < limit:
                free = False
        if free:
            return True
    return False


def open_before(p: Plan, owner: int, x: int, window_start: int) -> bool:
    """Whether one alternative has no negated match in the window before x."""
    for way in range(p.way[owner], p.way[owner + 1]):
        free = True
        for at in range(p.negation[way], p.negation[way + 1]):
            if p.before_place[p.negated[at], x] >= window_start:
                free = False
        if free:
            return True
    return False


def others_hold(p: Plan, w: Work, code: Code, depth: int) -> bool:
    """Whether the event at `depth`, earlier than all others of the trend, satisfies the conditions with them."""
    x = p.event[w.path[depth]]
    v = p.state[w.path[depth]]
    for c in range(len(p.other_program)):
        for d in range(depth):
            y = p.event[w.path[d]]
            u = p.state[w.path[d]]
            if p.other_first[c, v] and p.other_second[c, u] and not holds(code, p.other_program[c], x, y):
                return False
            if p.other_ordered[c]:
                continue
            if p.other_second[c, v] and p.other_first[c, u] and not holds(code, p.other_program[c], y, x):
                return False
    return True


def conditions_hold(p: Plan, w: Work, code: Code, depth: int) -> bool:
    """Whether a whole trend satisfies every condition, for a search that did not test them on its way."""
    for d in range(depth + 1):
        if not p.local[w.path[d]] or not others_hold(p, w, code, d):
            return False
        if d > 0:
            program = p.program[w.edge[d - 1]]
            if program >= 0 and not holds(code, program, p.event[w.path[d]], p.event[w.path[d - 1]]):
                return False
    return True


def push(p: Plan, w: Work, depth: int, instance: int) -> None:
    """Put an instance on the current trend, before all its other events."""
    w.path[depth] = instance
    w.edge[depth] = p.into[p.state[instance]] - 1
    w.cursor[depth] = 0
    w.stop[depth] = 0
    measure(p, w, depth, instance)


def measure(p: Plan, w: Any, depth: int, instance: int) -> None:
    """What the current trend's events add up to, with an instance at this depth."""
    event = p.event[instance]
    state = p.state[instance]
    sums = 0
    for m in range(len(p.measure)):
        kind = p.measure[m]
        counts = p.measured[m, state]
        if kind == SUM:
            for at in range(p.limb.shape[1]):
                before = w.run_sum[depth - 1, sums, at] if depth > 0 else 0
                w.run_sum[depth, sums, at] = before + (p.limb[sums, at, event] if counts else 0)
            sums += 1
            continue
        if depth > 0:
            value = w.run[depth - 1, m]
        elif kind == COUNT:
            value = 0
        else:
            value = NO_MINIMUM if kind == MINIMUM else NO_MAXIMUM
        if counts:
            weight = p.weight[m, event]
            if kind == COUNT:
                value += weight
            elif kind == MINIMUM:
                value = min(value, weight)
            else:
                value = max(value, weight)
        w.run[depth, m] = value


def reset(p: Plan, values: Array, sums: Array) -> None:
    """Make measures those of no trend."""
    sums[:, :] = 0
    for m in range(len(p.measure)):
        kind = p.measure[m]
        values[m] = NO_MINIMUM if kind == MINIMUM else NO_MAXIMUM if kind == MAXIMUM else 0


def join(p: Plan, values: Array, sums: Array, other: Array, other_sums: Array) -> None:
    """Add the measures of other trends."""
    number = 0
    for m in range(len(p.measure)):
        kind = p.measure[m]
        if kind == COUNT:
            values[m] += other[m]
        elif kind == MINIMUM:
            values[m] = min(values[m], other[m])
        elif kind == MAXIMUM:
            values[m] = max(values[m], other[m])
        else:
            carried(sums[number], other_sums[number])
            number += 1


def open_row(p: Plan, w: Any, group: int, window: int) -> int:
    """Begin an empty row of the result."""
    row = int(w.register[ROWS])
    w.register[ROWS] += 1
    w.row_group[row] = group
    w.row_window[row] = window
    w.row_count[row] = 0
    reset(p, w.row[row], w.row_sum[row])
    return row


def add_slot(p: Plan, w: Work, row: int, slot: int) -> None:
    """Add a slot to a row of the result."""
    w.row_count[row] += w.slot_count[slot]
    join(p, w.row[row], w.row_sum[row], w.slot[slot], w.slot_sum[slot])


def close_window(p: Plan, w: Work, slot: int) -> None:
    """Give out a sliding window's row, if a trend finished in it."""
    if w.slot_count[slot] > 0:
        add_slot(p, w, open_row(p, w, w.register[GROUP], w.slot_id[slot]), slot)
        w.slot_count[slot] = 0


def close_time(p: Plan, w: Work) -> None:
    """Give out the row of the window that ends now: all trends of the group that began within it."""
    row = open_row(p, w, w.register[GROUP], w.register[PLACE])
    kept = 0
    for at in range(w.register[ACTIVE]):
        slot = w.active[at]
        if w.slot_place[slot] > w.register[PLACE] - p.within:
            add_slot(p, w, row, slot)
            w.active[kept] = slot
            kept += 1
        else:
            w.slot_count[slot] = 0
    w.register[ACTIVE] = kept
    w.register[ENDED] = 0


def close_group(p: Plan, w: Work) -> None:
    """Give out what is left of a group."""
    if p.slide == 0:
        if w.register[ENDED]:
            close_time(p, w)
        for at in range(w.register[ACTIVE]):
            w.slot_count[w.active[at]] = 0
        w.register[ACTIVE] = 0
        return
    for slot in range(len(w.slot_id)):
        close_window(p, w, slot)


def emit(p: Plan, w: Work, code: Code, depth: int, ask: Any) -> int:
    """Aggregate the current trend in every window that contains it; the number of windows looked at."""
    register = w.register
    register[TRENDS] += 1
    if not p.push_predicates and not conditions_hold(p, w, code, depth):
        return 1
    # The test for None stands alone, so that numba leaves the branch out.
    if ask is not None:  # noqa: SIM102
        if p.asks_trend and not ask.trend(w.path[: depth + 1]):
            return 1
    edges = len(p.source)
    states = len(p.first)
    begin = p.event[w.path[depth]]
    end = p.event[w.path[0]]
    before = edges + p.state[w.path[depth]]
    after = edges + states + p.state[w.path[0]]
    low = p.place[begin]
    high = p.place[end]
    if p.slide == 0:
        first_window = last_window = 0
        if high - low >= p.within:
            return 1
    else:
        first_window = max(p.first_window, (high - p.within) // p.slide + 1)
        last_window = low // p.slide
    matched = False
    for k in range(first_window, last_window + 1):
        if p.slide == 0:
            window_start, window_end = high - p.within + 1, low + p.within
            identity = p.start[begin]
        else:
            window_start, window_end = k * p.slide, k * p.slide + p.within
            identity = k
        if ask is not None:  # noqa: SIM102
            if p.asks_window and not ask.window(w.path[: depth + 1], window_start, window_end):
                continue
        if not (open_before(p, before, begin, window_start) and unguarded(p, after, p.after_place, end, window_end)):
            continue
        matched = True
        slot = identity % len(w.slot_id)
        if w.slot_count[slot] == 0 or w.slot_id[slot] != identity:
            if p.slide > 0:
                close_window(p, w, slot)
            elif w.slot_count[slot] == 0:
                w.active[register[ACTIVE]] = slot
                register[ACTIVE] += 1
            w.slot_id[slot] = identity
            w.slot_place[slot] = low
            w.slot_count[slot] = 0
            reset(p, w.slot[slot], w.slot_sum[slot])
        w.slot_count[slot] += 1
        join(p, w.slot[slot], w.slot_sum[slot], w.run[depth], w.run_sum[depth])
    if matched:
        register[ENDED] = 1
        if len(w.match) > 0:
            for d in range(depth + 1):
                w.match[register[FIRST_FREE] + d] = w.path[depth - d]
            w.match_length[register[MATCHED]] = depth + 1
            register[FIRST_FREE] += depth + 1
            register[MATCHED] += 1
    return 1 + last_window - first_window


def next_root(p: Plan, w: Work) -> int:
    """Go on to the next instance that may end a trend."""
    register = w.register
    number = register[ROOT]
    if register[ROWS] + len(w.slot_id) + 2 > len(w.row_count):
        return DRAIN
    if number == len(p.root):
        close_group(p, w)
        return DONE
    root = p.root[number]
    event = p.event[root]
    if p.group[event] != register[GROUP]:
        close_group(p, w)
    elif p.slide == 0 and register[ENDED] and p.place[event] != register[PLACE]:
        close_time(p, w)
    register[GROUP] = p.group[event]
    register[PLACE] = p.place[event]
    if p.slide == 0:
        register[LOW] = p.place[event] - p.within + 1
    else:
        register[LOW] = ((p.place[event] - p.within) // p.slide + 1) * p.slide
    register[ROOT] = number + 1
    if p.alive[root]:
        register[DEPTH] = 0
        push(p, w, 0, root)
    return MORE


def build(p: Plan, w: Work, code: Code, ask: Any, steps: int) -> int:
    """Build and aggregate trends for a number of steps; `ask` answers in Python what this code cannot."""
    register = w.register
    while steps > 0:
        steps -= 1
        depth = register[DEPTH]
        if depth < 0:
            status = next_root(p, w)
            if status != MORE:
                return status
            depth = register[DEPTH]
            if depth < 0 or not p.first[p.state[w.path[0]]]:
                continue
        else:
            later = w.path[depth]
            if w.cursor[depth] <= w.stop[depth]:
                edge = w.edge[depth] + 1
                if edge == p.into[p.state[later] + 1]:
                    register[DEPTH] = depth - 1
                else:
                    w.edge[depth] = edge
                    at = p.pointer[edge] + later - p.stack[p.state[later]]
                    w.cursor[depth] = p.high[at]
                    w.stop[depth] = p.low[at]
                continue
            w.cursor[depth] -= 1
            instance = p.candidate[w.cursor[depth]]
            x, y = p.event[instance], p.event[later]
            if p.push_window and p.place[x] < register[LOW]:
                if p.sorted:
                    w.cursor[depth] = w.stop[depth]
                continue
            if p.part[x] != p.part[y] or not p.alive[instance]:
                continue
            edge = w.edge[depth]
            if p.push_predicates and p.program[edge] >= 0 and not holds(code, p.program[edge], x, y):
                continue
            if not unguarded(p, edge, p.after_time, x, p.time[y]):
                continue
            if ask is not None:  # noqa: SIM102
                if p.asks_edge[edge] and not ask.edge(edge, x, y):
                    continue
            depth += 1
            w.path[depth] = instance
            if p.push_predicates and not others_hold(p, w, code, depth):
                continue
            register[DEPTH] = depth
            push(p, w, depth, instance)
            if not p.first[p.state[instance]]:
                continue
        steps -= emit(p, w, code, depth, ask)
        if register[TRENDS] > register[MAX_TRENDS]:
            return LIMIT
        if len(w.match) > 0:
            full = register[FIRST_FREE] + len(w.path) > len(w.match) or register[MATCHED] == len(w.match_length)
            if full:
                return DRAIN
    return MORE


def extend(p: Plan, w: Work, code: Code, ask: Any, steps: int) -> int:
    """Find, for skip-till-next-match, the time that first extends each instance."""
    register = w.register
    while steps > 0:
        steps -= 1
        instance = register[EXTENDED]
        if instance == len(p.event):
            return DONE
        register[EXTENDED] = instance + 1
        x = p.event[instance]
        v = p.state[instance]
        # Beyond this place nothing shares a window with x, so that it does not matter what extends it there.
        horizon = p.place[x] + p.within
        if p.slide > 0:
            horizon = p.place[x] // p.slide * p.slide + p.within
        found = -1
        for number in range(p.out[v], p.out[v + 1]):
            edge = p.out_edge[number]
            begin = p.forward[p.forward_pointer[edge] + instance - p.stack[v]]
            for later in range(begin, p.stack[p.target[edge] + 1]):
                steps -= 1
                y = p.event[later]
                if p.part[y] != p.part[x]:
                    if p.partitioned:
                        break
                    continue
                if p.place[y] >= horizon or (found >= 0 and p.time[y] >= p.time[found]):
                    break
                if not p.alive[later] or not unguarded(p, edge, p.after_time, x, p.time[y]):
                    continue
                if p.program[edge] >= 0 and not holds(code, p.program[edge], x, y):
                    continue
                if ask is not None:  # noqa: SIM102
                    if p.asks_edge[edge] and not ask.edge(edge, x, y):
                        continue
                found = y
                break
        w.extension[instance] = -1 if found < 0 else p.tie[found]
    return MORE


HELPERS = (
    holds,
    unguarded,
    open_before,
    others_hold,
    conditions_hold,
    push,
    measure,
    reset,
    join,
    carried,
    open_row,
    add_slot,
    close_window,
    close_time,
    close_group,
    emit,
    next_root,
)
