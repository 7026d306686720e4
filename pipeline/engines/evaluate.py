"""Conditions and expressions over columns: exact integers, two-valued logic, arithmetic as written."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.events import Array, Column, Numbers, Texts
from pipeline.query import tree

# The column of an attribute, for the events that its variable is bound to.
Lookup = Callable[[tree.Attribute], Column]

EXACT_FLOAT = 2**53  # integers up to here are floats without loss
INT64 = 2**63 - 1

CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(condition: tree.Condition, lookup: Lookup) -> Array:
    """Where a condition holds; a comparison with a null does not, and NOT makes it hold."""
    match condition:
        case tree.Comparison(op, left, right):
            return _compare(op, value(left, lookup), value(right, lookup), condition)
        case tree.AllOf(parts):
            return reduce(np.logical_and, (holds(part, lookup) for part in parts))
        case tree.AnyOf(parts):
            return reduce(np.logical_or, (holds(part, lookup) for part in parts))
        case tree.Complement(part):
            return np.logical_not(holds(part, lookup))
    raise AssertionError(f"{condition} is no condition on events")


def value(expression: tree.Expression, lookup: Lookup) -> Column:
    """The values of an expression; a constant is a column of length 1, which numpy spreads over the others."""
    match expression:
        case tree.Attribute():
            return lookup(expression)
        case tree.Constant(constant):
            return constant_column(constant)
        case tree.Minus(operand):
            return _calculate("-", constant_column(0), value(operand, lookup), expression)
        case tree.Arithmetic(op, left, right):
            return _calculate(op, value(left, lookup), value(right, lookup), expression)
    raise AssertionError(f"{expression} is no expression on events")


def constant_column(constant: int | float | str) -> Column:
    """A constant as a column of one value."""
    if isinstance(constant, str):
        return Texts(np.zeros(1, np.int32), (constant,))
    small = isinstance(constant, float) or abs(constant) <= INT64
    return Numbers(np.array([constant], dtype=None if small else object), np.zeros(1, bool))


def take(column: Column, index: Array) -> Column:
    """The column's values at these positions."""
    if isinstance(column, Texts):
        return Texts(column.codes[index], column.words)
    null = column.null[index] if column.null.any() else np.zeros(len(index), bool)
    return Numbers(column.values[index], null)


def common(left: Column, right: Column, what: object) -> tuple[Array, Array]:
    """Two columns as arrays that compare as their values do, exactly."""
    if isinstance(left, Texts) and isinstance(right, Texts):
        if left.words == right.words:
            return left.codes, right.codes
        words = {word: code for code, word in enumerate(sorted({*left.words, *right.words}))}
        return _recoded(left, words), _recoded(right, words)
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        if left.values.dtype == right.values.dtype or not (is_wide(left.values) or is_wide(right.values)):
            return left.values, right.values
        return left.values.astype(object), right.values.astype(object)
    if np.all(left.null) or np.all(right.null):
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64)
    raise InputError(f"{what} compares text with numbers in this input\nhint: look at the columns' values")


def _compare(op: str, left: Column, right: Column, what: tree.Comparison) -> Array:
    one, two = common(left, right, what)
    return np.asarray(COMPARE[op](one, two), bool) & ~left.null & ~right.null


def _recoded(texts: Texts, words: dict[str, int]) -> Array:
    codes = np.array([words[word] for word in texts.words] + [-1], np.int32)
    return codes[texts.codes]


def is_wide(values: Array) -> bool:
    """Whether these are integers that would lose digits as floats."""
    if values.dtype == np.float64:
        return False
    return values.dtype == object or _bound(values) > EXACT_FLOAT


def _bound(values: Array) -> int:
    return 0 if not len(values) else max(abs(int(values.max())), abs(int(values.min())))


def _calculate(op: str, left: Column, right: Column, what: tree.Expression) -> Numbers:
    left, right = _as_numbers(left, what), _as_numbers(right, what)
    one, two, null = left.values, right.values, left.null | right.null
    if op == "/":
        zero = np.asarray(two == 0, bool)
        two, null = np.where(zero, 1, two), null | zero
    if _needs_objects(op, left, right):
        one, two = one.astype(object), two.astype(object)
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(CALCULATE[op](one, two))
    except OverflowError:
        raise InputError(f"{what} meets integers too large for a fraction\nhint: look at the columns' values") from None
    null = null | np.asarray(result != result, bool)  # NaN: infinity less infinity
    return Numbers(np.where(null, 0, result), null)


def _as_numbers(column: Column, what: tree.Expression) -> Numbers:
    if isinstance(column, Texts):
        if not np.all(column.null):
            raise InputError(f"{what} calculates with text in this input\nhint: look at the columns' values")
        return Numbers(np.zeros(len(column), np.int64), column.null)
    return column


def _needs_objects(op: str, left: Numbers, right: Numbers) -> bool:
    """Whether machine arithmetic could overflow or lose a digit that Python's integers keep."""
    if object in (left.values.dtype, right.values.dtype):
        return True
    if np.float64 in (left.values.dtype, right.values.dtype) or op == "/":
        return is_wide(left.values) or is_wide(right.values)
    one, two = _bound(left.values), _bound(right.values)
    return (one * two if op == "*" else one + two) > INT64
