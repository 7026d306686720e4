"""Prefix counting: every event extends the prefixes before it, in each set of counters that it lies in.

A set holds the counters of one window, or without SLIDE of one START; sets expire in the order in which they begin. Its
counters come in rounds: those of the pattern's first pass, then those after one step back in a Kleene operator, and so
on. A round is cleared when it is first entered, so that a set costs no more than its longest prefix.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, Weights, add_cell, add_trend, clear_cell, extend_cell, is_empty_cell
from pipeline.engines.kernels.numbers import LARGEST, is_crowded
from pipeline.engines.kernels.status import DONE, DRAIN, GROW, MORE
from pipeline.engines.kernels.windows import ENDED, MOMENT, PART, ROWS, WINDOW, Rows, Windows, give_row
from pipeline.events import Array

# Registers besides those of the windows: the next event and the first one of the present time, the sets that are alive,
# the last event that ended a trend, and the counters kept, now and at most.
AT, TIE, OLDEST, NEWEST, ENDING, KEPT, PEAK = range(8, 15)


class Plan(NamedTuple):
    """What the loop reads besides the windows; an array `…s` says where the list of each symbol or state begins."""

    event: Array  # index in the stream; those that can neither be bound nor negate are left out
    time: Array
    symbol: Array
    states: Array  # per symbol
    state: Array  # that it can be bound to
    negations: Array  # per symbol
    negation: Array  # that it is a match of
    openings: Array  # per state
    opening: Array  # counters of the empty prefix that it extends
    sources: Array  # per state
    source: Array  # counters that it extends
    back: Array  # 1: of the round before
    ends: Array  # per state
    end: Array  # counters of the prefixes that end at it
    last: Array  # states that end a trend
    complete: Array  # counters of whole trends
    begun: Array  # counters of the empty prefix that a set begins with
    moved: Array  # per counter and negation: the counter that its prefixes go to; -1: to none, they are over
    empty: int  # how many counters of the empty prefix a set begins with; then come the rounds
    counters: int  # of a round
    rounds: int


class Work(NamedTuple):
    """What the loop writes besides the rows and the cells, and where these are: the sets' counters from 0 on."""

    begin: Array  # per set: the place it begins at
    deep: Array  # per set: its rounds in use
    fresh: int  # the first cell of what the present time adds to the counters
    scratch: int  # of the prefixes that the event at hand ends
    result: int


def round_cell(p: Plan, slot: int, number: int) -> int:
    """Where a round of a set begins."""
    return slot * (p.empty + p.rounds * p.counters) + p.empty + number * p.counters


def open_set(p: Plan, k: Work, rows: Rows, c: Cells, place: int) -> None:
    """Begin a set with the empty prefix alone."""
    r = rows.register
    r[NEWEST] += 1
    slot = r[NEWEST] % len(k.begin)
    k.begin[slot] = place
    k.deep[slot] = 0
    base = round_cell(p, slot, 0) - p.empty
    for counter in range(p.empty):
        clear_cell(c, base + counter)
    for at in range(len(p.begun)):
        add_trend(c, base + p.begun[at], 0)


