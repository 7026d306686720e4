"""`digest`: every morning, what the last night did: in the log, by the webhook, and on the report site."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, task

from dags.parts.defaults import TASKS, nights
from dags.parts.night import settings
from dags.parts.notify import tell
from pipeline.datasets import DATASETS

DOC = """\
### The morning's digest

What was ingested and published in the last 24 hours, what failed or is missing, which queries are behind, and what the
checks warned of: all of it from the tables. It goes to the task's log, and to the webhook where there is one. The report
site is built anew, so that it has what nights do not end with: days that failed, late rows, engines compared.

| task | if it fails |
|---|---|
| `digest` | the lake is out of reach: `trends doctor` |
| `report` | the same, or the site's folder cannot be written to |
"""

with DAG(
    "digest",
    description="What the last night did",
    doc_md=DOC,
    **nights(min(dataset.first_day for dataset in DATASETS.values()))
    | {"schedule": CronTriggerTimetable("0 15 * * *", timezone="UTC"), "catchup": False, "max_active_runs": 1},
    default_args=TASKS,
    tags=["upkeep"],
):

    @task
    def digest() -> dict[str, Any]:
        from pipeline import digest as pages

        made = pages.digest(settings())
        tell(str(made), kind="digest", **made.facts)
        return made.facts

    @task
    def report() -> None:
        from pipeline import nights

        nights.build_report(settings())

    digest()
    report()
