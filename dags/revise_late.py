"""`revise_late`: published windows whose events have changed since, by late rows or replaced files, answered again."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, task

from dags.parts.defaults import POOL, QUERIES, TASKS, nights
from dags.parts.links import QualityPage, SparkPage, linked
from dags.parts.night import settings
from pipeline.datasets import DATASETS

DOC = """\
### Late rows

Intervals that were published before events of their windows changed: a late file, a file that was replaced, a query
that was edited. The same as `trends backfill all --changed`; rows that did not change stay, others get a new revision
(`trends diff <query> --window <time>` shows why). One task a dataset, so that one does not keep the others back.

| task | if it fails |
|---|---|
| `revise` | it names the queries and intervals that were not published, and why: mend that and clear it. What it did before stays |
"""
FIRST = min(dataset.first_day for dataset in DATASETS.values())

with DAG(
    "revise_late",
    description="Windows made stale by late rows, answered again",
    doc_md=DOC,
    **nights(FIRST)
    | {
        # When the night's files are in silver: nothing is lost by an outage, as the tables say what is stale.
        "schedule": CronDataIntervalTimetable("0 14 * * *", timezone="UTC"),
        "catchup": False,
        "max_active_runs": 1,
    },
    default_args=TASKS,
    params={
        "queries": QUERIES,
        "first": Param(None, type=["null", "string"], format="date", description="The first interval; empty: all."),
        "last": Param(None, type=["null", "string"], format="date", description="The last interval; empty: all."),
    },
    tags=["trends"],
):

    @task(pool=POOL)
    def revise(name: str, **context: Any) -> list[str]:
        from pipeline import upkeep

        params = context["params"]
        return upkeep.revise(
            settings(), DATASETS[name], str(context["run_id"]), params["queries"], params["first"], params["last"]
        )

    for dataset in DATASETS:
        linked(revise.override(task_id=f"revise_{dataset}")(name=dataset), QualityPage(), SparkPage())
