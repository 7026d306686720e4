"""Aggregates as measures: what one event adds to a trend's COUNT, SUM, MIN or MAX, in exact integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from pipeline.engines.contract import Value
from pipeline.engines.kernels.sase import COUNT, MAXIMUM, MINIMUM, NO_MAXIMUM, NO_MINIMUM, SUM
from pipeline.events import Array, Column, Numbers, Texts
from pipeline.query import tree
from pipeline.query.automaton import Automaton

LIMB = 32
_MASK = 2**LIMB - 1


@dataclass(frozen=True)
class Exact:
    """Numbers as integers times a power of two: `limbs[k]` are their digits in base 2^32, the last ones signed."""

    limbs: Array
    exponent: int

    def value(self, limbs: Iterable[int]) -> int | Fraction:
        """The number that limbs, or sums of limbs, stand for."""
        total = sum(int(limb) << (LIMB * at) for at, limb in enumerate(limbs))
        return total * Fraction(2) ** self.exponent if self.exponent else total


@dataclass
class Measures:
    """The measures that a query's aggregates need, each once, over the events of a stream."""

    automaton: Automaton
    columns: dict[str, Column]
    size: int
    kinds: list[int] = field(default_factory=list)
    states: list[Array] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    sums: list[Exact] = field(default_factory=list)
    _known: dict[tuple[int, str, str | None], int] = field(default_factory=dict)
    _values: dict[str, Sequence[Value]] = field(default_factory=dict)  # of MIN and MAX, by rank

    def need(self, aggregate: tree.Aggregate) -> None:
        """Add the measures that an aggregate is calculated from."""
        if aggregate.variable is None:
            return
        for kind in _KINDS[aggregate.function]:
            self._measure(kind, aggregate.variable, aggregate.attribute)

    def value(self, aggregate: tree.Aggregate, trends: int, row: Array, limbs: Array) -> Value:
        """An aggregate's value, from the number of trends and the measures of a row."""
        if aggregate.variable is None:
            return trends
        at = {kind: self._known[kind, aggregate.variable, aggregate.attribute] for kind in _KINDS[aggregate.function]}
        if aggregate.function == "COUNT":
            return int(row[at[COUNT]])
        if aggregate.function in ("MIN", "MAX"):
            rank = int(row[at[_KINDS[aggregate.function][0]]])
            return None if rank in (NO_MINIMUM, NO_MAXIMUM) else self._values[aggregate.attribute or ""][rank]
        count = int(row[at[COUNT]])
        if not count:
            return None
        number = self.kinds[: at[SUM]].count(SUM)
        total = self.sums[number].value(limbs[number])
        return total if aggregate.function == "SUM" else Fraction(total) / count

    def _measure(self, kind: int, variable: str, attribute: str | None) -> None:
        if (kind, variable, attribute) in self._known:
            return
        self._known[kind, variable, attribute] = len(self.kinds)
        self.kinds.append(kind)
        states = np.zeros(len(self.automaton.states), bool)
        states[list(self.automaton.named(variable))] = True
        self.states.append(states)
        if attribute is None:
            self.weights.append(np.ones(self.size, np.int64))
            return
        column = self.columns[attribute]
        if kind == COUNT:
            self.weights.append((~column.null).astype(np.int64))
        elif kind == SUM:
            assert isinstance(column, Numbers)
            self.weights.append(np.zeros(self.size, np.int64))
            self.sums.append(exact(column))
        else:
            none = NO_MINIMUM if kind == MINIMUM else NO_MAXIMUM
            values, ranks = (column.words, column.codes) if isinstance(column, Texts) else _ranked(column)
            self._values[attribute] = values
            self.weights.append(np.where(column.null, none, ranks).astype(np.int64))


_KINDS = {"COUNT": (COUNT,), "SUM": (SUM, COUNT), "AVG": (SUM, COUNT), "MIN": (MINIMUM,), "MAX": (MAXIMUM,)}


def exact(numbers: Numbers) -> Exact:
    """Numbers as limbs, nulls as 0.

    >>> column = Numbers(np.array([0.5, 3.0]), np.array([False, False]))
    >>> [float(exact(column).value(limbs)) for limbs in exact(column).limbs.T]
    [0.5, 3.0]
    """
    values = np.where(numbers.null, 0, numbers.values)
    if values.dtype == np.float64:
        return _floats(values)
    if values.dtype == np.int64:
        return Exact(np.array([values & _MASK, values >> LIMB, np.zeros_like(values)]), 0)
    count = max((int(value).bit_length() for value in values), default=0) // LIMB + 2
    limbs = [[(int(value) >> (LIMB * at)) & _MASK for value in values] for at in range(count - 1)]
    limbs.append([int(value) >> (LIMB * (count - 1)) for value in values])
    return Exact(np.array(limbs, np.int64), 0)


def _floats(values: Array) -> Exact:
    fractions, exponents = np.frexp(values)
    digits = (fractions * 2.0**53).astype(np.int64)
    low_zeros = np.where(digits == 0, 0, _trailing_zeros(digits))
    digits >>= low_zeros
    exponents = np.where(digits == 0, 0, exponents - 53 + low_zeros).astype(np.int64)
    exponent = int(exponents[digits != 0].min()) if np.any(digits) else 0
    shift = np.where(digits == 0, 0, exponents - exponent)
    word, bit = shift // LIMB, shift % LIMB
    limbs = np.zeros((int(word.max(initial=0)) + 4, len(values)), np.int64)
    low, high = (digits & _MASK) << bit, (digits >> LIMB) << bit
    every = np.arange(len(values))
    limbs[word, every] += low & _MASK
    limbs[word + 1, every] += (low >> LIMB) + (high & _MASK)
    limbs[word + 2, every] += high >> LIMB
    return Exact(limbs, exponent)


def _trailing_zeros(digits: Array) -> Array:
    lowest = digits & -digits
    return (np.frexp(lowest.astype(np.float64))[1] - 1).astype(np.int64)


def _ranked(column: Numbers) -> tuple[list[Value], Array]:
    values, ranks = np.unique(column.values, return_inverse=True)
    return values.tolist(), ranks
