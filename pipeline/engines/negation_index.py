"""Negation by index: per event, the nearest match of a negated pattern that does not depend on the trend around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.compiled import run
from pipeline.engines.contract import Limits
from pipeline.engines.kernels import negation as kernel
from pipeline.engines.kernels.machine import Code
from pipeline.engines.kernels.status import DONE
from pipeline.engines.programs import Programs
from pipeline.engines.stream import Stream
from pipeline.events import Array
from pipeline.query.checked import Guard, Machine


class Index(NamedTuple):
    """Per negation and event: when and where the first match after it ends, where the last one before it begins."""

    row: dict[int, int]  # of each negation
    after_time: Array
    after_place: Array
    before_place: Array


def is_indexed(guard: Guard) -> bool:
    """Whether the matches of a negated pattern are the same whatever the trend and the gap around them."""
    return not guard.links and not guard.machine.guards and not guard.machine.other


def matching(machine: Machine, state: int, stream: Stream) -> Array:
    """Which events have the type of a state and satisfy its conditions on single events."""
    satisfied = stream.is_of(machine.automaton.states[state]).copy()
    for condition in machine.local.get(state, ()):
        satisfied &= evaluate.holds(condition, lambda attribute: stream.columns[attribute.attribute])
    return satisfied


def negation_programs(machine: Machine, programs: Programs) -> dict[int, list[int]]:
    """Add the programs of the indexed negations' edges; their numbers, per negation."""
    return {
        number: [
            programs.add((p.condition, p.earlier, p.later) for p in guard.machine.adjacent.get(edge, ()))
            for edge in guard.machine.automaton.follow
        ]
        for number, guard in enumerate(machine.guards)
        if is_indexed(guard)
    }


def index_negations(
    machine: Machine, stream: Stream, programs: dict[int, list[int]], code: Code, limits: Limits, never: int
) -> Index:
    """Find the nearest matches of every indexed negation."""
    if not programs:
        nothing = np.empty((0, 0), np.int64)
        return Index({}, nothing, nothing, nothing)
    line = _lined_up(stream)
    times, places = np.append(stream.time[line.event], never), np.append(line.place, never)
    found = np.empty((3, len(programs), len(stream)), np.int64)
    for row, (negation, edge_programs) in enumerate(programs.items()):
        negated = machine.guards[negation].machine
        states = range(len(negated.automaton.states))
        member = np.array([matching(negated, state, stream)[line.event] for state in states])
        if negated.automaton.follow:
            after, before = _nearest(negated, member, edge_programs, code, limits, line, stream.window.within)
        else:
            after, before = _nearest_events(np.flatnonzero(member.any(axis=0)), line)
        found[0, row, line.event] = times[after]
        found[1, row, line.event] = places[after]
        found[2, row, line.event] = np.where(before < 0, -never, places[before])
    return Index({negation: row for row, negation in enumerate(programs)}, found[0], found[1], found[2])


class _Line(NamedTuple):
    """The events in order of partition and time."""

    event: Array
    part: Array
    place: Array
    tie: Array
    tie_end: Array


def _lined_up(stream: Stream) -> _Line:
    order = np.lexsort((stream.time, stream.part))
    part, time = stream.part[order], stream.time[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (part[1:] != part[:-1]) | (time[1:] != time[:-1])
    starts = np.append(np.flatnonzero(begins), len(order))
    tie = np.cumsum(begins) - 1
    return _Line(order, part, stream.place[order], starts[tie], starts[tie + 1])


def _nearest_events(negated: Array, line: _Line) -> tuple[Array, Array]:
    """For a pattern of single events: the next and the last of them in the same partition."""
    size = len(line.part)
    parts, negated_or_none = np.append(line.part, -1), np.append(negated, size)
    after = negated_or_none[np.searchsorted(negated, line.tie_end)]
    before = negated_or_none[np.searchsorted(negated, line.tie) - 1]
    return np.where(parts[after] == line.part, after, size), np.where(parts[before] == line.part, before, -1)


def _nearest(
    machine: Machine, member: Array, programs: list[int], code: Code, limits: Limits, line: _Line, within: int
) -> tuple[Array, Array]:
    automaton, size, states = machine.automaton, len(line.event), len(member)
    edges = np.array(list(automaton.follow), np.int64)
    pattern = kernel.Pattern(
        *line,
        member=member,
        first=np.isin(np.arange(states), list(automaton.first)),
        last=np.isin(np.arange(states), list(automaton.last)),
        source=np.ascontiguousarray(edges[:, 0]),
        target=np.ascontiguousarray(edges[:, 1]),
        program=np.array(programs, np.int64),
        within=within,
    )
    nearest = kernel.Nearest(
        at=np.array([size, 0]),
        end=np.empty((states, size), np.int64),
        begin=np.empty((states, size), np.int64),
        best_end=np.empty(states, np.int64),
        best_begin=np.empty(states, np.int64),
        after=np.empty(size, np.int64),
        before=np.empty(size, np.int64),
    )
    for loop in (kernel.back, kernel.forth):
        pauses = run(
            loop,
            lambda: (pattern, nearest, code),
            limits,
            lambda: "negated patterns were being looked for",
            steps=size * states,
        )
        assert list(pauses) == [DONE]
    return nearest.after, nearest.before
