"""The syntax tree of a query: frozen nodes that print themselves back as query text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from pipeline.errors import Span
from pipeline.query.tokens import RESERVED

NOWHERE = Span(0, 0)


def name_text(name: str) -> str:
    """A name as the language writes it, in backquotes where it must be.

    >>> name_text("SHELF-READING"), name_text("price")
    ('`SHELF-READING`', 'price')
    """
    plain = re.fullmatch(r"(?!\d+[eE]\d+$)\w*[^\W\d]\w*", name) and name.upper() not in RESERVED
    return name if plain else f"`{name}`"


def _joined(parts: tuple[object, ...]) -> str:
    return ", ".join(map(str, parts))


# ---------------------------------------------------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Occurrence:
    """`Type var`, or `ANY(Type, …) var`: one event of one of these types."""

    types: tuple[str, ...]
    variable: str | None  # None only for an ANY without a variable, which nothing can refer to
    named: bool  # the variable is written out, not the type's name
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        names = tuple(map(name_text, self.types))
        text = names[0] if len(names) == 1 else f"ANY({', '.join(names)})"
        return f"{text} {name_text(self.variable)}" if self.named and self.variable else text


@dataclass(frozen=True)
class Seq:
    """`SEQ(p, …)`: one after the other."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"SEQ({_joined(self.parts)})"


@dataclass(frozen=True)
class Or:
    """`OR(p, …)`: one of these."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"OR({_joined(self.parts)})"


@dataclass(frozen=True)
class Repeat:
    """`p+`, `p*`, `p?`, `p{n}`, `p{n,}`, `p{n,m}`: from `low` to `high` times, without end where `high` is None."""

    pattern: Pattern
    low: int
    high: int | None
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        short = {(1, None): "+", (0, None): "*", (0, 1): "?"}.get((self.low, self.high))
        if short is None:
            bounds = str(self.low) if self.low == self.high else f"{self.low},{'' if self.high is None else self.high}"
            short = f"{{{bounds}}}"
        inner = f"({self.pattern})" if isinstance(self.pattern, Not | Exists) else str(self.pattern)
        return inner + short


@dataclass(frozen=True)
class Not:
    """`!p`: no match of p in this gap."""

    pattern: Pattern
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"!{self.pattern}"


@dataclass(frozen=True)
class And:
    """`AND(p, …)`: all of these, in any order (parsed; no engine runs it yet)."""

    parts: tuple[Pattern, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"AND({_joined(self.parts)})"


@dataclass(frozen=True)
class Exists:
    """`EXISTS p`: some match of p in this gap (parsed; no engine runs it yet)."""

    pattern: Pattern
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"EXISTS {self.pattern}"


Pattern = Occurrence | Seq | Or | Repeat | Not | And | Exists


# -------------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Attribute:
    """`var.attr`, or `NEXT(var).attr`: the attribute of the event bound to a variable."""

    variable: str
    attribute: str
    next: bool
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        variable = name_text(self.variable)
        return f"{f'NEXT({variable})' if self.next else variable}.{name_text(self.attribute)}"


@dataclass(frozen=True)
class Constant:
    """A number or a text."""

    value: int | float | str
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        if isinstance(self.value, str):
            quoted = self.value.replace("'", "''")
            return f"'{quoted}'"
        return repr(self.value)


@dataclass(frozen=True)
class Arithmetic:
    """`left op right` with op one of + - * /."""

    op: str
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        level = _LEVEL[self.op]
        left = _wrapped(self.left, level - 1)
        # a - (b - c) and a + (b + c) keep their parentheses: floats are evaluated as written.
        right = _wrapped(self.right, level)
        return f"{left} {self.op} {right}"


@dataclass(frozen=True)
class Minus:
    """`-operand`."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        # Two signs in a row would begin a comment.
        return f"-({self.operand})" if isinstance(self.operand, Minus) else f"-{_wrapped(self.operand, 2)}"


@dataclass(frozen=True)
class Aggregate:
    """`COUNT(*)`, `COUNT(var)`, or a function of `var.attr`."""

    function: str
    variable: str | None
    attribute: str | None
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        if self.variable is None:
            return f"{self.function}(*)"
        attribute = "" if self.attribute is None else f".{name_text(self.attribute)}"
        return f"{self.function}({name_text(self.variable)}{attribute})"


