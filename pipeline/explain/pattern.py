"""Automaton → the plan's pattern: its states, its steps, and what must be absent for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.errors import Span
from pipeline.explain.plan import Negation, Pattern, Place, State, Step, path
from pipeline.query import tree
from pipeline.query.automaton import Automaton, Ways
from pipeline.query.checked import Machine, Query
from pipeline.query.draw import absence, guard_conditions


@dataclass(frozen=True)
class _Edges:
    """How far a negation at the beginning or the end of a pattern reaches, in words."""

    before: str
    after: str


_WINDOW = _Edges("lies before it in the window", "lies after it in the window")
_GAP = _Edges("lies before it in the gap", "lies after it in the gap")


def trend_pattern(query: Query) -> Pattern:
    """The pattern of the trend, with its negations inside."""
    edges = _WINDOW
    if query.tree.slide is None:
        # A window that moves with every event is judged once a trend: by the trend's own first and last event.
        edges = _Edges(
            f"lies before it and after the trend's end − {query.tree.within}",
            f"lies after it and before the trend's start + {query.tree.within}",
        )
    return _pattern(query, query.machine, str(query.tree.pattern), edges)


def place_of(query: Query, span: Span) -> Place:
    """Where a span of the query's text begins."""
    before = query.text[: span.start]
    return Place(before.count("\n") + 1, span.start - before.rfind("\n"))


def _pattern(query: Query, machine: Machine, text: str, edges: _Edges) -> Pattern:
    automaton, names = machine.automaton, _names(machine.automaton)

    def between(v: int, w: int) -> tuple[str, ...]:
        return _texts(pair.condition for pair in machine.adjacent.get((v, w), ()))

    def alone(v: int) -> tuple[str, ...]:
        return _texts(machine.local.get(v, ()))

    return Pattern(
        text,
        states=tuple(
            State(names[state.index], state.types, state.variable, alone(state.index), place_of(query, state.span))
            for state in automaton.states
        ),
        first=tuple(
            _step(automaton, None, names[w], ways, edges.before) for w, ways in sorted(automaton.first.items())
        ),
        last=tuple(_step(automaton, names[v], None, ways, edges.after) for v, ways in sorted(automaton.last.items())),
        follow=tuple(
            _step(automaton, names[v], names[w], ways, "lies between", between(v, w))
            for (v, w), ways in sorted(automaton.follow.items())
        ),
        negations=tuple(
            Negation(
                _pattern(query, guard.machine, str(negation.pattern), _GAP),
                tuple(_guarded(automaton, names, number)),
                _texts(guard_conditions(guard)),
            )
            for number, (negation, guard) in enumerate(zip(automaton.negations, machine.guards, strict=True))
        ),
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
    absent = tuple(tuple(str(automaton.negations[n].pattern) for n in way) for way in sorted(map(sorted, ways)) if way)
    when = [f"when {' and '.join(conditions)}"] if conditions else []
    if words := absence(ways, automaton.negations):
        when.append(f"if {words}{',' if len(absent) > 1 else ''} {lies}")
    text = f"{path(source, target)}  {', '.join(when)}".rstrip()
    return Step(source, target, conditions, absent, text)


def _guarded(automaton: Automaton, names: Sequence[str], number: int) -> Iterator[str]:
    """The steps that a negation guards; where there are other ways to take a step, that is said."""
    steps = [
        *((f"the gap before {names[w]}", ways) for w, ways in sorted(automaton.first.items())),
        *((f"{names[v]} → {names[w]}", ways) for (v, w), ways in sorted(automaton.follow.items())),
        *((f"the gap after {names[v]}", ways) for v, ways in sorted(automaton.last.items())),
    ]
    for step, ways in steps:
        if through := sum(number in way for way in ways):
            yield step if through == len(ways) else f"{step} (one of {len(ways)} ways)"


def _texts(conditions: Iterable[tree.Condition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, conditions)))
