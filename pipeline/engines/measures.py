"""Aggregates as measures: what one event adds to a trend's COUNT, SUM, MIN or MAX, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from pipeline.approximate import Approximate
from pipeline.engines.contract import Value
from pipeline.engines.kernels.cells import NO_MAXIMUM, NO_MINIMUM
from pipeline.engines.kernels.numbers import BITS, MASK
from pipeline.engines.kernels.sase import COUNT, MAXIMUM, MINIMUM, SUM
from pipeline.engines.stream import Stream
from pipeline.events import Array, Column, Numbers, Texts
from pipeline.query import tree
from pipeline.query.automaton import Automaton
from pipeline.query.checked import Query

Number = int | Approximate

CHUNK = 1 << 20  # events that are taken at once


@dataclass(frozen=True)
class Exact:
    """Numbers as integers times a power of two: `limbs[k]` are their digits, as kernels/limbs.py has them."""

    limbs: Array
    exponent: int
    whole: bool  # integers, not floats


def integers(limbs: Array, bits: int | None = None) -> list[int]:
    """The integers that rows of limbs stand for; `bits` of a limb if they are not as those of kernels/limbs.py."""
    bits = BITS if bits is None else bits
    total = np.zeros(len(limbs), object)
    for at in reversed(range(limbs.shape[1])):
        total = (total << bits) + limbs[:, at].astype(object)
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

    @classmethod
    def needed(cls, query: Query, stream: Stream) -> Measures:
        """The measures of a query over a stream."""
        measures = cls(query.automaton, dict(stream.columns), len(stream))
        for aggregate in query.aggregates:
            measures.need(aggregate)
        return measures

    def need(self, aggregate: tree.Aggregate) -> None:
        """Add the measures that an aggregate is calculated from."""
        if aggregate.variable is None:
            return
        for kind in _KINDS[aggregate.function]:
            self._measure(kind, aggregate.variable, aggregate.attribute)

    def values(
        self, aggregate: tree.Aggregate, trends: Sequence[Number], measured: Sequence[Sequence[Number]]
    ) -> Sequence[Value]:
        """An aggregate's values in all rows, from the numbers of trends and the value of each measure."""
        if aggregate.variable is None:
            return trends
        at = {kind: self._known[kind, aggregate.variable, aggregate.attribute] for kind in _KINDS[aggregate.function]}
        if aggregate.function in ("MIN", "MAX"):
            values = self._values[aggregate.attribute or ""]
            ranks = measured[at[_KINDS[aggregate.function][0]]]
            return [None if rank in (NO_MINIMUM, NO_MAXIMUM) else values[rank] for rank in ranks]  # type: ignore[index]
        counts = measured[at[COUNT]]
        if aggregate.function == "COUNT":
            return counts
        column = self.sums[self.kinds[: at[SUM]].count(SUM)]
        up, down = 1 << max(column.exponent, 0), 1 << max(-column.exponent, 0)
        totals = [total * up for total in measured[at[SUM]]]
        if aggregate.function == "SUM" and column.whole:
            return [total if count else None for total, count in zip(totals, counts, strict=True)]
        divisors = counts if aggregate.function == "AVG" else [1 if count else 0 for count in counts]
        return [_quotient(t, down * d) if d else None for t, d in zip(totals, divisors, strict=True)]

    def without_events(self) -> Measures:
        """The same measures, without what each event adds to them."""
        nothing = [np.zeros(0, np.int64) for _ in self.kinds]
        sums = [replace(column, limbs=np.zeros((0, 0), np.int64)) for column in self.sums]
        return replace(self, columns={}, size=0, weights=nothing, sums=sums)

    def joined(self, other: Measures) -> Measures:
        """The measures of two parts of a stream: sums in the finer of both scales, ranks over the values of both."""
        sums = [
            Exact(one.limbs, min(one.exponent, two.exponent), one.whole and two.whole)
            for one, two in zip(self.sums, other.sums, strict=True)
        ]
        values: dict[str, Sequence[Value]] = {
            name: sorted({*mine, *other._values[name]})  # type: ignore[type-var]
            for name, mine in self._values.items()
        }
        return replace(self, sums=sums, _values=values)

    def ranks_in(self, other: Measures) -> Iterator[Array | None]:
        """Per measure that has ranks, the ranks of other measures for its own, and for no value; None elsewhere."""
        for kind, _, attribute in self._known:
            if kind in (COUNT, SUM):
                yield None
                continue
            place = {value: rank for rank, value in enumerate(other._values[attribute or ""])}
            ranks = [place[value] for value in self._values[attribute or ""]]
            yield np.array([*ranks, NO_MINIMUM if kind == MINIMUM else NO_MAXIMUM], np.int64)

    def _measure(self, kind: int, variable: str, attribute: str | None) -> None:
        if (kind, variable, attribute) in self._known:
            return
        self._known[kind, variable, attribute] = len(self.kinds)
        self.kinds.append(kind)
        states = np.zeros(len(self.automaton.states), bool)
        states[list(self.automaton.named(variable))] = True
        self.states.append(states)
        if attribute is None:
            self.weights.append(np.ones(self.size, bool))
            return
        column = self.columns[attribute]
        if kind == COUNT:
            self.weights.append(~column.null)
        elif kind == SUM:
            assert isinstance(column, Numbers)
            self.weights.append(np.broadcast_to(np.int64(0), self.size))
            self.sums.append(exact(column))
        else:
            none = NO_MINIMUM if kind == MINIMUM else NO_MAXIMUM
            values, ranks = (column.words, column.codes) if isinstance(column, Texts) else _ranked(column)
            self._values[attribute] = values
            self.weights.append(np.where(column.null, none, ranks).astype(np.int32))


