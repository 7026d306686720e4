"""What indexes compare, as small integers: an event's code, which must be equal, and its key, which must be below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.index_forms import Form, Sides
from pipeline.engines.stream import Stream, compact, numbered
from pipeline.events import Array, Numbers
from pipeline.query import tree


class Row(NamedTuple):
    """x may come before y if they have the same code, x's key is below y's bound, and x's first value below y's.

    What is the same for x and y is one array.
    """

    x_code: Array | None  # -1: is not stored; None: all are 0
    x_key: Array
    y_code: Array | None  # -1: asks for nothing
    y_bound: Array
    segment: Array  # per code: its first key; and the end of the last
    x_first: Array
    y_first: Array


class _Pair(NamedTuple):
    """Numbers of x and of y in one common order."""

    x: Array
    y: Array

    @property
    def size(self) -> int:
        """More than any of these numbers."""
        return max(int(numbers.max(initial=0)) for numbers in self) + 1

    def map(self, change: Callable[[Array], Array]) -> _Pair:
        """Both changed in the same way."""
        x = change(self.x)
        return _Pair(x, x if self.y is self.x else change(self.y))


def make_row(form: Form, stream: Stream) -> Row:
    """The codes and keys of a form that has no `!=`; the first of two orders is apart."""
    size = len(stream)
    x_stored, y_asks = _all_hold(form.earlier, stream), _all_hold(form.later, stream)
    codes = None
    for sides in form.equal:
        ranks, has = _ranks(sides, stream)
        x_stored, y_asks = x_stored & has.x, y_asks & has.y
        codes = ranks if codes is None else _joined(codes, ranks)
    orders = [] if form.ordered else [_Pair(np.zeros(size, np.int32), np.ones(size, np.int32))]
    for sides in form.ordered:
        ranks, has = _ranks(sides, stream)
        x_stored, y_asks = x_stored & has.x, y_asks & has.y
        orders.append(_below(sides, ranks))
    keys = orders[-1] if codes is None else _joined(codes, orders[-1])
    code = np.zeros(keys.size, np.int32)
    if codes is not None:
        code[keys.x], code[keys.y] = codes
    # Only x's own keys need a place in the tree: a bound is how many of them are below it.
    smaller = np.zeros(keys.size + 1, np.int32)
    smaller[1:][keys.x if x_stored.all() else keys.x[x_stored]] = 1
    np.cumsum(smaller, out=smaller)
    keys = keys.map(lambda numbers: smaller[numbers])
    count = 1 if codes is None else codes.size
    none = np.zeros(0, np.int32)
    return Row(
        x_code=_marked(None if codes is None else codes.x, x_stored),
        x_key=keys.x,
        y_code=_marked(None if codes is None else codes.y, y_asks),
        y_bound=keys.y,
        segment=smaller[np.searchsorted(code, np.arange(count + 1))],
        x_first=orders[0].x if len(orders) == 2 else none,
        y_first=orders[0].y if len(orders) == 2 else none,
    )


def _marked(codes: Array | None, used: Array) -> Array | None:
    """Codes, with -1 where they are not used."""
    if used.all():
        return codes
    return np.where(used, np.int32(0) if codes is None else codes, np.int32(-1))


def _below(sides: Sides, ranks: _Pair) -> _Pair:
    """Numbers of which x's is below y's where the comparison holds."""
    if sides.op in (">", ">="):
        highest = np.int32(ranks.size - 1)
        ranks = ranks.map(lambda numbers: highest - numbers)
    return _Pair(2 * ranks.x, 2 * ranks.y + 1) if "=" in sides.op else ranks


def _ranks(sides: Sides, stream: Stream) -> tuple[_Pair, _Pair]:
    """The ranks of both sides' values, and where they are not null."""
    x, y = (evaluate.value(side, lambda attribute: stream.columns[attribute.attribute]) for side in (sides.x, sides.y))
    one, two = evaluate.common(x, y, sides)
    values = one if one is two else np.concatenate([one, two])
    ranks = numbered([Numbers(values, np.zeros(len(values), bool))])
    assert ranks is not None
    pair = _Pair(ranks, ranks) if one is two else _Pair(ranks[: len(one)], ranks[len(one) :])
    return pair, _Pair(~x.null, ~y.null)


def _joined(high: _Pair, low: _Pair) -> _Pair:
    """Numbers that order by the first ones, then by the others, without gaps."""
    size = low.size
    x, y = (one * np.int64(size) + other for one, other in zip(high, low, strict=True))
    both = compact(np.concatenate([x, y]))
    return _Pair(both[: len(x)], both[len(x) :])


def _all_hold(conditions: Sequence[tree.Condition], stream: Stream) -> Array:
    satisfied = np.ones(len(stream), bool)
    for condition in conditions:
        satisfied = satisfied & evaluate.holds(condition, lambda attribute: stream.columns[attribute.attribute])
    return satisfied
