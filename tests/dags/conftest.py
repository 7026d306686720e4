"""Airflow for the tests: a home of its own on SQLite, the real DAGs, and nights that run in this process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.config import Config
from tests.conftest import SMALL

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.models.dagrun import DagRun

DAGS = Path(__file__).parents[2] / "dags"
QUERIES = {
    "stock/falling.query": """
        RETURN sector, COUNT(*), MIN(S.price) AS least PATTERN Stock S+ FROM stock
        WHERE [company] AND S.price > NEXT(S).price GROUP-BY sector WITHIN 10 minutes SLIDE 5 minutes
    """,
    "stock/deep/whole-days.query": """
        RETURN company, COUNT(*) PATTERN Stock S+ FROM stock WHERE [company] GROUP-BY company WITHIN 1 hour SLIDE 1 hour
    """,
}

Night = Callable[..., "DagRun"]


def airflow_environment(home: Path) -> dict[str, str]:
    """Airflow in a folder of its own."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
    }


# Before any test module imports Airflow, which reads its settings then.
HOME = Path(tempfile.mkdtemp(prefix="trendmill-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ.update(airflow_environment(HOME))


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Airflow's folder, with an empty database."""
    from airflow.utils.db import initdb

    initdb()
    return HOME


@pytest.fixture
def bag(airflow_home: Path) -> DagBag:
    """The real DAGs, which try again at once; anew for each test, since a run keeps in its DAG what was said to it."""
    from airflow.dag_processing.dagbag import DagBag

    found = DagBag(dag_folder=str(DAGS))
    for dag in found.dags.values():
        dag.deadline = None  # which `DAG.test` of Airflow 3.3 cannot do
        for one in dag.task_dict.values():
            one.retry_delay, one.retry_exponential_backoff = timedelta(0), 0
    return found


@pytest.fixture
def lake(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The lake that tasks find by their environment, and some queries; a test that runs tasks on it needs `spark`."""
    for name, text in QUERIES.items():
        file = tmp_path / "queries" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, value in environment(config, tmp_path).items():
        monkeypatch.setenv(name, value)
    return Config.from_environment()


def environment(config: Config, home: Path) -> dict[str, str]:
    """How tasks find a lake."""
    return {
        "TRENDS_LAKE": config.lake,
        "TRENDS_LANDING": config.landing,
        "TRENDS_SPARK": config.master,
        "TRENDS_SPARK_CONF": "\n".join(f"{key}={value}" for key, value in SMALL.items()),
        "TRENDS_QUERIES": str(home / "queries"),
        "TRENDS_SITE": str(home / "site"),
    }


@pytest.fixture
def night(bag: DagBag, lake: Config) -> Night:
    """Runs a DAG for the interval of a day, in this process."""
    from airflow.models.dagrun import DagRun as Stored
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def run(dag_id: str, day: date, **said: Any) -> DagRun:
        # A run of the same night would be done again, with what was said to it the first time.
        with create_session() as session:
            for before in session.scalars(select(Stored).where(Stored.dag_id == dag_id)):
                session.delete(before)
        ends = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        found: DagRun = bag.dags[dag_id].test(logical_date=ends, run_conf=said)
        return found

    return run


def states(run: DagRun) -> dict[str, str]:
    """The states of a run's tasks; mapped ones by their names, or by their numbers where they never began."""
    return {
        f"{ti.task_id} {ti.rendered_map_index or ti.map_index}" if ti.map_index >= 0 else ti.task_id: str(ti.state)
        for ti in run.get_task_instances()
    }


def cleared(bag: DagBag, run: DagRun, *tasks: str | tuple[str, int]) -> DagRun:
    """The run again, after these tasks alone were cleared in it: what a scheduler would do."""
    from airflow.sdk.definitions.dag import _run_task
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, TaskInstanceState

    dag = bag.dags[run.dag_id]
    scheduled = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    with create_session() as session:
        scheduled.clear(run_id=run.run_id, task_ids=tasks, session=session)
    with create_session() as session:
        found: DagRun = session.merge(run)
        session.refresh(found)
        found.dag, found.state = scheduled, DagRunState.RUNNING
        while found.state == DagRunState.RUNNING:
            session.expire_all()
            found.dag = scheduled
            ready, _ = found.update_state(session=session)
            for ti in ready:
                ti.try_number += 1
                ti.state = TaskInstanceState.SCHEDULED
            session.commit()
            for ti in ready:
                _run_task(ti=ti, task=dag.task_dict[ti.task_id], run_triggerer=True)
        states(found)
    return found
