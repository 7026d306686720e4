"""What all DAGs have in common: their nights, Spark's pool, retries, timeouts, and what a manual run may say."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, ExceptionRetryPolicy, Param, RetryAction, RetryRule

from dags.parts.notify import on_failure
from dags.parts.priority import NightsFirst
from pipeline.errors import DidNotFinishError, InputError, SetupError, TrendsError
from pipeline.services.airflow import POOL as POOL

OWNER = "trendmill"

NIGHTLY = CronDataIntervalTimetable("0 0 * * *", timezone="UTC")  # @daily would give empty intervals
ACTIVE_NIGHTS = 4  # of one DAG at a time, when it catches up
HOURS_TO_SPARE = 4  # after the files of a landing day are expected, until its answers are

# What is wrong with a query or with data is so the next time too.
TRANSIENT = ExceptionRetryPolicy(
    rules=[
        RetryRule([DidNotFinishError, InputError, SetupError], RetryAction.RETRY),
        RetryRule(TrendsError, RetryAction.FAIL, reason="the same would be wrong again"),
    ]
)

TASKS: dict[str, Any] = {
    "owner": OWNER,
    "retries": 2,
    "retry_delay": timedelta(minutes=2),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=30),
    "retry_policy": TRANSIENT,
    "execution_timeout": timedelta(hours=6),
    "on_failure_callback": on_failure,
    "weight_rule": NightsFirst(),
}

INTERVAL = Param(
    None,
    type=["null", "string"],
    format="date",
    title="Interval",
    description="The day, in UTC; empty: the day before this run, as every night.",
)
QUERIES = Param(
    None,
    type=["null", "array"],
    items={"type": "string", "minLength": 1},
    title="Queries",
    description="Names of query files, such as down-trends-by-sector; empty: all of them.",
)


def nights(first_day: date) -> dict[str, Any]:
    """The schedule of a DAG over daily intervals.

    From `TRENDS_START` on every night is run, those too that an outage left out or that waited for others. Without it,
    the last one only, whenever Airflow looks: nobody wants the nights since a dataset's first day.
    """
    text = os.environ.get("TRENDS_START", "").strip()
    start = datetime.combine(date.fromisoformat(text) if text else first_day, time(), UTC)
    return {
        "schedule": NIGHTLY,
        "start_date": start,
        "catchup": bool(text),
        "max_active_runs": ACTIVE_NIGHTS,
    }
