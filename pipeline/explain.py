"""The plan of a checked query: what each clause came to, which engines can run it and why, as text and as JSON."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from pipeline.engines import choice
from pipeline.engines.contract import Engine
from pipeline.errors import Span
from pipeline.events import Kind
from pipeline.query import tree
from pipeline.query.automaton import Automaton, Ways
from pipeline.query.checked import Machine, Query
from pipeline.query.draw import absence, guard_conditions, printable

WIDTH = 100
MOST_LINES = 20
MOST_PLACES = 6
WIDEST_COLUMN = 44

SEMANTICS = {
    tree.Semantics.ANY: "any event may be skipped; each extends every trend that it fits",
    tree.Semantics.NEXT: "only events that cannot extend a trend are skipped",
    tree.Semantics.CONTIGUOUS: "no event of the partition lies between two neighbours of a trend",
}
KINDS = {Kind.NUMBER: "number", Kind.TEXT: "text", Kind.ORDERED: "number or text", Kind.ANY: "any"}


@dataclass(frozen=True)
class Place:
    """A place in the query's text, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class State:
    """An occurrence of the pattern, and the conditions on its events alone."""

    name: str
    types: tuple[str, ...]
    variable: str | None
    conditions: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Step:
    """A way to begin (no source), to go on, or to end (no target): its conditions, and what must be absent."""

    source: str | None
    target: str | None
    conditions: tuple[str, ...]
    absent: tuple[tuple[str, ...], ...]  # alternatives; each the negated patterns that must have no match
    text: str


@dataclass(frozen=True)
class Pattern:
    """The automaton of the trend, or of a negated pattern."""

    text: str
    states: tuple[State, ...]
    first: tuple[Step, ...]
    last: tuple[Step, ...]
    follow: tuple[Step, ...]
    negations: tuple[Negation, ...]


@dataclass(frozen=True)
class Negation:
    """A negated pattern: the steps that it guards, and what a match of it must satisfy to count."""

    pattern: Pattern
    guards: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Predicate:
    """A conjunct of WHERE."""

    kind: str
    condition: str
    place: str


@dataclass(frozen=True)
class Partition:
    """What splits the stream, and what results are given by."""

    keys: tuple[str, ...]
    values: dict[str, int | float | str]  # of [a = 'v']
    group_by: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Window:
    """WITHIN and SLIDE: in seconds or events, and in words."""

    unit: str
    within: int | float
    slide: int | float | None
    text: str


@dataclass(frozen=True)
class Semantics:
    """Which events a trend may skip."""

    name: str
    text: str


@dataclass(frozen=True)
class Aggregate:
    """What is aggregated, and the columns of the result that show it (none: only HAVING needs it)."""

    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """An attribute that the events must have, and what it must be."""

    name: str
    kind: str
    place: Place


@dataclass(frozen=True)
class Warning:
    """Something that is allowed but may not be meant."""

    message: str
    place: Place


@dataclass(frozen=True)
class Verdict:
    """Whether an engine can run the query; if not, for which clause and reason."""

    name: str
    can: bool
    clause: str | None
    reason: str | None
    idea: str


@dataclass(frozen=True)
class Plan:
    """All that there is to know about a query before it runs."""

    file: str
    query: str  # in its canonical form
    pattern: Pattern
    predicates: tuple[Predicate, ...]
    partition: Partition
    window: Window
    semantics: Semantics
    aggregates: tuple[Aggregate, ...]
    having: str | None
    attributes: tuple[Attribute, ...]
    warnings: tuple[Warning, ...]
    engines: tuple[Verdict, ...]  # from the cheapest to the most general
    auto: str | None
    why: str


