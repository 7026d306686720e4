"""`ingest_<dataset>`: the landing day of each interval, from raw files to checked events in silver."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, Param, TriggerRule, task

from dags.parts.deadlines import freshness
from dags.parts.defaults import INTERVAL, POOL, TASKS
from dags.parts.defaults import nights as nightly
from dags.parts.links import QualityPage, SparkPage, linked
from dags.parts.night import settings, work
from dags.parts.waiting import LandingCheck
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset

DOC = """\
### {about}

One landing day a run: files → `bronze.{name}` → `silver.{name}` and `quarantine.{name}` → `ops.intervals`.
Files are expected {calendar} from {first_day} on, {expected_by} hours after the day begins ({zone}).
Every task may be cleared at any time, and again: what is complete is left alone.

| task | if it fails |
|---|---|
| `landing` | no file is in the folder that it names: put the files there and clear it. It looks again by itself, four times in two hours |
| `bronze` | the files cannot be read, or a critical check failed: mend them, or waive the check (`trends quality waive`), and clear it |
| `silver` | a critical check of the events failed: mend the files (then clear `bronze`), or waive the check and clear it |
| `quality` | says what the checks found; it fails where silver did |

By hand: trigger it with an interval; *reprocess* refines again what bronze has, after a parser was mended.
Through the command line: `trends ingest {name} --from <day>`.
"""


def ingest(dataset: Dataset) -> DAG:
    """The DAG of a dataset."""
    with DAG(
        f"ingest_{dataset.name}",
        description=f"Landing files into silver.{dataset.name}, a day a run",
        doc_md=DOC.format(
            about=dataset.about,
            name=dataset.name,
            calendar=dataset.calendar.about,
            first_day=dataset.first_day,
            expected_by=dataset.expected_by,
            zone=dataset.zone,
        ),
        **nightly(dataset.first_day),
        default_args=TASKS,
        params={
            "interval": INTERVAL,
            "reprocess": Param(False, type="boolean", description="Refine again what bronze has."),
        },
        deadline=freshness(dataset),
        tags=["ingest", dataset.name],
    ) as dag:

        @task(pool=POOL)
        def bronze(**context: Any) -> list[str]:
            from pipeline import nights

            return nights.to_bronze(*work(context, dataset), reprocess=context["params"]["reprocess"])

        @task(pool=POOL, outlets=[Asset(name=f"silver.{dataset.name}", uri=f"trends://silver/{dataset.name}")])
        def silver(warnings: list[str], **context: Any) -> dict[str, Any]:
            from pipeline import nights

            return nights.to_silver(*work(context, dataset), warnings, reprocess=context["params"]["reprocess"])

        @task(trigger_rule=TriggerRule.ALL_DONE)
        def quality(**context: Any) -> dict[str, int]:
            from pipeline import nights
            from pipeline.errors import TrendsError

            _, _, day, _ = work(context, dataset)
            found = nights.quality(settings(), dataset, day)
            if context["ti"].xcom_pull(task_ids="silver") is None:
                raise TrendsError(f"{dataset.name} {day}: not in silver\nhint: see the task before that failed")
            return found

        landing = LandingCheck(
            task_id="landing",
            dataset=dataset.name,
            execution_timeout=None,  # by Airflow's documentation the time that it is deferred counts
            retries=4,
            retry_delay=timedelta(minutes=30),
            retry_exponential_backoff=0,
            retry_policy=None,
        )
        ingested = linked(bronze(), QualityPage(), SparkPage())
        refined = linked(silver(ingested), QualityPage(), SparkPage())
        landing >> ingested >> refined >> linked(quality(), QualityPage())
    return dag


for declared in DATASETS.values():
    ingest(declared)
