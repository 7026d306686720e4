"""Conditions on two events as programs for a small stack machine, so that compiled loops can run them.

What depends on one of the two events alone is calculated beforehand, over whole columns and exactly; only what joins
them is left to the machine, as floats in which NaN stands for null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.kernels import machine
from pipeline.events import Array, Column, Texts
from pipeline.query import tree
from pipeline.query.checked import Reference

_ARITHMETIC = {"+": machine.ADD, "-": machine.SUB, "*": machine.MUL, "/": machine.DIV}
_COMPARISON = {
    "=": machine.EQ,
    "!=": machine.NE,
    "<": machine.LT,
    "<=": machine.LE,
    ">": machine.GT,
    ">=": machine.GE,
}


@dataclass
class Programs:
    """Collects programs; `add` gives each a number, and the same number to the same condition."""

    columns: dict[str, Column]
    size: int
    _leaves: list[Array] = field(default_factory=list)
    _leaf_numbers: dict[object, int] = field(default_factory=dict)
    _code: list[tuple[int, int]] = field(default_factory=list)
    _constants: list[float] = field(default_factory=list)
    _starts: list[int] = field(default_factory=lambda: [0])
    _known: dict[object, int] = field(default_factory=dict)

    def add(self, conditions: Iterable[tuple[tree.Condition, Reference, Reference]]) -> int:
        """The program that tests all these conditions, each with the references of its two events; -1 for none."""
        parts = tuple(conditions)
        if not parts:
            return -1
        if parts not in self._known:
            for number, (condition, x, y) in enumerate(parts):
                self._condition(condition, x, y)
                if number:
                    self._emit(machine.AND)
            self._known[parts] = len(self._starts) - 1
            self._starts.append(len(self._code))
        return self._known[parts]

    def compiled(self) -> machine.Code:
        """All programs as arrays."""
        code = np.array(self._code, np.int64).reshape(-1, 2)
        leaves = np.array(self._leaves, np.float64).reshape(len(self._leaves), self.size)
        return machine.Code(
            np.array(self._starts, np.int64),
            np.ascontiguousarray(code[:, 0]),
            np.ascontiguousarray(code[:, 1]),
            leaves,
            np.array(self._constants, np.float64),
            np.empty(max(8, len(code)), np.float64),
        )

    def _emit(self, op: int, argument: int = 0) -> None:
        self._code.append((op, argument))

    def _condition(self, condition: tree.Condition, x: Reference, y: Reference) -> None:
        side = _side(tree.attributes(condition), x, y)
        if side is not None:
            self._load(side, (condition, None), lambda: evaluate.holds(condition, self._lookup).astype(np.float64))
            return
        match condition:
            case tree.Comparison(op, left, right):
                if not self._separate(op, left, right, x, y, condition):
                    self._expression(left, x, y)
                    self._expression(right, x, y)
                    self._emit(_COMPARISON[op])
            case tree.AllOf(parts) | tree.AnyOf(parts):
                for number, part in enumerate(parts):
                    self._condition(part, x, y)
                    if number:
                        self._emit(machine.AND if isinstance(condition, tree.AllOf) else machine.OR)
            case tree.Complement(part):
                self._condition(part, x, y)
                self._emit(machine.NOT)

    def _separate(
        self, op: str, left: tree.Expression, right: tree.Expression, x: Reference, y: Reference, what: tree.Comparison
    ) -> bool:
        """Compare one side of x with one of y by ranks, which are exact for text and integers of any size."""
        sides = [_side(_attributes(expression), x, y) for expression in (left, right)]
        if None in sides:
            return False
        keys = [(side, (left, right, number)) for number, side in enumerate(sides)]
        if keys[0][1] not in self._leaf_numbers:
            ranked = _ranked(evaluate.value(left, self._lookup), evaluate.value(right, self._lookup), what)
            for (_, key), column in zip(keys, ranked, strict=True):
                self._leaf_numbers[key] = len(self._leaves)
                self._leaves.append(column)
        for side, key in keys:
            assert side is not None
            self._emit(side, self._leaf_numbers[key])
        self._emit(_COMPARISON[op])
        return True

    def _expression(self, expression: tree.Expression, x: Reference, y: Reference) -> None:
        if isinstance(expression, tree.Constant):
            assert not isinstance(expression.value, str)
            self._constants.append(_float(expression.value))
            self._emit(machine.CONSTANT, len(self._constants) - 1)
            return
        side = _side(_attributes(expression), x, y)
        if side is not None:
            self._load(side, (None, expression), lambda: _floats(evaluate.value(expression, self._lookup), expression))
            return
        match expression:
            case tree.Arithmetic(op, left, right):
                self._expression(left, x, y)
                self._expression(right, x, y)
                self._emit(_ARITHMETIC[op])
            case tree.Minus(operand):
                self._expression(tree.Constant(0), x, y)
                self._expression(operand, x, y)
                self._emit(machine.SUB)

    def _load(self, side: int, key: object, column: Callable[[], Array]) -> None:
        if key not in self._leaf_numbers:
            self._leaf_numbers[key] = len(self._leaves)
            self._leaves.append(np.broadcast_to(column(), self.size))
        self._emit(side, self._leaf_numbers[key])

    def _lookup(self, attribute: tree.Attribute) -> Column:
        return self.columns[attribute.attribute]


def _attributes(expression: tree.Expression) -> Iterator[tree.Attribute]:
    return (leaf for leaf in tree.leaves(expression) if isinstance(leaf, tree.Attribute))


def _side(attributes: Iterable[tree.Attribute], x: Reference, y: Reference) -> int | None:
    """Which of the two events these attributes are of; None if of both or of none."""
    references = {Reference(attribute.variable, attribute.next) for attribute in attributes}
    if references == {x}:
        return machine.LOAD_X
    return machine.LOAD_Y if references == {y} else None


def _ranked(left: Column, right: Column, what: object) -> tuple[Array, Array]:
    one, two = evaluate.common(left, right, what)
    if not (evaluate.is_wide(one) or evaluate.is_wide(two)):
        return _nulled(one, left), _nulled(two, right)
    both = np.concatenate([one, two])
    if both.dtype == object:
        order = {v: rank for rank, v in enumerate(sorted(set(both.tolist())))}
        ranks = np.array([order[v] for v in both.tolist()], np.float64)
    else:
        ranks = np.unique(both, return_inverse=True)[1].astype(np.float64)
    return _nulled(ranks[: len(one)], left), _nulled(ranks[len(one) :], right)


def _float(constant: int | float) -> float:
    try:
        return float(constant)
    except OverflowError:
        return math.copysign(math.inf, 1 if constant > 0 else -1)


def _floats(column: Column, what: object) -> Array:
    assert not isinstance(column, Texts), what
    return _nulled(column.values.astype(np.float64), column)


def _nulled(values: Array, column: Column) -> Array:
    return np.where(column.null, np.nan, values.astype(np.float64))
