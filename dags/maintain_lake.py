"""`maintain_lake`: every week, small files joined, files that no kept version needs removed, and old staging."""

from __future__ import annotations

from airflow.sdk import DAG, CronDataIntervalTimetable, task

from dags.parts.defaults import POOL, TASKS, nights
from dags.parts.night import settings
from pipeline.datasets import DATASETS

DOC = """\
### Upkeep of the lake

OPTIMIZE joins small files, VACUUM removes files that no kept version needs, and staged answers go that no run has
touched for two weeks. The same as `trends maintain`. It may run beside anything else.

| task | if it fails |
|---|---|
| `maintain` | it names the tables; the others are done. Clear it, or wait for next week |
"""

with DAG(
    "maintain_lake",
    description="OPTIMIZE, VACUUM, and staging left behind",
    doc_md=DOC,
    **nights(min(dataset.first_day for dataset in DATASETS.values()))
    | {
        "schedule": CronDataIntervalTimetable("0 5 * * 6", timezone="UTC"),
        "catchup": False,
        "max_active_runs": 1,
    },
    default_args=TASKS,
    tags=["upkeep"],
):

    @task(pool=POOL)
    def maintain() -> list[str]:
        from pipeline import upkeep

        return upkeep.maintain(settings())

    maintain()
