"""What indexes compare, as small integers: an event's code, which must be equal, and its key, which must be below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.index_forms import Form, Sides
from pipeline.engines.stream import Stream, compact, numbered
from pipeline.events import Array, Numbers
from pipeline.query import tree


class Row(NamedTuple):
    """x may come before y if they have the same code, x's key is below y's bound, and x's first value below y's."""

    x_code: Array  # -1: is not stored
    x_key: Array
    y_code: Array  # -1: asks for nothing
    y_bound: Array
    segment: Array  # per code: its first key; and the end of the last
    x_first: Array
    y_first: Array


class _Ranks(NamedTuple):
    """Values of x and of y as numbers in one common order, and where they are not null."""

    x: Array
    y: Array
    has_x: Array
    has_y: Array

    @property
    def size(self) -> int:
        return _size(self.x, self.y)


def make_row(form: Form, stream: Stream) -> Row:
    """The codes and keys of a form that has no `!=`; the first of two orders is apart."""
    x_stored, y_asks = _all_hold(form.earlier, stream), _all_hold(form.later, stream)
    x_code = y_code = np.zeros(len(stream), np.int64)
    for sides in form.equal:
        ranks = _ranks(sides, stream)
        x_stored, y_asks = x_stored & ranks.has_x, y_asks & ranks.has_y
        x_code, y_code = _compact(x_code * ranks.size + ranks.x, y_code * ranks.size + ranks.y)
    ordered = [] if form.ordered else [(np.zeros_like(x_code), np.ones_like(y_code))]
    for sides in form.ordered:
        ranks = _ranks(sides, stream)
        x_stored, y_asks = x_stored & ranks.has_x, y_asks & ranks.has_y
        ordered.append(_below(sides, ranks))
    x, y = ordered[-1]
    size = _size(x, y)
    if form.equal:
        x, y = _compact(x_code * size + x, y_code * size + y)
        size = _size(x, y)
    code = np.zeros(size, np.int64)
    if form.equal:
        code[x], code[y] = x_code, y_code
    # Only x's own keys need a place in the tree: a bound is how many of them are below it.
    smaller = np.zeros(size + 1, np.int32)
    smaller[1:][x if x_stored.all() else x[x_stored]] = 1
    np.cumsum(smaller, out=smaller)
    return Row(
        x_code=np.where(x_stored, x_code, -1),
        x_key=smaller[x],
        y_code=np.where(y_asks, y_code, -1),
        y_bound=smaller[y],
        segment=smaller[np.searchsorted(code, np.arange(_size(x_code, y_code) + 1))],
        x_first=ordered[0][0] if len(ordered) == 2 else x_code[:0],
        y_first=ordered[0][1] if len(ordered) == 2 else y_code[:0],
    )


def _below(sides: Sides, ranks: _Ranks) -> tuple[Array, Array]:
    """Numbers of which x's is below y's where the comparison holds."""
    x, y = ranks.x, ranks.y
    if sides.op in (">", ">="):
        x, y = ranks.size - 1 - x, ranks.size - 1 - y
    return (2 * x, 2 * y + 1) if "=" in sides.op else (x, y)


def _ranks(sides: Sides, stream: Stream) -> _Ranks:
    x, y = (evaluate.value(side, lambda attribute: stream.columns[attribute.attribute]) for side in (sides.x, sides.y))
    one, two = evaluate.common(x, y, sides)
    values = one if one is two else np.concatenate([one, two])
    if values.dtype == np.float64:
        values = values + 0.0  # -0.0 equals 0.0 but is not hashed as it is
    ranks = numbered([Numbers(values, np.zeros(len(values), bool))])
    assert ranks is not None
    return _Ranks(ranks[: len(one)], ranks[-len(two) :] if len(two) else ranks, ~x.null, ~y.null)


def _size(x: Array, y: Array) -> int:
    """More than any of these numbers."""
    return max(int(x.max(initial=0)), int(y.max(initial=0))) + 1


def _compact(x: Array, y: Array) -> tuple[Array, Array]:
    if x is y:
        both = compact(x)
        return both, both
    both = compact(np.concatenate([x, y]))
    return both[: len(x)], both[len(x) :]


def _all_hold(conditions: Sequence[tree.Condition], stream: Stream) -> Array:
    satisfied = np.ones(len(stream), bool)
    for condition in conditions:
        satisfied = satisfied & evaluate.holds(condition, lambda attribute: stream.columns[attribute.attribute])
    return satisfied