def explain(query: Query, engines: Sequence[Engine] | None = None) -> Plan:
    """The plan of a query, judged for all engines or for some, from the cheapest to the most general."""
    verdicts = tuple(_verdict(query, engine) for engine in (choice.ENGINES if engines is None else engines))
    auto, why = _auto(verdicts)
    return Plan(
        file=query.file,
        query=str(query.tree),
        pattern=_pattern(query, query.machine, str(query.tree.pattern), _edges(query)),
        predicates=tuple(Predicate(p.kind.value, str(p.condition), p.place) for p in query.predicates),
        partition=_partition(query),
        window=_window(query.tree.within, query.tree.slide),
        semantics=Semantics(query.semantics.value, SEMANTICS[query.semantics]),
        aggregates=tuple(Aggregate(str(a), tuple(_columns(query, a))) for a in query.aggregates),
        having=None if query.tree.having is None else str(query.tree.having),
        attributes=tuple(Attribute(n, KINDS[use.kind], _place(query, use.span)) for n, use in query.uses.items()),
        warnings=tuple(Warning(warning.message, _place(query, warning.span)) for warning in query.warnings),
        engines=verdicts,
        auto=auto,
        why=why,
    )


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as what JSON has: objects, lists, texts, numbers."""
    plain: dict[str, Any] = _plain(asdict(plan))
    return plain


def as_text(plan: Plan) -> str:
    """The plan for a terminal of 100 columns."""
    clauses = [
        ("PARTITIONS", plan.partition.text),
        ("WINDOW", plan.window.text),
        ("SEMANTICS", f"{plan.semantics.name}: {plan.semantics.text}"),
    ]
    sections = {
        f"QUERY  {plan.file}": _query_lines(plan),
        "PATTERN": _pattern_lines(plan.pattern),
        "NEGATIONS": _negation_lines(plan.pattern.negations),
        "PREDICATES": _table((p.kind, p.condition, p.place) for p in plan.predicates),
        "": _table(clauses),
        "AGGREGATES": _aggregate_lines(plan),
        "ATTRIBUTES": _table((tree.name_text(a.name), a.kind) for a in plan.attributes),
        "WARNINGS": _table((f"{w.place.line}:{w.place.column}", w.message) for w in plan.warnings),
        "ENGINES": _engine_lines(plan),
    }
    blocks = []
    for title, lines in sections.items():
        shown = [f"  {line}" if title else line for line in lines]
        if shown:
            blocks.append("\n".join(map(printable, [title, *shown] if title else shown)))
    return "\n\n".join(blocks)


# ------------------------------------------------------------------------------------------------------------- pattern


def _pattern(query: Query, machine: Machine, text: str, edges: _Edges) -> Pattern:
    automaton, names = machine.automaton, _names(machine.automaton)
    states = [
        State(
            names[state.index],
            state.types,
            state.variable,
            _texts(machine.local.get(state.index, ())),
            _place(query, state.span),
        )
        for state in automaton.states
    ]
    first = [_step(automaton, None, names[w], ways, edges.before) for w, ways in sorted(automaton.first.items())]
    last = [_step(automaton, names[v], None, ways, edges.after) for v, ways in sorted(automaton.last.items())]
    follow = [
        _step(
            automaton,
            names[v],
            names[w],
            ways,
            "lies between",
            _texts(pair.condition for pair in machine.adjacent.get((v, w), ())),
        )
        for (v, w), ways in sorted(automaton.follow.items())
    ]
    negations = [
        Negation(
            _pattern(query, guard.machine, str(negation.pattern), _GAP),
            tuple(_guarded(automaton, names, number)),
            _texts(guard_conditions(guard)),
        )
        for number, (negation, guard) in enumerate(zip(automaton.negations, machine.guards, strict=True))
    ]
    return Pattern(text, tuple(states), tuple(first), tuple(last), tuple(follow), tuple(negations))


@dataclass(frozen=True)
class _Edges:
    """How far a negation at the beginning or the end of a pattern reaches, in words."""

    before: str
    after: str


_GAP = _Edges("lies before it in the gap", "lies after it in the gap")


def _edges(query: Query) -> _Edges:
    if query.tree.slide is not None:
        return _Edges("lies before it in the window", "lies after it in the window")
    # A window that moves with every event is judged once a trend: by the trend's own first and last event.
    return _Edges(
        f"lies before it and after the trend's end − {query.tree.within}",
        f"lies after it and before the trend's start + {query.tree.within}",
    )


def _names(automaton: Automaton) -> list[str]:
    """The states' labels, numbered where several have the same."""
    labels = [state.label for state in automaton.states]
    counts, seen = Counter(labels), Counter[str]()
    names = []
    for label in labels:
        seen[label] += 1
        names.append(f"{label} #{seen[label]}" if counts[label] > 1 else label)
    return names


def _step(
    automaton: Automaton,
    source: str | None,
    target: str | None,
    ways: Ways,
    lies: str,
    conditions: tuple[str, ...] = (),
) -> Step:
    absent = [tuple(str(automaton.negations[n].pattern) for n in way) for way in sorted(map(sorted, ways)) if way]
    words = absence(ways, automaton.negations)
    when = [f"when {' and '.join(conditions)}"] if conditions else []
    if words:
        when.append(f"if {words}{',' if len(absent) > 1 else ''} {lies}")
    path = " → ".join(filter(None, (source, target)))
    return Step(source, target, conditions, tuple(absent), f"{path}  {', '.join(when)}".rstrip())


