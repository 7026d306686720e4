"""Aggregates as measures: what one event adds to a trend's COUNT, SUM, MIN or MAX, in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
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
    whole: bool  # integers, not floats

    def totals(self, limbs: Array) -> list[int]:
        """The integers that rows of limbs, or of sums of limbs, stand for."""
        total = np.zeros(len(limbs), object)
        for at in reversed(range(limbs.shape[1])):
            total = (total << LIMB) + limbs[:, at].astype(object)
        return total.tolist()


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

    def values(self, aggregate: tree.Aggregate, trends: Array, rows: Array, limbs: Array) -> Sequence[Value]:
        """An aggregate's values, from the numbers of trends and the measures of rows."""
        if aggregate.variable is None:
            return trends.tolist()  # type: ignore[no-any-return]
        at = {kind: self._known[kind, aggregate.variable, aggregate.attribute] for kind in _KINDS[aggregate.function]}
        if aggregate.function in ("MIN", "MAX"):
            values = self._values[aggregate.attribute or ""]
            ranks = rows[:, at[_KINDS[aggregate.function][0]]].tolist()
            return [None if rank in (NO_MINIMUM, NO_MAXIMUM) else values[rank] for rank in ranks]
        counts = rows[:, at[COUNT]].tolist()
        if aggregate.function == "COUNT":
            return counts  # type: ignore[no-any-return]
        number = self.kinds[: at[SUM]].count(SUM)
        column = self.sums[number]
        up, down = 1 << max(column.exponent, 0), 1 << max(-column.exponent, 0)
        totals = [total * up for total in column.totals(limbs[:, number])]
        if aggregate.function == "SUM" and column.whole:
            return [total if count else None for total, count in zip(totals, counts, strict=True)]
        divisors = counts if aggregate.function == "AVG" else [min(count, 1) for count in counts]
        return [Fraction(t, down * d) if d else None for t, d in zip(totals, divisors, strict=True)]

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
    >>> exact(column).totals(exact(column).limbs.T), exact(column).exponent
    ([1, 6], -1)
    """
    values = np.where(numbers.null, 0, numbers.values)
    if values.dtype == np.float64:
        return _floats(values)
    if values.dtype == np.int64:
        return Exact(np.array([values & _MASK, values >> LIMB, np.zeros_like(values)]), 0, whole=True)
    count = max((int(value).bit_length() for value in values), default=0) // LIMB + 2
    limbs = [[(int(value) >> (LIMB * at)) & _MASK for value in values] for at in range(count - 1)]
    limbs.append([int(value) >> (LIMB * (count - 1)) for value in values])
    return Exact(np.array(limbs, np.int64), 0, whole=True)


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
    return Exact(limbs, exponent, whole=False)


def _trailing_zeros(digits: Array) -> Array:
    lowest = digits & -digits
    return (np.frexp(lowest.astype(np.float64))[1] - 1).astype(np.int64)


def _ranked(column: Numbers) -> tuple[list[Value], Array]:
    values, ranks = np.unique(column.values, return_inverse=True)
    return values.tolist(), ranks
