"""One query over the events of one file: read it, check that query and file fit, run an engine, write the rows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pipeline.engines.contract import Cost, Engine, Limits, TrendBuilder
from pipeline.engines.stream import Stream, make_stream
from pipeline.errors import QueryError, TrendsError, nearest
from pipeline.events import Column, Events, Kind, Numbers, Texts
from pipeline.query import tree
from pipeline.query.checked import Query
from pipeline.results import result_rows, show_event_value
from pipeline.sources.events_file import read_events

TREND_TIMES = ("trend_start", "trend_end")


@dataclass(frozen=True)
class Input:
    """A file of events, and how to read it."""

    path: Path
    types: tuple[str, ...] | None = None  # the type columns; None: `type`
    bad_rows: Literal["fail", "skip"] = "fail"


@dataclass(frozen=True)
class Fitted:
    """A query's stream over an input, and what to tell the user about it."""

    stream: Stream
    events: Events
    notes: tuple[str, ...]


def fit(query: Query, source: Input, limits: Limits, *, all_columns: bool = False) -> Fitted:
    """Read the events that a query needs, and partition them."""

    def reading(rows: int) -> None:
        limits.progress(f"{rows:,} rows read")
        limits.check_time(lambda: f"{rows:,} rows read")

    kinds = {name: use.kind for name, use in query.uses.items()}
    events = read_events(source.path, kinds, source.types, source.bad_rows, all_columns, reading)
    return fit_events(query, events, str(source.path))


def fit_events(query: Query, events: Events, path: str) -> Fitted:
    """Partition events that are in memory already."""
    notes = []
    if events.skipped:
        rows = "row" if events.skipped == 1 else "rows"
        notes.append(f"{events.skipped:,} bad {rows} set aside, first: {events.skipped_examples[0]}")
    missing = {name: _missing(query, events, name, path) for name in query.uses if name not in events.attributes}
    notes += [f"no row of {path} has {name}: it is null" for name in missing]
    events = replace(events, attributes={**events.attributes, **missing})
    _check_kinds(query, events, path)
    notes += _unknown_types(query, events, path)
    return Fitted(make_stream(query, events), events, tuple(notes))


def run_rows(query: Query, engine: Engine, fitted: Fitted, limits: Limits, cost: Cost) -> list[dict[str, Any]]:
    """The rows of the result."""
    return result_rows(query, fitted.stream, engine.run(query, fitted.stream, limits, cost), limits.bits)


def match_columns(query: Query) -> list[str]:
    """The names that a trend's row has: its times, then the variables."""
    variables = dict.fromkeys(state.variable or state.label for state in query.automaton.states)
    for state in query.automaton.states:
        if state.variable in TREND_TIMES:
            message = f"a variable {state.variable} cannot stand beside the trend's own {state.variable}"
            raise QueryError(message, query.text, state.span, query.file, "give the variable another name")
    return [*TREND_TIMES, *variables]


def run_matches(
    query: Query, engine: TrendBuilder, fitted: Fitted, limits: Limits, cost: Cost
) -> Iterator[dict[str, Any]]:
    """The trends themselves: each variable with its events, in time order."""
    events, states = fitted.events, query.automaton.states
    columns = match_columns(query)
    for trend in engine.trends(query, fitted.stream, limits, cost):
        match: dict[str, Any] = {name: [] for name in columns}
        for state, row in trend:
            match[states[state].variable or states[state].label].append(_event(events, row))
        for name, (_, row) in zip(TREND_TIMES, (trend[0], trend[-1]), strict=True):
            match[name] = events.clock.show(int(events.time[row]))
        yield match


def _event(events: Events, row: int) -> dict[str, Any]:
    # The time as the input writes it, also where the query calculates with it in seconds.
    time = {"time": events.clock.show(int(events.time[row]))}
    return time | {name: show_event_value(column, row) for name, column in events.attributes.items()} | time


def _missing(query: Query, events: Events, name: str, path: str) -> Column:
    """A column of nulls for an attribute that no row has; an error where the file's columns are known."""
    close = nearest(name, events.known)
    if not events.open_schema or close:
        hint = f"did you mean {close}?" if close else f"its columns are {', '.join(events.known)}"
        raise QueryError(f"{path} has no column {name}", query.text, query.uses[name].span, query.file, hint)
    nothing = np.ones(len(events), bool)
    if query.uses[name].kind is Kind.NUMBER:
        return Numbers(np.zeros(len(events), np.int64), nothing)
    return Texts(np.full(len(events), -1, np.int32), ())


def _check_kinds(query: Query, events: Events, path: str) -> None:
    """Fail where the query compares a text of this input with a number; a column of nulls is neither."""
    for conjunct in tree.conjuncts(query.tree.where):
        for comparison in tree.comparisons(conjunct):
            sides = [side for side in (comparison.left, comparison.right) if isinstance(side, tree.Attribute)]
            columns = {side.attribute: events.attributes[side.attribute] for side in sides}
            known = {name: isinstance(column, Texts) for name, column in columns.items() if not column.null.all()}
            if len(set(known.values())) == 2:
                kinds = ", ".join(f"{name} is {'text' if text else 'a number'}" for name, text in known.items())
                message = f"this compares a text with a number: in {path}, {kinds}"
                raise QueryError(message, query.text, comparison.span, query.file, "compare columns of one kind")


def _unknown_types(query: Query, events: Events, path: str) -> Iterator[str]:
    source = query.tree.source
    names = {name for types in query.occurrence_types for name in types}
    wanted = {name for name in names if source is None or name.casefold() != source.casefold()}
    if wanted and not events.types:
        raise TrendsError(
            f"{path} has no column type, which would say which events are {', '.join(sorted(wanted))}\n"
            f"hint: name the columns that hold the types: --types a,b; the file has {', '.join(events.known)}"
        )
    known = {word for column in events.types for word in column.words}
    for name in sorted(wanted - known) if len(events) else ():
        close = nearest(name, known)
        yield f"no event of {path} has the type {name}" + (f"; did you mean {close}?" if close else "")
