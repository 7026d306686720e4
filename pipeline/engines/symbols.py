"""Events as symbols: one small number an event, which says what states of the pattern it can be bound to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.stream import Stream
from pipeline.events import Array
from pipeline.query.checked import Machine

MOST_UNUSED = 10_000  # more symbols than these are looked through for those that occur


@dataclass(frozen=True)
class Symbols:
    """Per event its symbol; per symbol which states of which machine it can be bound to."""

    symbol: Array  # int32
    members: tuple[Array, ...]  # per machine: symbols by states, booleans


def make_symbols(machines: Sequence[Machine], stream: Stream) -> Symbols:
    """Give events that mean the same to all machines the same symbol: by their types, then by local conditions."""
    conditions = list({condition: None for machine in machines for one in machine.local.values() for condition in one})
    # Where nothing is null, the codes of a type column are symbols as they are.
    nulls = [bool((column.codes < 0).any()) for column in stream.types]
    columns: list[tuple[Array, int]] = [
        (column.codes + 1 if null else column.codes, len(column.words) + null)
        for column, null in zip(stream.types, nulls, strict=True)
    ]
    for condition in conditions:
        columns.append((evaluate.holds(condition, lambda attribute: stream.columns[attribute.attribute]), 2))
    symbol, parts = _joined(columns, len(stream))
    words = [
        np.array([*[None] * null, *column.words], object)[part]
        for column, null, part in zip(stream.types, nulls, parts, strict=False)
    ]
    satisfied = dict(zip(conditions, parts[len(words) :], strict=True))
    members = []
    for machine in machines:
        states = machine.automaton.states
        member = np.zeros((len(parts[0]) if parts else 1, len(states)), bool)
        for state in states:
            wanted = member[:, state.index]
            for name in state.types:
                for levels in words:
                    wanted |= levels == name
                if name.casefold() == stream.source:
                    wanted[:] = True
            for condition in machine.local.get(state.index, ()):
                wanted &= satisfied[condition].astype(bool)
        members.append(member)
    return Symbols(symbol, tuple(members))


def no_symbols(machines: Sequence[Machine]) -> Symbols:
    """Symbols of no events."""
    return Symbols(np.zeros(0, np.int32), tuple(np.zeros((0, len(m.automaton.states)), bool) for m in machines))


def _joined(columns: Sequence[tuple[Array, int]], size: int) -> tuple[Array, list[Array]]:
    """Number the combinations of some columns' small numbers; and, of each number, those that it stands for."""
    symbol, count, parts = np.zeros(size, np.int32), 1, list[Array]()
    for numbers, radix in columns:
        symbol = numbers.astype(np.int32, copy=False) if count == 1 else symbol * np.int32(radix) + numbers
        parts = [*(np.repeat(part, radix) for part in parts), np.tile(np.arange(radix), count)]
        count *= radix
        if count > MOST_UNUSED:
            used = np.zeros(count, bool)
            used[symbol] = True
            symbol = (np.cumsum(used, dtype=np.int32) - np.int32(1))[symbol]
            parts = [part[used] for part in parts]
            count = int(used.sum())
    return symbol, parts
