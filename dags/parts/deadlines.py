"""Freshness: who is told when a night is not done some hours after its files were expected."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference

from dags.parts.defaults import HOURS_TO_SPARE

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset


def freshness(dataset: Dataset, days: int = 0) -> DeadlineAlert:
    """A deadline for each run of a dataset, so many days later."""
    hours = due_after(dataset) + HOURS_TO_SPARE
    about = f"{dataset.name}: not done {hours} hours" + (f" and {days} days" if days else "") + " after it was queued"
    return deadline(f"{dataset.name} is fresh", timedelta(days=days, hours=hours), about)


def deadline(name: str, interval: timedelta, about: str) -> DeadlineAlert:
    """A deadline for each run, after which it is told of.

    From when it was queued, not from its interval: a backfill is not late because its days are old.
    """
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=interval,
        callback=AsyncCallback(missed, kwargs={"about": about}),
        name=name,
    )


def due_after(dataset: Dataset) -> int:
    """How many hours after an interval's end, when its night is queued, its files are expected; in winter or summer."""
    ends = [datetime(2024, month, 2, tzinfo=UTC) for month in (1, 7)]
    return max(
        math.ceil((dataset.expected_at((end - timedelta(days=1)).date()) - end) / timedelta(hours=1)) for end in ends
    )


async def missed(about: str, **given: Any) -> None:
    """Tell of a night that is late; in the triggerer."""
    import asyncio

    from dags.parts.notify import tell

    run = given["context"]["dag_run"]
    name = f"{run['dag_id']} {run['dag_run_id']}"
    await asyncio.to_thread(
        tell, f"{name} is late: {about}", kind="deadline missed", dag=run["dag_id"], run=run["dag_run_id"], about=about
    )
