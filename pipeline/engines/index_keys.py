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
    """x may come before y if they have the same code (-1: none) and x's key is below y's bound."""

    x_code: Array
    x_key: Array
    y_code: Array
    y_bound: Array
    segment: Array  # per code: its first key; and the end of the last

    @property
    def distinct(self) -> int:
        """How many keys there are."""
        return int(self.segment[-1])


class _Ranks(NamedTuple):
    """Values of x and of y as numbers in one common order, and where they are not null."""

    x: Array
    y: Array
    has_x: Array
    has_y: Array

    @property
    def size(self) -> int:
        return max(int(self.x.max(initial=-1)), int(self.y.max(initial=-1))) + 1


def make_row(form: Form, stream: Stream) -> Row:
    """The codes and keys of a form that has no `!=` and at most one order."""
    x_stored, y_asks = _all_hold(form.earlier, stream), _all_hold(form.later, stream)
    x_code = y_code = x_rank = y_rank = np.zeros(len(stream), np.int64)
    inclusive = True
    for sides in form.equal:
        ranks = _ranks(sides, stream)
        x_stored, y_asks = x_stored & ranks.has_x, y_asks & ranks.has_y
        x_code, y_code = _compact(x_code * ranks.size + ranks.x, y_code * ranks.size + ranks.y)
    for sides in form.ordered:
        ranks = _ranks(sides, stream)
        x_stored, y_asks = x_stored & ranks.has_x, y_asks & ranks.has_y
        x_rank, y_rank = below(sides, ranks)
        inclusive = "=" in sides.op
    count = max(int(x_rank.max(initial=0)), int(y_rank.max(initial=0))) + 1
    x, y = _compact(x_code * count + x_rank, y_code * count + y_rank)
    # Only x's own keys need a place in the tree: a bound is how many of them are below it.
    stored = np.zeros(max(int(x.max(initial=-1)), int(y.max(initial=-1))) + 1, np.int32)
    stored[x[x_stored]] = 1
    smaller = np.concatenate([[0], np.cumsum(stored, dtype=np.int32)])
    code = np.empty(len(stored), np.int64)
    code[x], code[y] = x_code, y_code
    codes = np.arange((int(code[-1]) if len(code) else -1) + 2)
    return Row(
        x_code=np.where(x_stored, x_code, -1).astype(np.int32),
        x_key=smaller[x],
        y_code=np.where(y_asks, y_code, -1).astype(np.int32),
        y_bound=smaller[y + inclusive],
        segment=smaller[np.searchsorted(code, codes)],
    )


def below(sides: Sides, ranks: _Ranks) -> tuple[Array, Array]:
    """Ranks in which x comes first where the comparison holds."""
    if sides.op in (">", ">="):
        return ranks.size - 1 - ranks.x, ranks.size - 1 - ranks.y
    return ranks.x, ranks.y


def _ranks(sides: Sides, stream: Stream) -> _Ranks:
    x, y = (evaluate.value(side, lambda attribute: stream.columns[attribute.attribute]) for side in (sides.x, sides.y))
    one, two = evaluate.common(x, y, sides)
    values = one if one is two else np.concatenate([one, two])
    if values.dtype == np.float64:
        values = values + 0.0  # -0.0 equals 0.0 but is not hashed as it is
    ranks = numbered([Numbers(values, np.zeros(len(values), bool))], len(values))
    assert ranks is not None
    return _Ranks(ranks[: len(one)], ranks[-len(two) :] if len(two) else ranks, ~x.null, ~y.null)


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
