"""Whether an interval can be answered: which landing days can hold its events, and which of them are not complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from pipeline import arrow_tables
from pipeline.aggregate.reach import as_time
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.intervals import COMPLETE, MISSING
from pipeline.tables import OPS_INTERVALS

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset
    from pipeline.questions import Question


class NotReadyError(TrendsError):
    """Landing days that an interval needs and that are not complete."""


def needed_days(dataset: Dataset, questions: Iterable[Question], day: date) -> list[date]:
    """The landing days that files are expected on and that can hold events of the windows of a day's interval.

    An event lands on the day that it happens on in the dataset's zone, or up to `lag` days later; windows reach back
    as far as WITHIN. Without questions, the events of the day itself.
    """
    ranges = [question.reach.events(*question.reach.ends(day)) for question in questions]
    spans = [(as_time(low), as_time(high - 1)) for low, high in ranges]
    zone = ZoneInfo(dataset.zone)
    midnight = datetime.combine(day, datetime.min.time(), ZoneInfo("UTC"))
    spans.append((midnight, midnight + timedelta(days=1, microseconds=-1)))
    first = min(low.astimezone(zone).date() for low, _ in spans)
    last = max(high.astimezone(zone).date() for _, high in spans) + timedelta(days=dataset.lag)
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [one for one in days if dataset.expects(one)]


def incomplete(config: Config, dataset: Dataset, days: Sequence[date]) -> dict[date, str]:
    """Those of these days that are not complete, with what `ops.intervals` says of them."""
    found = arrow_tables.rows(config, OPS_INTERVALS, ("landing_date", "status"), dataset=dataset.name)
    status = {row["landing_date"]: row["status"] for row in found}
    return {day: status.get(day, "not ingested yet") for day in days if status.get(day) != COMPLETE}


def check_ready(config: Config, dataset: Dataset, day: date, days: Sequence[date]) -> None:
    """Fail where some of the landing days that an interval needs are not complete."""
    left = incomplete(config, dataset, days)
    if not left:
        return
    shown = ", ".join(f"{one} ({status})" for one, status in left.items())
    hint = f"put the files into {config.landing}/{dataset.name}/<day>, " if MISSING in left.values() else ""
    raise NotReadyError(
        f"{dataset.name} {day}: these landing days can hold events of its windows and are not complete: {shown}\n"
        f"hint: {hint}see and clear ingest_{dataset.name} of these days, then clear this task"
    )
