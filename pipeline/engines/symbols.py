"""Events as symbols: one small number an event, which says what states of the pattern it can be bound to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.stream import Stream, compact
from pipeline.events import Array
from pipeline.query.checked import Machine


@dataclass(frozen=True)
class Symbols:
    """Per event its symbol; per symbol which states of which machine it can be bound to."""

    symbol: Array  # int32
    members: tuple[Array, ...]  # per machine: symbols by states, booleans


def make_symbols(machines: Sequence[Machine], stream: Stream) -> Symbols:
    """Give events that mean the same to all machines the same symbol: by their types, then by local conditions."""
    number = np.zeros(len(stream), np.int64)
    for column in stream.types:
        number = compact(number * (len(column.words) + 1) + column.codes + 1)
    conditions = list({condition: None for machine in machines for one in machine.local.values() for condition in one})
    for condition in conditions:
        satisfied = evaluate.holds(condition, lambda attribute: stream.columns[attribute.attribute])
        number = compact(2 * number + satisfied)
    # What holds for one event of a symbol holds for all.
    example = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    example[number] = np.arange(len(stream))
    satisfied_by = {
        condition: evaluate.holds(
            condition, lambda attribute: evaluate.take(stream.columns[attribute.attribute], example)
        )
        for condition in conditions
    }
    words = [np.array([*column.words, None], object)[column.codes[example]] for column in stream.types]
    members = []
    for machine in machines:
        states = machine.automaton.states
        member = np.zeros((len(example), len(states)), bool)
        for state in states:
            wanted = member[:, state.index]
            for name in state.types:
                for levels in words:
                    wanted |= levels == name
                if name.casefold() == stream.source:
                    wanted[:] = True
            for condition in machine.local.get(state.index, ()):
                wanted &= satisfied_by[condition]
        members.append(member)
    return Symbols(number.astype(np.int32), tuple(members))