def _guarded(automaton: Automaton, names: Sequence[str], number: int) -> Iterator[str]:
    """The steps that a negation guards; where there are other ways to take a step, that is said."""

    def ways_with(ways: Ways) -> str | None:
        if not any(number in way for way in ways):
            return None
        return "" if all(number in way for way in ways) else f" (one of {len(ways)} ways)"

    for state, ways in sorted(automaton.first.items()):
        if (words := ways_with(ways)) is not None:
            yield f"the gap before {names[state]}{words}"
    for (source, target), ways in sorted(automaton.follow.items()):
        if (words := ways_with(ways)) is not None:
            yield f"{names[source]} → {names[target]}{words}"
    for state, ways in sorted(automaton.last.items()):
        if (words := ways_with(ways)) is not None:
            yield f"the gap after {names[state]}{words}"


def _texts(conditions: Iterable[tree.Condition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, conditions)))


def _place(query: Query, span: Span) -> Place:
    before = query.text[: span.start]
    return Place(before.count("\n") + 1, span.start - (before.rfind("\n") + 1) + 1)


# ------------------------------------------------------------------------------------------------------- other clauses


def _partition(query: Query) -> Partition:
    values = {name: constant.value for name, constant in query.key_values.items()}
    keys = [f"{tree.name_text(k)} = {query.key_values[k]}" if k in values else tree.name_text(k) for k in query.keys]
    groups = ", ".join(map(tree.name_text, query.group_by))
    if not keys:
        text = "the whole stream is one partition"
    elif not groups:
        text = f"by {', '.join(keys)}; results are combined over all partitions"
    elif set(query.group_by) == set(query.keys):
        text = f"by {', '.join(keys)}; one result a partition and window"
    else:
        text = f"by {', '.join(keys)}; results are combined over all partitions with the same {groups}"
    return Partition(query.keys, values, query.group_by, text)


def _window(within: tree.Extent, slide: tree.Extent | None) -> Window:
    """The window in words.

    >>> from fractions import Fraction
    >>> _window(tree.Extent(Fraction(10), "minutes"), tree.Extent(Fraction(10), "seconds")).text
    '10 minutes, sliding by 10 seconds, aligned to the epoch in UTC: an event is in 60 windows'
    >>> _window(tree.Extent(Fraction(9), "events"), None).text
    'moves with every event: at position p it holds the positions (p − 9, p]'
    """
    unit = "events" if within.in_events else "seconds"
    if slide is None:
        moving = (
            "at position p it holds the positions (p − {}, p]" if within.in_events else "at time t it holds (t − {}, t]"
        )
        length = within.amount if within.in_events else within
        return Window(unit, _number(within.size), None, f"moves with every event: {moving.format(length)}")
    shape = "one after the other" if slide.size == within.size else f"sliding by {slide}"
    aligned = "from the first event on" if within.in_events else "aligned to the epoch in UTC"
    text = f"{within}, {shape}, {aligned}: an event is in {_windows(within.size / slide.size)}"
    if within.in_events and slide.size < within.size:
        text += ", the first events in fewer"
    return Window(unit, _number(within.size), _number(slide.size), text)


def _windows(ratio: Fraction) -> str:
    low, high = math.floor(ratio), math.ceil(ratio)
    if low != high:
        return f"{low:,} or {high:,} windows"
    return "one window" if low == 1 else f"{low:,} windows"


def _number(size: Fraction) -> int | float:
    return int(size) if size.denominator == 1 else float(size)


def _columns(query: Query, aggregate: tree.Aggregate) -> Iterator[str]:
    return (item.label for item in query.tree.returns if item.value == aggregate)


def _verdict(query: Query, engine: Engine) -> Verdict:
    refusal = engine.refuses(query)
    if refusal is None:
        return Verdict(engine.name, True, None, None, engine.idea)
    return Verdict(engine.name, False, refusal.clause, refusal.reason, engine.idea)


def _auto(verdicts: Sequence[Verdict]) -> tuple[str | None, str]:
    able = [verdict.name for verdict in verdicts if verdict.can]
    if not able:
        return None, "auto takes none: no engine can run this query"
    if len(verdicts) == 1:
        return able[0], f"auto takes {able[0]}: it is the only engine"
    if len(able) == 1:
        return able[0], f"auto takes {able[0]}: no other engine can run this query"
    return able[0], f"auto takes {able[0]}: the cheapest that can (they are listed from the cheapest on)"


# ---------------------------------------------------------------------------------------------------------------- text