_KINDS = {"COUNT": (COUNT,), "SUM": (SUM, COUNT), "AVG": (SUM, COUNT), "MIN": (MINIMUM,), "MAX": (MAXIMUM,)}


def _quotient(total: Number, divisor: Number) -> Fraction | Approximate:
    if isinstance(total, int) and isinstance(divisor, int):
        return Fraction(total, divisor)
    return Approximate.of(total) / divisor


def exact(numbers: Numbers) -> Exact:
    """Numbers as limbs, nulls as 0.

    >>> column = Numbers(np.array([0.5, 3.0]), np.array([False, False]))
    >>> integers(exact(column).limbs.T), exact(column).exponent
    ([1, 6], -1)
    """
    values = np.where(numbers.null, 0, numbers.values) if numbers.null.any() else numbers.values
    if values.dtype == np.float64:
        return _floats(values)
    size = max((int(value).bit_length() for value in (values.min(initial=0), values.max(initial=0))), default=0)
    limbs = np.empty((size // BITS + 1, len(values)), np.int32)
    for at, limb in enumerate(limbs):
        digits = values >> (BITS * at)
        limb[:] = digits if at == len(limbs) - 1 else digits & MASK
    return Exact(limbs, 0, whole=True)


def _floats(values: Array) -> Exact:
    """Floats are integers times powers of two; the least of these powers becomes that of all."""
    chunks = [slice(at, at + CHUNK) for at in range(0, len(values), CHUNK)]
    powers = [_powers(values[chunk]) for chunk in chunks]
    exponent, top = (pick((p[at] for p in powers), default=0) for at, pick in enumerate((min, max)))
    limbs = np.zeros(((top - exponent) // BITS + 2, len(values)), np.int32)
    for chunk in chunks:
        fractions, exponents = np.frexp(values[chunk])
        digits = (fractions * 2.0**53).astype(np.int64)
        offset = exponent + 53 - exponents.astype(np.int64)
        for at, limb in enumerate(limbs):
            # What leaves 64 bits is not of this limb; the sign fills the bits above.
            part = (digits >> np.clip(offset, 0, 63)) << np.clip(-offset, 0, 63)
            limb[chunk] = part if at == len(limbs) - 1 else part & MASK
            offset += BITS
    return Exact(limbs, exponent, whole=False)


def _powers(values: Array) -> tuple[int, int]:
    """The least and greatest power of two in some floats."""
    values = values[values != 0]
    fractions, exponents = np.frexp(values)
    digits = (fractions * 2.0**53).astype(np.int64)
    zeros = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    low = exponents - 53 + zeros
    return (int(low.min()), int(exponents.max())) if len(values) else (0, 0)


def _ranked(column: Numbers) -> tuple[list[Value], Array]:
    values, ranks = np.unique(column.values, return_inverse=True)
    return values.tolist(), ranks
