"""`compare_engines`: every week, the engines against each other over growing numbers of events."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, task

from dags.parts.defaults import INTERVAL, POOL, QUERIES, TASKS, nights
from dags.parts.links import QueryPage, SparkPage, linked
from dags.parts.night import interval_of, settings
from pipeline.datasets import DATASETS

DOC = """\
### Engines compared

For each query that was published, the baseline and the other engines on the first 8, 16, 32 … events of some windows,
until the baseline does not finish; then on whole windows. What each took goes to `gold.engine_runs`, which the report
draws. The same as `trends compare <query> --interval <day>`.

| task | if it fails |
|---|---|
| `queries` | a manual run named a query that is not there |
| `compare` | engines gave other rows on the same events: the message names window, group and values; one of the engines is wrong |
"""
ENGINES = Param(
    None,
    type=["null", "array"],
    items={"type": "string", "minLength": 1},
    description="Engines beside the baseline sase; empty: all.",
)

with DAG(
    "compare_engines",
    description="The engines against each other, over growing numbers of events",
    doc_md=DOC,
    **nights(min(dataset.first_day for dataset in DATASETS.values()))
    | {
        "schedule": CronDataIntervalTimetable("0 3 * * 0", timezone="UTC"),
        "catchup": False,
        "max_active_runs": 1,
    },
    default_args=TASKS,
    params={
        "interval": INTERVAL,
        "queries": QUERIES,
        "engines": ENGINES,
        "windows": Param(6, type="integer", minimum=1, maximum=100, description="Windows of each query."),
    },
    tags=["engines"],
):

    @task
    def queries(**context: Any) -> list[list[str]]:
        from pipeline import upkeep

        said = context["params"]["interval"]
        day = interval_of(context) if said else None
        return upkeep.comparable(settings(), context["params"]["queries"], day)

    # Airflow 3.3 cannot load a weight rule of one's own for a mapped task.
    @task(pool=POOL, weight_rule="downstream", map_index_template="{{ task.op_kwargs['one'][1] }}")
    def compare(one: list[str], **context: Any) -> str:
        from pipeline import upkeep

        params = context["params"]
        return upkeep.compare_engines(settings(), str(context["run_id"]), one, params["engines"], params["windows"])

    mapped = compare.expand(one=queries())
    linked(mapped, QueryPage(), SparkPage())