def open_sets(s: Windows, p: Plan, k: Work, rows: Rows, c: Cells) -> None:
    """Begin the windows that the next event is the first to lie in; without SLIDE the set of a START."""
    r = rows.register
    place = s.place[r[AT]]
    if s.slide > 0:
        if r[OLDEST] > r[NEWEST]:
            r[OLDEST] = max(s.first_window, (place - s.within) // s.slide + 1)
            r[NEWEST] = r[OLDEST] - 1
        while (r[NEWEST] + 1) * s.slide <= place:
            open_set(p, k, rows, c, (r[NEWEST] + 1) * s.slide)
        return
    while r[MOMENT] < s.moment_end[r[PART]] and s.moments[r[MOMENT]] < place:
        r[MOMENT] += 1  # no set was alive then
    expire(s, p, k, rows, place)
    symbol = p.symbol[r[AT]]
    starts = False
    for at in range(p.states[symbol], p.states[symbol + 1]):
        starts |= p.openings[p.state[at]] < p.openings[p.state[at] + 1]
    if starts and (r[OLDEST] > r[NEWEST] or k.begin[r[NEWEST] % len(k.begin)] != place):
        open_set(p, k, rows, c, place)


def drop_set(p: Plan, k: Work, rows: Rows) -> None:
    """Forget the oldest set."""
    r = rows.register
    r[KEPT] -= k.deep[r[OLDEST] % len(k.begin)] * p.counters
    r[OLDEST] += 1


def expire(s: Windows, p: Plan, k: Work, rows: Rows, place: int) -> None:
    """Forget the sets that began too early for a window that ends at this place."""
    r = rows.register
    while r[OLDEST] <= r[NEWEST] and k.begin[r[OLDEST] % len(k.begin)] <= place - s.within:
        drop_set(p, k, rows)


def enter_round(p: Plan, k: Work, rows: Rows, c: Cells, slot: int) -> None:
    """Clear the counters of a set's next round."""
    base = round_cell(p, slot, k.deep[slot])
    for cell in range(base, base + p.counters):
        clear_cell(c, cell)
        clear_cell(c, k.fresh + cell)
    k.deep[slot] += 1
    r = rows.register
    r[KEPT] += p.counters
    r[PEAK] = max(r[PEAK], r[KEPT])


def bind(p: Plan, k: Work, rows: Rows, c: Cells, w: Weights, slot: int, opens: bool) -> int:
    """Let an event extend the prefixes of a set, the empty one where it `opens`; the number of steps taken."""
    event = rows.register[AT]
    symbol = p.symbol[event]
    steps = 1
    for at in range(p.states[symbol], p.states[symbol + 1]):
        state = p.state[at]
        for number in range(min(k.deep[slot] + 1, p.rounds)):
            steps += 1 + p.sources[state + 1] - p.sources[state]
            base = round_cell(p, slot, number)
            clear_cell(c, k.scratch)
            if opens and number == 0:
                for o in range(p.openings[state], p.openings[state + 1]):
                    add_cell(c, k.scratch, base - p.empty + p.opening[o])
            for edge in range(p.sources[state], p.sources[state + 1]):
                if 0 <= number - p.back[edge] < k.deep[slot]:
                    add_cell(c, k.scratch, base - p.back[edge] * p.counters + p.source[edge])
            if is_empty_cell(c, k.scratch):
                continue
            extend_cell(c, w, k.scratch, p.event[event], state)
            if number == k.deep[slot]:
                enter_round(p, k, rows, c, slot)
            for e in range(p.ends[state], p.ends[state + 1]):
                add_cell(c, k.fresh + base + p.end[e], k.scratch)
            if p.last[state]:
                rows.register[ENDING] = event
    return steps


def recount(p: Plan, k: Work, c: Cells, slot: int, negation: int) -> int:
    """Take the prefixes that a negated event comes after out of their counters; the number of steps taken."""
    steps = len(p.moved)
    for counter in range(len(p.moved)):
        target = p.moved[counter, negation]
        if target == counter:
            continue
        for number in range(1 if counter < p.empty else k.deep[slot]):
            base = round_cell(p, slot, number) - p.empty
            if target >= 0:
                add_cell(c, base + target, base + counter)
            clear_cell(c, base + counter)
            steps += 1
    return steps


def close_time(s: Windows, p: Plan, k: Work, rows: Rows, c: Cells, slot: int) -> int:
    """Let what happened at one time count for the next; the number of steps taken.

    Negated events come first: they concern no prefix that ends at their own time.
    """
    r = rows.register
    steps = 1
    for event in range(r[TIE], r[AT]):
        symbol = p.symbol[event]
        if s.place[event] >= k.begin[slot]:
            for at in range(p.negations[symbol], p.negations[symbol + 1]):
                steps += recount(p, k, c, slot, p.negation[at])
    for event in range(r[TIE], r[AT]):
        symbol = p.symbol[event]
        for at in range(p.states[symbol], p.states[symbol + 1]):
            state = p.state[at]
            for e in range(p.ends[state], p.ends[state + 1]):
                for number in range(k.deep[slot]):
                    cell = round_cell(p, slot, number) + p.end[e]
                    add_cell(c, cell, k.fresh + cell)
                    clear_cell(c, k.fresh + cell)
                    steps += 1
    return steps


def add_up(p: Plan, k: Work, rows: Rows, c: Cells, newest: int) -> int:
    """Give the row of the whole trends in the sets from the oldest to this one; the number of steps taken."""
    clear_cell(c, k.result)
    steps = 1
    for alive in range(rows.register[OLDEST], newest + 1):
        slot = alive % len(k.begin)
        for number in range(k.deep[slot]):
            base = round_cell(p, slot, number)
            for at in range(len(p.complete)):
                add_cell(c, k.result, base + p.complete[at])
                add_cell(c, k.result, k.fresh + base + p.complete[at])
                steps += 1
    give_row(rows, c, k.result)
    return steps


def finish_window(s: Windows, p: Plan, k: Work, rows: Rows, c: Cells, over: bool) -> int:
    """Finish a window that no further event lies in; the number of steps taken, 0: there is none."""
    r = rows.register
    if r[OLDEST] > r[NEWEST]:
        return 0
    if s.slide > 0:
        slot = r[OLDEST] % len(k.begin)
        if not over and s.place[r[AT]] < k.begin[slot] + s.within:
            return 0
        r[WINDOW] = r[OLDEST]
        steps = close_time(s, p, k, rows, c, slot) + add_up(p, k, rows, c, r[OLDEST])
        drop_set(p, k, rows)
        return steps
    if r[MOMENT] == s.moment_end[r[PART]] or (not over and s.place[r[AT]] <= s.moments[r[MOMENT]]):
        return 0
    r[WINDOW] = s.moments[r[MOMENT]]
    r[MOMENT] += 1
    r[ENDED] = s.place[r[ENDING]] == r[WINDOW]  # of this partition, wherever the row has a trend
    expire(s, p, k, rows, r[WINDOW])
    return add_up(p, k, rows, c, r[NEWEST])


def next_part(s: Windows, rows: Rows) -> None:
    """Go on to the next partition; the sets of this one are gone."""
    r = rows.register
    r[PART] += 1
    r[TIE] = r[AT]
    r[OLDEST] = r[NEWEST] + 1
    r[KEPT] = 0
    if s.slide == 0 and r[PART] < len(s.moment):
        r[MOMENT] = s.moment[r[PART]]


def count(s: Windows, p: Plan, k: Work, rows: Rows, c: Cells, w: Weights, steps: int) -> int:
    """Count prefixes for a number of steps; GROW asks for cells with more room."""
    r = rows.register
    while steps > 0:
        if r[PART] == len(s.begins) - 1:
            return DONE
        if r[ROWS] == len(rows.window):
            return DRAIN
        if is_crowded(c.numbers):
            return GROW
        over = r[AT] == s.begins[r[PART] + 1]
        taken = finish_window(s, p, k, rows, c, over)
        if taken == 0 and over:
            taken = 1
            next_part(s, rows)
        elif taken == 0 and p.time[r[AT]] != p.time[r[TIE]]:
            taken = 1
            for alive in range(r[OLDEST], r[NEWEST] + 1):
                taken += close_time(s, p, k, rows, c, alive % len(k.begin))
            r[TIE] = r[AT]
        elif taken == 0:
            taken = 1
            open_sets(s, p, k, rows, c)
            for alive in range(r[OLDEST], r[NEWEST] + 1):
                slot = alive % len(k.begin)
                opens = s.slide > 0 or k.begin[slot] == s.place[r[AT]]
                taken += bind(p, k, rows, c, w, slot, opens)
            r[AT] += 1
        steps -= taken * (1 + c.numbers.register[LARGEST])
    return MORE


HELPERS = (
    round_cell,
    open_set,
    drop_set,
    expire,
    open_sets,
    enter_round,
    bind,
    recount,
    close_time,
    add_up,
    finish_window,
    next_part,
)
