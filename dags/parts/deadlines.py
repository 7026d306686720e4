"""Freshness: who is told when a night is not done some hours after its files were expected."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference

from dags.parts.defaults import HOURS_TO_SPARE

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset

# From the interval's end, when a night is queued, to its local midnight where that is latest (UTC-12).
HOURS_OF_ZONES = 12


def freshness(dataset: Dataset, days: int = 0) -> DeadlineAlert:
    """A deadline for each run, so many days later.

    From when it was queued, not from its interval: a backfill is not late because its days are old.
    """
    hours = max(dataset.expected_by - 24, 0) + HOURS_OF_ZONES + HOURS_TO_SPARE
    about = f"{dataset.name}: not done {hours} hours" + (f" and {days} days" if days else "") + " after it was queued"
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(days=days, hours=hours),
        callback=AsyncCallback(missed, kwargs={"about": about}),
        name=f"{dataset.name} is fresh",
    )


async def missed(about: str, **given: Any) -> None:
    """Tell of a night that is late; in the triggerer."""
    import asyncio

    from dags.parts.notify import tell

    run = (given.get("context") or {}).get("dag_run") or {}
    name = f"{run.get('dag_id')} {run.get('dag_run_id') or run.get('run_id')}" if isinstance(run, dict) else str(run)
    await asyncio.to_thread(tell, f"{name} is late: {about}", kind="deadline missed", about=about)
