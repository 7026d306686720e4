"""Sample trends: those of a published window with few of them, built by the baseline from silver's events."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from pipeline.aggregate.columns import SilverTable, needed_columns
from pipeline.aggregate.reach import as_micros, as_time
from pipeline.aggregate.scan import read_range
from pipeline.aggregate.snapshot import Snapshot, snapshot
from pipeline.aggregate.windows import Stretch, alone, origin
from pipeline.compare import BASELINE
from pipeline.config import Config
from pipeline.engines import choice
from pipeline.engines.contract import Cost, Limits, TrendBuilder
from pipeline.engines.stream import make_stream
from pipeline.errors import DidNotFinishError, TrendsError
from pipeline.events import Events
from pipeline.quality.mask import masked
from pipeline.query import tree
from pipeline.questions import Question
from pipeline.report.answers import WINDOW, Answers, shortened
from pipeline.results import show_event_value
from pipeline.tables import LOG10, item_name, silver

if TYPE_CHECKING:
    import pandas

SHOWN = 8  # trends
TRIED = 6  # windows
MOST_EVENTS = 3_000  # of a window
SECONDS = 2.0


@dataclass(frozen=True)
class Event:
    """An event of a trend: what it is bound to, when it happened, and what the query knows of it, masked."""

    variable: str
    time: datetime
    values: Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """A window and group, the number of its trends where the query counts them, and some of them."""

    start: datetime
    end: datetime
    group: Mapping[str, str]
    total: str | None
    trends: Sequence[Sequence[Event]]


def sample(config: Config, question: Question, answers: Answers) -> Sample | None:
    """Some trends; None where no window is small enough to build its trends at once."""
    found: dict[int | None, Snapshot] = {}
    for at in _candidates(question, answers):
        shown, raw = answers.frame.loc[at], answers.raw.loc[at]
        version = int(raw["silver_version"])
        if version not in found:
            found[version] = _snapshot(config, question, version)
        end = as_micros(raw[WINDOW[1]].to_pydatetime())
        stretch = Stretch((end, end + 1), question.reach.events(end, end + 1))
        events = _events(question, found[version], stretch, {name: raw[name] for name in answers.groups})
        if events is None or not 0 < len(events) <= MOST_EVENTS:
            continue
        trends = list(_trends(question, stretch, events))
        if trends:
            start, end_time = (shown[name].to_pydatetime() for name in WINDOW)
            count = _count(question)
            total = None if count is None else shortened(shown[count])
            return Sample(start, end_time, {name: str(shown[name]) for name in answers.groups}, total, trends)
    return None


def _candidates(question: Question, answers: Answers) -> Sequence[Any]:
    """Rows with few trends, but more than one where there are such."""
    frame: pandas.DataFrame = answers.raw
    count = _count(question)
    if count is None:
        return list(frame.sort_values(WINDOW[0], ascending=False).index[:TRIED])
    logs = frame[count + LOG10]
    few = frame.assign(_few=logs.where(logs >= math.log10(2) - 1e-9, logs + 4))
    return list(few.sort_values(["_few", WINDOW[0]]).index[:TRIED])


def _count(question: Question) -> str | None:
    """The column with the number of trends."""
    everything = tree.Aggregate("COUNT", None, None)
    return next((item_name(item) for item in question.query.tree.returns if item.value == everything), None)


def _snapshot(config: Config, question: Question, version: int) -> Snapshot:
    """The version that the answers are of, or the newest where that is no longer kept."""
    from deltalake.exceptions import DeltaError

    try:
        return snapshot(config, silver(question.dataset), version)
    except (DeltaError, TrendsError):
        return snapshot(config, silver(question.dataset))


def _events(question: Question, found: Snapshot, stretch: Stretch, group: Mapping[str, Any]) -> Events | None:
    import pyarrow
    import pyarrow.compute as pc

    names = (
        *needed_columns(question),
        *(name for name in question.dataset.types if name not in needed_columns(question)),
    )
    rows = read_range(found.files, *stretch.events, names)
    if rows is None:
        return None
    for name, value in group.items():
        column = rows.column(name)
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        rows = rows.filter(pc.equal(column, pyarrow.scalar(value, column.type)))
    return SilverTable(rows).events(question)


def _trends(question: Question, stretch: Stretch, events: Events) -> Iterator[Sequence[Event]]:
    query, moved = alone(question.query), origin(question.reach, stretch)
    engine = choice.choose(query, BASELINE)
    if not isinstance(engine, TrendBuilder):
        raise AssertionError(f"{BASELINE} builds trends")
    stream = make_stream(query, replace(events, time=events.time - moved))
    states = query.automaton.states
    sensitive = {column.name for column in question.dataset.columns if column.sensitive}

    def values(row: int) -> Mapping[str, str]:
        types = zip(question.dataset.types, events.types, strict=False)
        known = {name: show_event_value(column, row) for name, column in (*types, *events.attributes.items())}
        shown = {name: masked(name, value) if name in sensitive else value for name, value in known.items()}
        return {name: _text(value) for name, value in shown.items() if name != "time" and value is not None}

    try:
        for trend in islice(engine.trends(query, stream, Limits(SECONDS, 100_000), Cost()), SHOWN):
            yield [
                Event(states[state].variable or states[state].label, as_time(int(events.time[row])), values(row))
                for state, row in trend
            ]
    except DidNotFinishError:  # what there is by now is enough
        return


def _text(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
