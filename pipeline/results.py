"""Rows of an engine → rows for people: HAVING applied, windows and numbers written out, ordered by window and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pipeline.approximate import Approximate
from pipeline.engines.contract import DEFAULT_MAX_BITS, Row, Value
from pipeline.engines.evaluate import CALCULATE, COMPARE
from pipeline.engines.stream import Stream
from pipeline.events import Column, Texts
from pipeline.query import tree
from pipeline.query.checked import Query

# A value as JSON holds it.
Shown = int | float | str | None


def result_rows(
    query: Query, stream: Stream, rows: list[Row], max_bits: int = DEFAULT_MAX_BITS
) -> list[dict[str, Any]]:
    """The rows of a result: one object each, as JSONL gives them."""
    place = int if stream.window.in_events else stream.clock.show
    names = query.group_by
    groups = [dict(zip(names, values, strict=True)) for values in group_values(query, stream)]
    at = {aggregate: number for number, aggregate in enumerate(query.aggregates)}
    items = [(item.label, item.value) for item in query.tree.returns]
    aggregates = [(label, at[value]) for label, value in items if isinstance(value, tree.Aggregate)]
    attributes = [(label, value.name) for label, value in items if isinstance(value, tree.Name)]
    shown = []
    for row in sorted(rows):
        group = groups[row.group]
        result = {"window_start": place(row.window_start), "window_end": place(row.window_end), **group}
        result.update((label, group[name]) for label, name in attributes)
        result.update((label, show_value(row.values[number], max_bits)) for label, number in aggregates)
        if any(is_rounded(row.values[number], max_bits) for _, number in aggregates):
            result["exact"] = False
        if query.tree.having is None or is_kept(query, row.values, group):
            shown.append(result)
    return shown


def group_values(query: Query, stream: Stream) -> list[tuple[Shown, ...]]:
    """The GROUP-BY values of each group."""
    if not query.group_by:
        return [()]
    return list(zip(*(values.tolist() for values in stream.groups), strict=True))


def is_rounded(value: Value, max_bits: int) -> bool:
    """Whether a value was rounded, or is an integer with more bits than are shown exactly."""
    return isinstance(value, Approximate) or (isinstance(value, int) and value.bit_length() > max_bits)


def show_value(value: Value, max_bits: int = DEFAULT_MAX_BITS) -> Shown:
    """An exact value as it is shown: integers in full up to so many bits, fractions rounded once.

    >>> show_value(2**70), show_value(2**70, 64), show_value(Fraction(1, 3)), show_value(Fraction(10**400, 3))
    (1180591620717411303424, '1.1806e21', 0.3333333333333333, '3.3333e399')
    """
    if isinstance(value, int) and value.bit_length() > max_bits:
        return decimal_text(Fraction(value))
    if isinstance(value, Approximate) and value.whole:
        return str(value)
    if isinstance(value, Fraction | Approximate):
        try:
            return float(value)
        except OverflowError:
            return decimal_text(value) if isinstance(value, Fraction) else str(value)
    return value


def show_event_value(column: Column, row: int) -> Shown:
    """An event's own value."""
    if column.null[row]:
        return None
    if isinstance(column, Texts):
        return column.words[int(column.codes[row])]
    value: Shown = column.values[row : row + 1].tolist()[0]
    return value


def decimal_text(value: Fraction) -> str:
    """A number of any size with five digits.

    >>> decimal_text(Fraction(2**65536)), decimal_text(Fraction(-99999999))
    ('2.0035e19728', '-1.0000e8')
    """
    if value == 0:
        return "0.0000e0"
    size = abs(value)
    # log10 from the numbers of bits is off by at most one; the digits then say which it is.
    exponent = (size.numerator.bit_length() - size.denominator.bit_length()) * 30103 // 100000
    while size >= Fraction(10) ** (exponent + 1):
        exponent += 1
    while size < Fraction(10) ** exponent:
        exponent -= 1
    digits = round(size / Fraction(10) ** (exponent - 4))
    if digits == 100000:
        digits, exponent = 10000, exponent + 1
    return f"{'-' if value < 0 else ''}{digits // 10000}.{digits % 10000:04d}e{exponent}"


# --------------------------------------------------------------------------------------------------------------- HAVING


def is_kept(query: Query, row: Sequence[Value], group: Mapping[str, Shown]) -> bool:
    """Whether HAVING keeps a row, given by the values of the query's aggregates and by its group."""
    assert query.tree.having is not None
    values: dict[object, Value] = {
        aggregate: _comparable(value) for aggregate, value in zip(query.aggregates, row, strict=True)
    }
    names: dict[str, Value] = dict(group)
    for item in query.tree.returns:
        if isinstance(item.value, tree.Aggregate):
            names[item.label] = values[item.value]
        else:
            names[item.label] = names[item.value.name]
    return _holds(query.tree.having, values, names)


def _comparable(value: Value) -> Value:
    """HAVING compares what is shown: a fraction that a float can hold is that float."""
    shown = show_value(value) if isinstance(value, Fraction | Approximate) else value
    return value if isinstance(shown, str) else shown


def _holds(condition: tree.Condition, values: Mapping[object, Value], names: Mapping[str, Value]) -> bool:
    match condition:
        case tree.AllOf(parts):
            return all(_holds(part, values, names) for part in parts)
        case tree.AnyOf(parts):
            return any(_holds(part, values, names) for part in parts)
        case tree.Complement(part):
            return not _holds(part, values, names)
        case tree.Comparison(op, left, right):
            one, two = _value(left, values, names), _value(right, values, names)
            comparable = one is not None and two is not None and isinstance(one, str) == isinstance(two, str)
            return comparable and bool(COMPARE[op](one, two))
    raise AssertionError(f"{condition} cannot stand in HAVING")


def _value(expression: tree.Expression, values: Mapping[object, Value], names: Mapping[str, Value]) -> Value:
    match expression:
        case tree.Constant(constant):
            return constant
        case tree.Name(name):
            return names[name]
        case tree.Minus(operand):
            return _calculated("-", 0, _value(operand, values, names))
        case tree.Arithmetic(op, left, right):
            return _calculated(op, _value(left, values, names), _value(right, values, names))
        case _:
            return values[expression]


def _calculated(op: str, left: Value, right: Value) -> Value:
    if left is None or right is None or isinstance(left, str) or isinstance(right, str) or (op == "/" and right == 0):
        return None
    try:
        return CALCULATE[op](left, right)  # type: ignore[no-any-return]
    except OverflowError:
        return CALCULATE[op](Fraction(left), Fraction(right))  # type: ignore[arg-type, no-any-return]
