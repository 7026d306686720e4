"""`trends_<dataset>`: the windows of each interval, for every query file of `queries/<dataset>/`, into gold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule, task, task_group

from dags.parts.deadlines import freshness
from dags.parts.defaults import INTERVAL, POOL, QUERIES, TASKS
from dags.parts.defaults import nights as nightly
from dags.parts.links import QualityPage, QueryPage, SparkPage, linked
from dags.parts.night import work
from dags.parts.waiting import EventsComplete
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset

LABEL = "{{ task.op_kwargs['name'] }}"
PATIENCE = 24  # hours

DOC = """\
### Trends over {about}

For each query file of `queries/{name}/`, the windows that end in the interval: `silver.{name}` → answers → compared
with other engines → checked → `gold.<query>`. A new file is there in the next run. What is wrong with one query does not
keep the others back; the run is failed then, by its last task.

| task | if it fails |
|---|---|
| `wait` | landing days that can hold the interval's events ({lag} days after them at most) are not complete: see `ingest_{name}` of the days that it names, then clear it |
| `queries` | a manual run named a query that is not there |
| `share` | never because of one query; where Spark is out of reach: see its log, `trends doctor` |
| `query.aggregate` | the query's file has a mistake, which is shown with its line: mend it and clear the task. Or Spark failed: clear it |
| `query.agreement` | engines gave other answers on the same events, and nothing is published: `trends compare <query> --interval <day>` tries them all |
| `query.checks` | a critical check failed: see the page that it names; `trends quality waive` and clear it, or mend the events |
| `query.publish` | clear it: the answers are staged, and are those that were checked. If the staging is gone it says so: clear `query.aggregate` |
| `report` | a query failed, which it names |

To do one query again, clear its `query.aggregate` with what is downstream of it. By hand: trigger it with an interval, some queries, an engine;
*partial* answers with what is there though landing days are missing (`revise_late` makes good what comes later).
Through the command line: `trends backfill {name} --from <day>`.
"""


def trends(dataset: Dataset) -> DAG:
    """The DAG of a dataset."""
    with DAG(
        f"trends_{dataset.name}",
        description=f"The queries of queries/{dataset.name}, a day's windows a run",
        doc_md=DOC.format(about=dataset.about, name=dataset.name, lag=dataset.lag),
        **nightly(dataset.first_day),
        default_args=TASKS,
        params={
            "interval": INTERVAL,
            "queries": QUERIES,
            "engine": Param("auto", type="string", pattern="^[a-z]+$", description="See `trends engines`."),
            "patience": Param(
                PATIENCE, type="number", minimum=0, description="Hours to wait for landing days after they are due."
            ),
            "partial": Param(False, type="boolean", description="Answer though landing days are not complete."),
        },
        deadline=freshness(dataset, dataset.lag),
        tags=["trends", dataset.name],
    ) as dag:

        @task
        def queries(**context: Any) -> list[str]:
            from pipeline import nights

            config, *_ = work(context, dataset)
            return nights.query_names(config, dataset, context["params"]["queries"])

        @task(pool=POOL)
        def share(names: list[str], **context: Any) -> list[str]:
            from pipeline import nights

            return nights.share(*work(context, dataset), names, engine=context["params"]["engine"])

        @task(pool=POOL, map_index_template=LABEL)
        def aggregate(name: str, **context: Any) -> str:
            from pipeline import nights

            return nights.aggregate(*work(context, dataset), name, engine=context["params"]["engine"])

        @task(pool=POOL, map_index_template=LABEL)
        def agreement(name: str, **context: Any) -> str:
            from pipeline import nights

            return nights.agree(*work(context, dataset), name)

        @task(pool=POOL, map_index_template=LABEL)
        def checks(name: str, **context: Any) -> list[str]:
            from pipeline import nights

            return nights.check(*work(context, dataset), name)

        @task(pool=POOL, map_index_template=LABEL)
        def publish(name: str, **context: Any) -> dict[str, Any]:
            from pipeline import nights

            return nights.publish(*work(context, dataset), name)

        @task_group
        def query(name: str) -> None:
            steps = [
                linked(aggregate(name=name), QueryPage(), SparkPage()),
                linked(agreement(name=name), QueryPage(), SparkPage()),
                linked(checks(name=name), QualityPage()),
                linked(publish(name=name), QueryPage()),
            ]
            for before, after in pairwise(steps):
                before >> after

        @task(trigger_rule=TriggerRule.ALL_DONE)
        def report(**context: Any) -> list[str]:
            from pipeline import nights

            ti = context["ti"]
            done = ti.xcom_pull(task_ids=["query.publish"])  # of one name, one query's would not be a list
            return nights.report(*work(context, dataset), ti.xcom_pull(task_ids="queries"), done)

        wait = EventsComplete(
            task_id="wait",
            dataset=dataset.name,
            execution_timeout=None,  # by Airflow's documentation the time that it is deferred counts
        )
        names = queries()
        shared = linked(share(names), SparkPage())
        wait >> names >> shared >> query.expand(name=names) >> linked(report(), QueryPage())
    return dag


for declared in DATASETS.values():
    trends(declared)
