"""Stale intervals without a JVM: what is published, and was computed on events that have changed since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from pipeline.aggregate.cut import Range
from pipeline.aggregate.reach import DAY
from pipeline.publish.publications import Publication
from pipeline.publish.stale import CHANGED, NOT_KEPT, OTHER_QUERY, Stale
from pipeline.questions import Question
from pipeline.report.changes import NotKeptError, Silver, by_file, micros, windows
from pipeline.report.site import counted


def words(one: Stale) -> str:
    """Why it is stale; without SLIDE, windows are not counted."""
    if one.reason != CHANGED:
        return one.reason
    changed = f"{counted(one.events, 'event')} changed"
    return f"{changed}, in {counted(one.windows, 'window')}" if one.windows else changed


def stale(silver: Silver, question: Question, published: Sequence[Publication]) -> dict[date, Stale]:
    """The published intervals of a question that are stale, by day.

    The same as `trends backfill --changed` finds, but for windows without SLIDE, which are not counted.
    """
    found = [
        Stale(question.name, one.interval_date, OTHER_QUERY)
        for one in published
        if one.query_version != question.version
    ]
    behind = [one for one in published if one.query_version == question.version and one.silver_version < silver.version]
    for version in sorted({one.silver_version for one in behind}):
        found += _changed(silver, question, [one for one in behind if one.silver_version == version])
    return {one.interval_date: one for one in found}


def _changed(silver: Silver, question: Question, behind: Sequence[Publication]) -> Iterable[Stale]:
    """Those of intervals that were computed on one version."""
    reach, days = question.reach, [one.interval_date for one in behind]
    ranges = [reach.events(*reach.ends(day)) for day in days]
    # Whole days, so that questions with windows of other lengths share what is read.
    hull = min(low for low, _ in ranges), max(high for _, high in ranges)
    try:
        changes = silver.changed(question, behind[0].silver_version, silver.version, _whole_days(hull))
    except NotKeptError:
        return [Stale(question.name, day, NOT_KEPT) for day in days]
    times, found = micros(changes), []
    for day, (low, high) in zip(days, ranges, strict=True):
        inside = (times >= low) & (times < high)
        some = changes[inside]
        if len(some):
            events = int(some["event_id"].nunique())
            number = windows(reach, reach.ends(day), times[inside])
            found.append(Stale(question.name, day, CHANGED, events, number or 0, tuple(by_file(some))))
    return found


def _whole_days(times: Range) -> Range:
    return times[0] // DAY * DAY, -(-times[1] // DAY) * DAY
