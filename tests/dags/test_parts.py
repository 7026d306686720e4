"""The DAGs themselves, and their parts: what they import, who comes first, what they wait for, whom they tell."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.config import Config
from pipeline.datasets import DATASETS
from tests.dags.conftest import DAGS, airflow_environment
from tests.small_lake import FALLING
from tests.webhook import webhook

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

NIGHTLY = [f"{kind}_{name}" for kind in ("ingest", "trends") for name in DATASETS]
OTHERS = ["compare_engines", "digest", "maintain_lake", "revise_late"]
# What each file takes beside Airflow itself, and beside what all of them share.
IMPORTS = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk, airflow.providers.standard.triggers.temporal
for file in sys.argv[1:]:
    bag = DagBag(dag_folder=file)
    assert bag.dags and not bag.import_errors, bag.import_errors
large = ("deltalake", "great_expectations", "numba", "pandas", "pyarrow", "pyspark")
heavy = [name for name in large if name in sys.modules]
print(json.dumps(heavy))
"""
FILES = sorted(DAGS.glob("[a-z]*.py"))


def test_they_are_there(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert sorted(bag.dags) == sorted([*NIGHTLY, *OTHERS])
    for dag in bag.dags.values():
        steps = {one.task_id.removeprefix("query.").partition("_")[0] for one in dag.task_dict.values()}
        assert all(f"`{step}`" in (dag.doc_md or "") or f".{step}`" in (dag.doc_md or "") for step in steps), dag.dag_id


def test_a_task_has_an_end_unless_it_waits(bag: DagBag) -> None:
    """Waiting takes up to a month."""
    endless = {
        (dag.dag_id.partition("_")[0], one.task_id)
        for dag in bag.dags.values()
        for one in dag.task_dict.values()
        if one.execution_timeout is None
    }
    assert endless == {("ingest", "landing"), ("trends", "wait")}


def test_they_import_little(airflow_home: Path) -> None:
    """Airflow reads them all the time, so nothing that is large."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *map(str, FILES)],
        env=os.environ | airflow_environment(airflow_home) | {"AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(FILES) == 6
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("file", [*FILES, *sorted((DAGS / "parts").glob("[a-z]*.py"))], ids=lambda file: file.stem)
def test_what_is_large_is_imported_in_tasks(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top for alias in node.names} | {getattr(node, "module", "") for node in top}
    roots = {str(name).partition(".")[0] for name in names}
    assert not roots & {"deltalake", "great_expectations", "numba", "pandas", "pyarrow", "pyspark"}


def test_nights_come_before_backfills(bag: DagBag) -> None:
    """By the weights that the scheduler gives their task instances."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.serialization.serialized_objects import DagSerialization

    dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags["trends_stock"]))
    for task in dag.task_dict.values():
        weights = [
            task.weight_rule.get_weight(TaskInstance(task=task, run_id=f"{kind}__2024-01-09", dag_version_id=None))
            for kind in ("scheduled", "manual", "backfill")
        ]
        assert weights[0] == weights[1] > weights[2]