@dataclass(frozen=True)
class Name:
    """A bare name: a GROUP-BY attribute in RETURN, that or an alias in HAVING."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return name_text(self.name)


Expression = Attribute | Constant | Arithmetic | Minus | Aggregate | Name

_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}


def _wrapped(operand: Expression, level: int) -> str:
    inner = _LEVEL[operand.op] if isinstance(operand, Arithmetic) else 3
    return str(operand) if inner > level else f"({operand})"


# --------------------------------------------------------------------------------------------------------- conditions


@dataclass(frozen=True)
class Comparison:
    """`left op right` with op one of = != < <= > >=."""

    op: str
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class AllOf:
    """`c AND …`."""

    parts: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, AllOf | AnyOf) else str(part) for part in self.parts)


@dataclass(frozen=True)
class AnyOf:
    """`c OR …`."""

    parts: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return " OR ".join(f"({part})" if isinstance(part, AllOf | AnyOf) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Complement:
    """`NOT c`."""

    part: Condition
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"NOT ({self.part})"


@dataclass(frozen=True)
class Equivalence:
    """`[a, b = 'v']`: all events of a trend have the same value of each, or this value."""

    items: tuple[tuple[str, Constant | None], ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"[{', '.join(name_text(a) + (f' = {v}' if v else '') for a, v in self.items)}]"


Condition = Comparison | AllOf | AnyOf | Complement | Equivalence


Node = Pattern | Expression | Condition


def children(node: Node) -> Iterator[Node]:
    """The nodes right under a node."""
    for value in vars(node).values():
        yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Node))


def conjuncts(condition: Condition | None) -> Iterator[Condition]:
    """The conditions between the top-level ANDs."""
    if isinstance(condition, AllOf):
        for part in condition.parts:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def comparisons(condition: Condition) -> Iterator[Comparison]:
    """The comparisons that a condition is made of."""
    match condition:
        case Comparison():
            yield condition
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from comparisons(part)
        case Complement(part):
            yield from comparisons(part)


def leaves(expression: Expression) -> Iterator[Attribute | Constant | Aggregate | Name]:
    """The attributes, constants, aggregates and names that an expression is made of."""
    match expression:
        case Arithmetic(_, left, right):
            yield from leaves(left)
            yield from leaves(right)
        case Minus(operand):
            yield from leaves(operand)
        case _:
            yield expression


def attributes(condition: Condition) -> Iterator[Attribute]:
    """The attributes that a condition names, in the order of the text."""
    for comparison in comparisons(condition):
        for side in (comparison.left, comparison.right):
            yield from (leaf for leaf in leaves(side) if isinstance(leaf, Attribute))


# ------------------------------------------------------------------------------------------------------------- clauses


class Semantics(Enum):
    """Which events a trend may skip."""

    ANY = "skip-till-any-match"  # every event may be skipped or taken
    NEXT = "skip-till-next-match"  # only what cannot extend the trend is skipped
    CONTIGUOUS = "contiguous"  # nothing of the partition is skipped


_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
UNITS = {"milliseconds": Fraction(1, 1000), **{unit: Fraction(seconds) for unit, seconds in _SECONDS.items()}}


@dataclass(frozen=True)
class Extent:
    """`10 minutes`, or `9 events`: a length of time or of the stream."""

    amount: Fraction
    unit: str  # of UNITS, or "events"
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def in_events(self) -> bool:
        """Whether this counts events, not time."""
        return self.unit == "events"

    @property
    def size(self) -> Fraction:
        """Seconds, or a number of events."""
        return self.amount * UNITS.get(self.unit, 1)

    def __str__(self) -> str:
        return f"{_decimal(self.amount)} {self.unit[:-1] if self.amount == 1 else self.unit}"


def _decimal(amount: Fraction) -> str:
    """All the digits of a number that was written as a decimal.

    >>> _decimal(Fraction("90")), _decimal(Fraction("0.05")), _decimal(Fraction("1.5e-7"))
    ('90', '0.05', '0.00000015')
    """
    places = next(places for places in itertools.count() if (amount * 10**places).denominator == 1)
    digits = str(amount * 10**places).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


@dataclass(frozen=True)
class Item:
    """An item of RETURN, with its alias."""

    value: Aggregate | Name
    alias: str | None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def label(self) -> str:
        """The name of this item in results."""
        if self.alias is not None:
            return self.alias
        return self.value.name if isinstance(self.value, Name) else str(self.value)

    def __str__(self) -> str:
        return f"{self.value} AS {name_text(self.alias)}" if self.alias is not None else str(self.value)


@dataclass(frozen=True)
class GroupBy:
    """`GROUP-BY a, b`."""

    attributes: tuple[Name, ...]

    def __str__(self) -> str:
        return _joined(self.attributes)


@dataclass(frozen=True)
class Query:
    """A query as written: its clauses."""

    returns: tuple[Item, ...]
    pattern: Pattern
    source: str | None
    semantics: Semantics
    where: Condition | None
    group_by: GroupBy
    having: Condition | None
    within: Extent
    slide: Extent | None

    def __str__(self) -> str:
        clauses = [
            ("RETURN", _joined(self.returns)),
            ("PATTERN", self.pattern),
            ("FROM", name_text(self.source) if self.source is not None else None),
            ("SEMANTICS", self.semantics.value),
            ("WHERE", self.where),
            ("GROUP-BY", self.group_by if self.group_by.attributes else None),
            ("HAVING", self.having),
            ("WITHIN", f"{self.within} SLIDE {self.slide}" if self.slide else self.within),
        ]
        return "\n".join(f"{word:<9} {text}" for word, text in clauses if text is not None)