def _query_lines(plan: Plan) -> Iterator[str]:
    for clause in plan.query.split("\n"):
        # Lines end at commas, AND and OR alone: text in quotes must stay as it is, and a comparison reads better whole.
        parts = _QUOTED.split(clause[10:])
        parts[::2] = [re.sub(r"(?<!,) (?!AND |OR )", _KEPT_SPACE, part) for part in parts[::2]]
        parts[1::2] = [part.replace(" ", _KEPT_SPACE) for part in parts[1::2]]
        yield from _wrapped(clause[:10], "".join(parts))


def _pattern_lines(pattern: Pattern, indent: int = 0) -> Iterator[str]:
    states = [(s.name, f"where {' and '.join(s.conditions)}" if s.conditions else "") for s in pattern.states]
    parts = {
        "states": states,
        "first": [_step_cells(step) for step in pattern.first],
        "last": [_step_cells(step) for step in pattern.last],
        "follow": [_step_cells(step) for step in pattern.follow],
    }
    for word, rows in parts.items():
        if word == "follow" or any(note for _, note in rows):
            lines = list(_table(rows, indent + 8))
        else:
            names = _capped([name for name, _ in rows])
            lines = _wrapped("", ", ".join(name.replace(" ", _KEPT_SPACE) for name in names), indent + 8)
        yield from (f"{word if line is lines[0] else '':<8}{line}" for line in lines)


def _step_cells(step: Step) -> tuple[str, str]:
    path = " → ".join(filter(None, (step.source, step.target)))
    return path, step.text.removeprefix(path).strip()


def _negation_lines(negations: Sequence[Negation], indent: int = 0) -> Iterator[str]:
    for negation in negations[:MOST_LINES]:
        guards = ", ".join(_capped(negation.guards, MOST_PLACES))
        yield from _table([(f"!{negation.pattern.text}", f"guards {guards}")], indent)
        pattern, drawn = negation.pattern, set[str]()
        below = indent + 4
        if len(pattern.states) > 1:
            drawn |= {condition for state in pattern.states for condition in state.conditions}
            drawn |= {condition for step in pattern.follow for condition in step.conditions}
            yield from (" " * 4 + line for line in _pattern_lines(pattern, below))
        for condition in _capped([condition for condition in negation.conditions if condition not in drawn]):
            yield from (" " * 4 + line for line in _wrapped("", f"counts where {condition}", below))
        yield from (" " * 4 + line for line in _negation_lines(pattern.negations, below))
    if len(negations) > MOST_LINES:
        yield f"… and {len(negations) - MOST_LINES} more"


def _aggregate_lines(plan: Plan) -> Iterator[str]:
    rows = []
    for aggregate in plan.aggregates:
        shown = [column for column in aggregate.columns if column != aggregate.text]
        rows.append((aggregate.text, f"as {', '.join(shown)}" if shown else "" if aggregate.columns else "for HAVING"))
    yield from _table(rows)
    if plan.having is not None:
        yield from _wrapped("", f"rows are kept where {plan.having}")


def _engine_lines(plan: Plan) -> Iterator[str]:
    yield from _table(
        (verdict.name, "can", verdict.idea)
        if verdict.can
        else (verdict.name, "cannot", f"{verdict.clause}: {verdict.reason}")
        for verdict in plan.engines
    )
    yield from _wrapped("", plan.why)


def _table(rows: Iterable[tuple[str, ...]], indent: int = 0) -> Iterator[str]:
    """Rows in aligned columns; a cell that is much longer than others only moves its own row."""
    cells = list(rows)
    shown = cells[:MOST_LINES]
    widths = [min(max(map(len, column)), WIDEST_COLUMN) for column in zip(*shown, strict=True)]
    for row in shown:
        before = "".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths, strict=False))
        yield from _wrapped(before, row[-1], indent)
    if len(cells) > MOST_LINES:
        yield f"… and {len(cells) - MOST_LINES:,} more"


def _wrapped(before: str, text: str, indent: int = 0) -> list[str]:
    """`before` and the text, cut at 100 columns and going on below its beginning."""
    if len(before) + len(text) + indent + 2 <= WIDTH:
        return [f"{before}{text}".rstrip().replace(_KEPT_SPACE, " ")]
    below = " " * (len(before) if len(before) <= WIDTH // 2 else 4)
    lines = textwrap.wrap(
        before + text,
        max(WIDTH - 2 - indent, WIDTH // 2),
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    return [line.replace(_KEPT_SPACE, " ") for line in lines]


_QUOTED = re.compile(r"('[^']*'|`[^`]*`)")
_KEPT_SPACE = "\ufffe"  # no character of any text: a space at which no line ends


def _capped(items: Sequence[str], most: int = MOST_LINES) -> list[str]:
    return [*items[:most], *([f"… and {len(items) - most:,} more"] if len(items) > most else [])]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
