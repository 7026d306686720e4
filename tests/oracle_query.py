"""The oracle's queries: a tree that prints itself in the language of DESIGN.md section 2.

>>> str(Query(Plus(Seq((Plus(Atom(("A",))), Atom(("B",))))), Window(100, 100)))
'RETURN COUNT(*) PATTERN (SEQ(A+, B))+ WITHIN 100 seconds SLIDE 100 seconds'
"""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = (("OR",), ("AND",), ("<", "<=", "=", "!=", ">=", ">"), ("+", "-"), ("*", "/"))
"""The signs of `Binary`, from the loosest to the tightest."""


@dataclass(frozen=True)
class Atom:
    """`Type var`, or `ANY(Type, …) var`. Without a variable the type's name is the variable."""

    types: tuple[str, ...]
    name: str = ""

    @property
    def variable(self) -> str:
        return self.name or self.types[0]

    def __str__(self) -> str:
        types = self.types[0] if len(self.types) == 1 else f"ANY({', '.join(self.types)})"
        return f"{types} {self.name}".strip()


@dataclass(frozen=True)
class Seq:
    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"SEQ({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Or:
    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"OR({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Not:
    part: Pattern

    def __str__(self) -> str:
        return f"!{self.part}" if isinstance(self.part, Atom | Seq | Or) else f"!({self.part})"


@dataclass(frozen=True)
class Repeat:
    """`p{least,most}`, endless where `most` is None; `+`, `*` and `?` are the repeats they abbreviate."""

    part: Pattern
    least: int
    most: int | None

    def __str__(self) -> str:
        bounds = f"{self.least}" if self.least == self.most else f"{self.least},{self.most or ''}"
        sign = {(1, None): "+", (0, None): "*", (0, 1): "?"}.get((self.least, self.most), f"{{{bounds}}}")
        return f"{self.part}{sign}" if isinstance(self.part, Atom) else f"({self.part}){sign}"


Pattern = Atom | Seq | Or | Not | Repeat


def Plus(part: Pattern) -> Repeat:
    return Repeat(part, 1, None)


def Star(part: Pattern) -> Repeat:
    return Repeat(part, 0, None)


def Opt(part: Pattern) -> Repeat:
    return Repeat(part, 0, 1)


@dataclass(frozen=True)
class Attr:
    """`variable.attr`, or `NEXT(variable).attr`. Its role is the event it speaks of."""

    variable: str
    attr: str
    next: bool = False

    @property
    def role(self) -> str:
        return f"NEXT({self.variable})" if self.next else self.variable

    def __str__(self) -> str:
        return f"{self.role}.{self.attr}"


@dataclass(frozen=True)
class Const:
    value: int | float | str

    def __str__(self) -> str:
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Aggregate:
    """`COUNT(*)`, `COUNT(var)`, or a function of `var.attr`; in HAVING it stands where an attribute would."""

    function: str
    variable: str = "*"
    attr: str = ""

    def __str__(self) -> str:
        return f"{self.function}({self.variable}{'.' if self.attr else ''}{self.attr})"


@dataclass(frozen=True)
class Binary:
    """Arithmetic `+ - * /`, a comparison, `AND` or `OR`."""

    sign: str
    left: Term
    right: Term

    @property
    def tightness(self) -> int:
        return next(i for i, signs in enumerate(LEVELS) if self.sign in signs)

    def __str__(self) -> str:
        return f"{_part(self.left, self.tightness)} {self.sign} {_part(self.right, self.tightness + 1)}"


@dataclass(frozen=True)
class Negated:
    part: Term

    def __str__(self) -> str:
        return f"NOT ({self.part})"


Term = Attr | Const | Aggregate | Binary | Negated


def _part(term: Term, tightness: int) -> str:
    return f"({term})" if isinstance(term, Binary) and term.tightness < tightness else str(term)


@dataclass(frozen=True)
class Window:
    """`WITHIN within unit SLIDE slide unit`; without a slide the window moves with every event."""

    within: int
    slide: int | None = None
    unit: str = "seconds"

    def __str__(self) -> str:
        return f"WITHIN {self.within} {self.unit}" + (f" SLIDE {self.slide} {self.unit}" if self.slide else "")


@dataclass(frozen=True)
class Query:
    """`keys` is `[a, b]`, `fixed` the `[a = 'v']`; `where` and `having` are conjuncts."""

    pattern: Pattern
    window: Window
    returns: tuple[Aggregate, ...] = (Aggregate("COUNT"),)
    semantics: str = "skip-till-any-match"
    keys: tuple[str, ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()
    where: tuple[Term, ...] = ()
    group_by: tuple[str, ...] = ()
    having: tuple[Term, ...] = ()

    def __str__(self) -> str:
        brackets = [f"[{', '.join(self.keys)}]"] * bool(self.keys) + [f"[{attr} = '{v}']" for attr, v in self.fixed]
        clauses = {
            "RETURN": ", ".join(map(str, self.group_by + self.returns)),
            "PATTERN": str(self.pattern),
            "SEMANTICS": "" if self.semantics == "skip-till-any-match" else self.semantics,
            "WHERE": " AND ".join(brackets + [_part(c, 2) for c in self.where]),
            "GROUP-BY": ", ".join(self.group_by),
            "HAVING": " AND ".join(_part(c, 2) for c in self.having),
        }
        return " ".join(f"{word} {text}" for word, text in clauses.items() if text) + f" {self.window}"


# ---- What a condition names ----


def leaves(term: Term) -> set[Attr]:
    match term:
        case Attr():
            return {term}
        case Binary(_, left, right):
            return leaves(left) | leaves(right)
        case Negated(part):
            return leaves(part)
    return set()


def totals(term: Term) -> set[Aggregate]:
    """The aggregates that a condition of HAVING names."""
    match term:
        case Aggregate():
            return {term}
        case Binary(_, left, right):
            return totals(left) | totals(right)
        case Negated(part):
            return totals(part)
    return set()


def variables(condition: Term) -> set[str]:
    return {leaf.variable for leaf in leaves(condition)}


def roles(condition: Term) -> set[str]:
    return {leaf.role for leaf in leaves(condition)}
