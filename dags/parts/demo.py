"""One generated night through the real DAGs, in this process: `python -m dags.parts.demo`, or `make demo`."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

DAY = date(2024, 1, 8)  # a Monday in the past: nights do not run before their day is over
ROWS = 20_000
DAGS = Path(__file__).parents[1]
HOME = DAGS.parent / ".airflow" / "demo"
# A small night: Spark compiles code, and spreads rows over tasks, for longer than that saves. Compiling as it does then,
# Java keeps 48 MB of machine code unless told otherwise, and stops to compile when these are full.
SMALL = """
spark.sql.adaptive.enabled=false
spark.sql.shuffle.partitions=1
spark.sql.codegen.wholeStage=false
spark.sql.codegen.factoryMode=NO_CODEGEN
spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC
"""


def main() -> int:
    """Generate a day of each dataset, ingest it, answer all queries, compare engines; 0 if all went well."""
    begun = time.monotonic()
    _set_up()
    from pipeline.config import Config
    from pipeline.datasets import DATASETS

    config = Config.from_environment()
    _generate(config, begun)
    failed = []
    for dataset in DATASETS.values():
        # Trips and recordings may come a month later; the demo has one day of files.
        steps: list[tuple[str, dict[str, Any]]] = [(f"ingest_{dataset.name}", {}), (f"trends_{dataset.name}", {})]
        if dataset.lag:
            steps[1][1]["partial"] = True
        failed += [dag_id for dag_id, said in steps if not _run(dag_id, said, begun)]
    asked = {"queries": ["down-trends-by-sector"], "engines": ["pane", "cogra", "greta"], "windows": 2}
    failed += [] if _run("compare_engines", asked, begun) else ["compare_engines"]
    _show(config, begun)
    if failed:
        print(f"\nfailed: {', '.join(failed)}; what went wrong is above", file=sys.stderr)
    return 2 if failed else 0


def _set_up() -> None:
    """Airflow in a folder of the project, before anything imports it."""
    HOME.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(HOME / "logs"),
    }
    os.environ.pop("TRENDS_START", None)
    os.environ.setdefault("TRENDS_SPARK_CONF", SMALL)
    from airflow.utils.db import initdb

    if not (HOME / "airflow.db").exists():
        print("== Airflow's database, on SQLite, for this demo alone", flush=True)
        initdb()


def _generate(config: Any, begun: float) -> None:
    from pipeline.datasets import DATASETS
    from pipeline.sources.generator import generate

    _head("generated files, as exchanges, taxi commissions and studies publish them", begun)
    for dataset in DATASETS.values():
        made = generate(dataset, Path(config.landing), [DAY], ROWS)
        print(
            f"{dataset.name}: {len(made.files)} files with {made.rows:,} rows, {sum(made.bad.values()):,} of them bad"
        )


@cache
def _dags() -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag

    return dict(DagBag(dag_folder=str(DAGS)).dags)


def _run(dag_id: str, said: dict[str, Any], begun: float) -> bool:
    """Run a DAG for the day; whether it went well."""
    dag = _dags()[dag_id]
    about = f"; {', '.join(f'{name}: {value}' for name, value in said.items())}" if said else ""
    _head(f"{dag_id}, the night of {DAY}: {dag.description}{about}", begun)
    dag.deadline = None  # which `DAG.test` of Airflow 3.3 cannot do
    for task in dag.task_dict.values():
        task.retries = 0
    ends = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC) + timedelta(days=1)
    run = dag.test(logical_date=ends, run_conf=said | ({"interval": str(DAY)} if dag_id == "compare_engines" else {}))
    return str(run.state) == "success"


def _show(config: Any, begun: float) -> None:
    from pipeline.output import formatted
    from pipeline.publish.read import read_gold

    _head("what is published: gold.trips_by_district", begun)
    rows = read_gold("trips-by-district", lake=config.lake).head(5)
    columns = ["window_start", "window_end", "district", "count", "avg_t_speed", "engine", "revision"]
    for line in formatted(rows[columns].astype(str).to_dict("records"), "table", columns):
        print(line)
    _head("where to look", begun)
    print(f"  {config.landing}  the raw files")
    print(f"  {config.lake}     the tables: trends tables, trends show gold.down_trends_by_sector")
    print(f"  {config.site}/index.html  the report: nights, answers, engines compared, data checks")


def _head(text: str, begun: float) -> None:
    print(f"\n== [{time.monotonic() - begun:.0f} s] {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