@pytest.mark.parametrize(
    ("address", "master"),
    [
        ("sc://127.0.0.1:15002", "sc://127.0.0.1:15002"),
        ("spark://10.0.0.7:7077", "spark://10.0.0.7:7077"),
        ('{"conn_type": "generic", "host": "sc://spark", "port": 15002}', "sc://spark:15002"),
        ('{"conn_type": "generic", "host": "local[2]"}', "local[2]"),
        ('{"conn_type": "generic", "extra": {"master": "yarn"}}', "yarn"),
    ],
)
def test_spark_by_connection(
    bag: DagBag, lake: Config, monkeypatch: pytest.MonkeyPatch, address: str, master: str
) -> None:
    from dags.parts.night import settings

    assert settings().master == "local[2]"
    monkeypatch.setenv("AIRFLOW_CONN_TRENDS_SPARK", address)
    assert settings().master == master


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What comes to a webhook."""
    with webhook() as (address, found):
        monkeypatch.setenv("TRENDS_WEBHOOK", address)
        yield found


def test_a_failure_and_the_digest_are_posted(bag: DagBag, lake: Config, posted: list[dict[str, Any]]) -> None:
    """An interval of the future needs landing days that are not there: no Spark is needed to say so."""
    said = {"interval": "2024-01-08", "patience": 0}
    run = bag.dags["trends_stock"].test(logical_date=datetime(2024, 1, 9, tzinfo=UTC), run_conf=said)
    assert str(run.state) == "failed"
    told = {one["task"]: one for one in posted}
    assert "2024-01-08 (not ingested yet)" in told["wait"]["error"]
    assert (told["wait"]["dag"], told["wait"]["kind"]) == ("trends_stock", "task failed")

    posted.clear()
    (Path(lake.queries) / "stock" / "wrong.query").write_text("RETURN COUNT(*)\nPATERN S FROM stock")
    run = bag.dags["digest"].test(logical_date=datetime(2024, 1, 9, tzinfo=UTC))
    assert str(run.state) == "success"
    (made,) = posted
    assert made["kind"] == "digest"
    assert any("wrong.query:2:1" in line for line in made["failed"])
    assert "wrong: something is wrong with this query" in (Path(lake.site) / "index.html").read_text()


def test_a_webhook_that_does_not_answer_fails_nothing(bag: DagBag, monkeypatch: pytest.MonkeyPatch) -> None:
    from dags.parts.notify import tell

    monkeypatch.setenv("TRENDS_WEBHOOK", "http://127.0.0.1:9/nobody")
    tell("anything")


def test_a_trigger_of_landing_days(bag: DagBag, lake: Config) -> None:
    """It is made again from what it says of itself, as the triggerer does, and ends when it is too late."""
    from airflow.sdk._shared.module_loading import import_string

    from dags.parts.waiting import LandingDays

    until = datetime.now(UTC) + timedelta(seconds=0.3)
    place, given = LandingDays(lake.lake, "stock", ["2024-01-08"], until.isoformat(), every=0.1).serialize()
    trigger = import_string(place)(**json.loads(json.dumps(given)))

    async def fired() -> Any:
        return await anext(aiter(trigger.run()))

    assert asyncio.run(fired()).payload == {"left": ["2024-01-08"]}
    assert datetime.now(UTC) >= until


def test_files_are_waited_for(bag: DagBag, lake: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tomorrow's files are not expected yet: the task defers until six in the morning after, in New York."""
    from airflow.sdk.exceptions import TaskDeferred

    day = datetime.now(UTC).date() + timedelta(days=1)
    landing = bag.dags["ingest_stock"].task_dict["landing"]
    with pytest.raises(TaskDeferred) as deferred:
        landing.execute({"params": {"interval": str(day)}, "run_id": "run"})
    assert deferred.value.trigger.moment == DATASETS["stock"].expected_at(day)
    assert deferred.value.method_name == "look"


@pytest.mark.parametrize(
    ("name", "day", "first", "last"),
    [
        # Ten minutes before midnight in UTC are Monday's in New York; so is the day's end.
        ("stock", date(2024, 1, 9), date(2024, 1, 8), date(2024, 1, 9)),
        ("stock", date(2024, 1, 8), date(2024, 1, 8), date(2024, 1, 8)),  # Sunday has no files
        ("taxi", date(2024, 1, 9), date(2024, 1, 8), date(2024, 2, 9)),  # and what comes a month later
        ("activity", date(2022, 1, 1), date(2022, 1, 1), date(2022, 2, 1)),  # the first day
    ],
)
def test_which_landing_days_are_needed(name: str, day: date, first: date, last: date) -> None:
    from pipeline.ready import needed_days

    found = needed_days(DATASETS[name], [FALLING], day)
    assert (found[0], found[-1]) == (first, last)


def test_nights_are_caught_up_from_the_day_that_is_set(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("TRENDS_START", "2026-11-02")
    found = DagBag(dag_folder=str(DAGS)).dags
    for name in NIGHTLY:
        dag = found[name]
        assert (dag.start_date, dag.catchup) == (datetime(2026, 11, 2, tzinfo=UTC), True)
        assert 1 <= dag.max_active_runs <= 4
        assert dag.deadline
