"""Conditions between neighbours as columns that kernels compare directly, and as programs where they are more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.kernels.machine import Code
from pipeline.engines.kernels.neighbours import Edges
from pipeline.engines.programs import Programs
from pipeline.engines.stream import Stream, numbered
from pipeline.events import Array, Column, Numbers
from pipeline.query import tree
from pipeline.query.checked import Machine, Pair, Reference

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

# A comparison's operator, and its sides: of the earlier event, of the later one.
_Separate = tuple[str, tree.Expression, tree.Expression]


def make_edges(machine: Machine, stream: Stream) -> tuple[Edges, Code]:
    """The edges of an automaton in its own order: any equalities and one order are compared directly."""
    columns = _Columns(stream)
    programs = Programs(dict(stream.columns), len(stream))
    follow = list(machine.automaton.follow)
    states = len(machine.automaton.states)
    number = np.full((states, states), -1)
    rows = np.full((4, len(follow)), -1)
    sign, loose, program = np.ones(len(follow)), np.zeros(len(follow), bool), np.full(len(follow), -1)
    for edge, ends in enumerate(follow):
        number[ends] = edge
        pairs = machine.adjacent.get(ends, ())
        separate = [comparison for pair in pairs if (comparison := _separated(pair))]
        equalities = [comparison for comparison in separate if comparison[0] == "="]
        orders = [comparison for comparison in separate if comparison[0] != "="]
        if len(separate) < len(pairs) or len(orders) > 1:
            program[edge] = programs.add((pair.condition, pair.earlier, pair.later) for pair in pairs)
            continue
        if equalities:
            rows[:2, edge] = columns.codes(equalities)
        for order in orders:
            rows[2:, edge] = columns.keys(order)
            sign[edge], loose[edge] = (1 if order[0][0] == ">" else -1), order[0][1:] == "="
    code = as_rows(columns.code_rows, len(stream), np.int32)
    key = as_rows(columns.key_rows, len(stream), np.float64)
    return Edges(number, rows[0], rows[1], rows[2], rows[3], sign, loose, program, code, key), programs.compiled()


def _separated(pair: Pair) -> _Separate | None:
    """A comparison of one event with the other, if a pair's condition is one."""
    if not isinstance(pair.condition, tree.Comparison) or pair.condition.op not in _TURNED:
        return None
    op, left, right = pair.condition.op, pair.condition.left, pair.condition.right
    references = [_references(left), _references(right)]
    if references == [{pair.earlier}, {pair.later}]:
        return op, _of_any(left), _of_any(right)
    if references == [{pair.later}, {pair.earlier}]:
        return _TURNED[op], _of_any(right), _of_any(left)
    return None


def _references(side: tree.Expression) -> set[Reference]:
    return {Reference(leaf.variable, leaf.next) for leaf in tree.leaves(side) if isinstance(leaf, tree.Attribute)}


def _of_any(side: tree.Expression) -> tree.Expression:
    """An expression of one event, whatever its variable, so that the same one of both events is one column."""
    match side:
        case tree.Attribute():
            return replace(side, variable="", next=False)
        case tree.Arithmetic(_, left, right):
            return replace(side, left=_of_any(left), right=_of_any(right))
        case tree.Minus(operand):
            return replace(side, operand=_of_any(operand))
    return side


class _Columns:
    """The columns that comparisons need, each once."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.key_rows: list[Array] = []
        self.code_rows: list[Array] = []
        self._known: dict[object, tuple[int, int]] = {}

    def keys(self, order: _Separate) -> tuple[int, int]:
        """The rows of both sides of a comparison, as floats in which NaN is null."""
        sides = order[1:]
        if sides not in self._known:
            self._known[sides] = _added(self.key_rows, *self._floats(order))
        return self._known[sides]

    def codes(self, equalities: Sequence[_Separate]) -> tuple[int, int]:
        """The rows of codes that are equal where all these equalities hold; -1 is null."""
        wanted = tuple(equality[1:] for equality in equalities)
        if wanted not in self._known:
            pairs = [self._floats(equality) for equality in equalities]
            same = all(one is two for one, two in pairs)
            values = [one if same else np.concatenate([one, two]) for one, two in pairs]
            null = np.logical_or.reduce([np.isnan(value) for value in values])
            # Zero and minus zero are equal.
            plain = [Numbers(np.where(null, 0.0, value + 0.0), null) for value in values]
            codes = numbered(plain)
            assert codes is not None
            codes = np.where(null, -1, codes).astype(np.int32)
            first = codes[: len(self.stream)]
            self._known[wanted] = _added(self.code_rows, first, first if same else codes[len(self.stream) :])
        return self._known[wanted]

    def _floats(self, comparison: _Separate) -> tuple[Array, Array]:
        op, x, y = comparison
        left = self._value(x)
        right = left if x == y else self._value(y)
        one, two = evaluate.common(left, right, tree.Comparison(op, x, y))
        if evaluate.is_wide(one) or evaluate.is_wide(two):
            both = one if left is right else np.concatenate([one, two])
            ranks = numbered([Numbers(both, np.zeros(len(both), bool))])
            assert ranks is not None
            one, two = ranks[: len(one)], ranks[-len(two) :]
        first = _nulled(one, left)
        return first, first if left is right else _nulled(two, right)

    def _value(self, expression: tree.Expression) -> Column:
        return evaluate.value(expression, lambda attribute: self.stream.columns[attribute.attribute])


def _added(rows: list[Array], one: Array, two: Array) -> tuple[int, int]:
    rows.append(one)
    if two is not one:
        rows.append(two)
    return len(rows) - (1 if two is one else 2), len(rows) - 1


def _nulled(values: Array, column: Column) -> Array:
    if values.dtype == np.float64 and not column.null.any():
        return values
    floats = values.astype(np.float64)
    floats[column.null] = np.nan
    return floats


def as_rows(columns: list[Array], size: int, kind: type) -> Array:
    """Columns as rows; a single one is not copied."""
    return columns[0].reshape(1, size) if len(columns) == 1 else np.array(columns, kind).reshape(len(columns), size)
