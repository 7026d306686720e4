"""Plan → text for a terminal: titled sections, aligned columns, long lists cut."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from pipeline.explain.plan import Aggregate, Negation, Pattern, Plan, State, Step, path
from pipeline.query import tree
from pipeline.query.draw import printable

WIDTH = 100
MOST_LINES = 20
MOST_PLACES = 6
WIDEST_COLUMN = 44

_QUOTED = re.compile(r"('[^']*'|`[^`]*`)")
_KEPT_SPACE = "\ufffe"  # no character of any text: a space at which no line ends


def as_text(plan: Plan) -> str:
    """The plan for a terminal of 100 columns."""
    clauses = [
        ("PARTITIONS", plan.partition.text),
        ("WINDOW", plan.window.text),
        ("SEMANTICS", f"{plan.semantics.name}: {plan.semantics.text}"),
    ]
    sections = [
        _section(f"QUERY  {plan.file}", _query_lines(plan)),
        _section("PATTERN", _pattern_lines(plan.pattern)),
        _section("NEGATIONS", _negation_lines(plan.pattern.negations)),
        _section("PREDICATES", _table((p.kind, p.condition, p.place) for p in plan.predicates)),
        list(_table(clauses)),
        _section("AGGREGATES", _aggregate_lines(plan)),
        _section("ATTRIBUTES", _table((tree.name_text(a.name), a.kind) for a in plan.attributes)),
        _section("WARNINGS", _table((f"{w.place.line}:{w.place.column}", w.message) for w in plan.warnings)),
        _section("ENGINES", _engine_lines(plan)),
    ]
    return "\n\n".join("\n".join(map(printable, lines)) for lines in sections if lines)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """The title and the lines below it; nothing where there are no lines."""
    below = [f"  {line}" for line in lines]
    return [title, *below] if below else []


def _query_lines(plan: Plan) -> Iterator[str]:
    for clause in plan.query.split("\n"):
        # Lines end at commas, AND and OR alone: text in quotes must stay as it is, and a comparison reads better whole.
        parts = _QUOTED.split(clause[10:])
        parts[::2] = [re.sub(r"(?<!,) (?!AND |OR )", _KEPT_SPACE, part) for part in parts[::2]]
        parts[1::2] = [part.replace(" ", _KEPT_SPACE) for part in parts[1::2]]
        yield from _wrapped(clause[:10], "".join(parts))


def _pattern_lines(pattern: Pattern, indent: int = 0) -> Iterator[str]:
    parts = {
        "states": [_state_cells(state) for state in pattern.states],
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
        yield from (f"{'' if number else word:<8}{line}" for number, line in enumerate(lines))


def _state_cells(state: State) -> tuple[str, str]:
    return state.name, f"where {' and '.join(state.conditions)}" if state.conditions else ""


def _step_cells(step: Step) -> tuple[str, str]:
    ends = path(step.source, step.target)
    return ends, step.text.removeprefix(ends).strip()


def _negation_lines(negations: Sequence[Negation], indent: int = 0) -> Iterator[str]:
    for negation in negations[:MOST_LINES]:
        guards = ", ".join(_capped(negation.guards, MOST_PLACES))
        yield from _wrapped(f"!{negation.pattern.text}  ", f"guards {guards}", indent)
        yield from (f"    {line}" for line in _inside_lines(negation, indent + 4))
    if len(negations) > MOST_LINES:
        yield f"… and {len(negations) - MOST_LINES} more"


def _inside_lines(negation: Negation, indent: int) -> Iterator[str]:
    """A negated pattern's states and steps if it has several, the conditions not shown there, and its own negations."""
    pattern, shown = negation.pattern, set[str]()
    if len(pattern.states) > 1:
        shown |= {condition for state in pattern.states for condition in state.conditions}
        shown |= {condition for step in pattern.follow for condition in step.conditions}
        yield from _pattern_lines(pattern, indent)
    for condition in _capped([condition for condition in negation.conditions if condition not in shown]):
        yield from _wrapped("", f"counts where {condition}", indent)
    yield from _negation_lines(pattern.negations, indent)


def _aggregate_lines(plan: Plan) -> Iterator[str]:
    yield from _table((aggregate.text, _aggregate_note(aggregate)) for aggregate in plan.aggregates)
    if plan.having is not None:
        yield from _wrapped("", f"rows are kept where {plan.having}")


def _aggregate_note(aggregate: Aggregate) -> str:
    if not aggregate.columns:
        return "for HAVING"
    aliases = [column for column in aggregate.columns if column != aggregate.text]
    return f"as {', '.join(aliases)}" if aliases else ""


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
    lines = textwrap.wrap(
        before + text,
        max(WIDTH - 2 - indent, WIDTH // 2),
        subsequent_indent=" " * (len(before) if len(before) <= WIDTH // 2 else 4),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    return [line.replace(_KEPT_SPACE, " ") for line in lines]


def _capped(items: Sequence[str], most: int = MOST_LINES) -> list[str]:
    return [*items[:most], *([f"… and {len(items) - most:,} more"] if len(items) > most else [])]
