"""Checked query → plan: its clauses in words, and the engines' verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from pipeline.engines import choice
from pipeline.engines.contract import Engine, Planner
from pipeline.events import Kind
from pipeline.explain.pattern import place_of, trend_pattern
from pipeline.explain.plan import Aggregate, Attribute, Partition, Plan, Predicate, Semantics, Verdict, Warning, Window
from pipeline.query import tree
from pipeline.query.checked import Query

SEMANTICS = {
    tree.Semantics.ANY: "any event may be skipped; each extends every trend that it fits",
    tree.Semantics.NEXT: "only events that cannot extend a trend are skipped",
    tree.Semantics.CONTIGUOUS: "no event of the partition lies between two neighbours of a trend",
}
KINDS = {Kind.NUMBER: "number", Kind.TEXT: "text", Kind.ORDERED: "number or text", Kind.ANY: "any"}


def explain(query: Query, engines: Sequence[Engine] | None = None) -> Plan:
    """The plan of a query, judged for all engines or for some, from the cheapest to the most general."""
    verdicts = tuple(_verdict(query, engine) for engine in (choice.by_cost(query) if engines is None else engines))
    auto, why = _auto(verdicts)
    return Plan(
        file=query.file,
        query=str(query.tree),
        pattern=trend_pattern(query),
        predicates=tuple(Predicate(p.kind.value, str(p.condition), p.place) for p in query.predicates),
        partition=_partition(query),
        window=_window(query.tree.within, query.tree.slide),
        semantics=Semantics(query.semantics.value, SEMANTICS[query.semantics]),
        aggregates=tuple(_aggregate(query, aggregate) for aggregate in query.aggregates),
        having=None if query.tree.having is None else str(query.tree.having),
        attributes=tuple(Attribute(n, KINDS[use.kind], place_of(query, use.span)) for n, use in query.uses.items()),
        warnings=tuple(Warning(warning.message, place_of(query, warning.span)) for warning in query.warnings),
        engines=verdicts,
        auto=auto,
        why=why,
    )


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

    >>> _window(tree.Extent(Fraction(10), "minutes"), tree.Extent(Fraction(10), "seconds")).text
    '10 minutes, sliding by 10 seconds, aligned to the epoch in UTC: an event is in 60 windows'
    >>> _window(tree.Extent(Fraction(9), "events"), None).text
    'moves with every event: at position p it holds the positions (p − 9, p]'
    """
    unit = "events" if within.in_events else "seconds"
    if slide is None:
        if within.in_events:
            holds = f"at position p it holds the positions (p − {within.amount}, p]"
        else:
            holds = f"at time t it holds (t − {within}, t]"
        return Window(unit, _number(within.size), None, f"moves with every event: {holds}")
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


def _aggregate(query: Query, aggregate: tree.Aggregate) -> Aggregate:
    return Aggregate(str(aggregate), tuple(item.label for item in query.tree.returns if item.value == aggregate))


def _verdict(query: Query, engine: Engine) -> Verdict:
    refusal = engine.refuses(query)
    if refusal is None:
        how = engine.how(query) if isinstance(engine, Planner) else engine.idea
        return Verdict(engine.name, True, None, None, how)
    return Verdict(engine.name, False, refusal.clause, refusal.reason, engine.idea)


def _auto(verdicts: Sequence[Verdict]) -> tuple[str | None, str]:
    able = [verdict.name for verdict in verdicts if verdict.can]
    if not able:
        return None, "auto takes none: no engine can run this query"
    if len(verdicts) == 1:
        reason = "it is the only engine"
    elif len(able) == 1:
        reason = "no other engine can run this query"
    else:
        reason = "the cheapest that can (they are listed from the cheapest on)"
    return able[0], f"auto takes {able[0]}: {reason}"
