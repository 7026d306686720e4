"""Airflow, Postgres and Spark as `make up` starts them: a scheduled night, a backfill, a deadline, a browser."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import psutil
import pytest

from pipeline import arrow_tables, days, delta, nights
from pipeline.answers import answer_interval
from pipeline.cli import main
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.intervals import COMPLETE
from pipeline.publish import gold
from pipeline.quality.report import Report
from pipeline.services import postgres, secrets_file
from pipeline.services.airflow import POOL, Rest, found_dags, slots
from pipeline.services.down import left
from pipeline.services.place import Place, State
from pipeline.services.ports import free_port
from pipeline.services.processes import tree
from pipeline.spark import session
from pipeline.tables import OPS_INTERVALS, Table, gold_history, quarantine, silver
from tests.conftest import CONNECT_MODE, SMALL
from tests.landing import land
from tests.small_lake import QUERIES, STAMPS, leave_checks_out
from tests.webhook import webhook

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

# One Airflow for all of them.
pytestmark = pytest.mark.xdist_group("services")

ROOT = Path(__file__).parents[2]
INGEST, TRENDS, NIGHTLY = "ingest_stock", "trends_stock", "ingest_activity"
IDLE = ("ingest_taxi", "trends_taxi", "trends_activity")  # without files they would only take time
OTHERS = ("compare_engines.py", "digest.py", "maintain_lake.py", "revise_late.py")
DAGS = 2 * len(DATASETS) + 1
STOCK, ACTIVITY = DATASETS["stock"], DATASETS["activity"]
MONDAY = date(2024, 1, 8)
WEEK = [MONDAY + timedelta(days=number) for number in range(5)]
LAST_NIGHT = datetime.now(UTC).date() - timedelta(days=2)  # the last whose files are due at any hour of today
PATIENCE = 1200.0  # on a machine with much else to do


@dataclass(frozen=True)
class Up:
    """What was started."""

    place: Place
    state: State
    rest: Rest
    printed: str
    posted: list[dict[str, Any]]  # to the webhook

    @property
    def password(self) -> str:
        return self.place.secrets()[secrets_file.ADMIN_PASSWORD]

    @property
    def config(self) -> Config:
        """What tasks work on."""
        home = self.place.project
        return Config(str(home / "lake"), str(home / "landing"), self.state.spark, queries=str(home / "queries"))

    def states(self, dag: str, kind: str) -> dict[str, str]:
        """The state of each run of a kind, by the day that its interval starts."""
        runs = self.rest.call("GET", f"/dags/{dag}/dagRuns?limit=100&run_type={kind}")["dag_runs"]
        return {str(run["data_interval_start"])[:10]: run["state"] for run in runs}


def wait(what: str, ready: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(1)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A project with its ingest and trends DAGs and some files, up; afterwards down, with nothing left."""
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "dags", project / "dags", ignore=shutil.ignore_patterns(*OTHERS, "__pycache__"))
    shutil.copytree(Path(__file__).with_name("dags"), project / "dags", dirs_exist_ok=True)
    query = project / "queries" / "stock" / "falling.query"
    query.parent.mkdir(parents=True)
    query.write_text(QUERIES["stock/falling.query"])
    landing = Config(str(project / "lake"), str(project / "landing"))
    land(landing, STOCK, WEEK)
    land(landing, ACTIVITY, [LAST_NIGHT])
    place = Place(project)
    port = free_port()
    with pytest.MonkeyPatch.context() as patch, webhook() as (address, posted):
        patch.chdir(project)
        patch.setenv("TRENDS_START", str(LAST_NIGHT))
        patch.setenv("TRENDS_WEBHOOK", address)
        patch.setenv("TRENDS_SPARK", "local[2]")
        patch.setenv("TRENDS_SPARK_CONF", "\n".join(f"{key}={value}" for key, value in SMALL.items()))
        try:
            printed = subprocess.run(
                [sys.executable, "-m", "pipeline.cli", "up", "--port", str(port)], capture_output=True, text=True
            )
            assert printed.returncode == 0, printed.stderr
            state = place.state()
            assert state is not None
            password = place.secrets()[secrets_file.ADMIN_PASSWORD]
            rest = Rest(state.url, password)
            wait("the DAGs", lambda: len(found_dags(rest)[0]) == DAGS)
            for dag in IDLE:
                rest.call("PATCH", f"/dags/{dag}", {"is_paused": True})
            yield Up(place, state, rest, printed.stdout, posted)
        finally:
            everything = tree(state.services if (state := place.state()) else ())
            assert main(["down"]) == 0
            assert left(place) == 0
            assert not [process for process in everything if process.is_running()]


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one worker")
def test_one_worker_has_them_all(request: pytest.FixtureRequest) -> None:
    """Or else each has an Airflow of its own: some versions of pytest and xdist do not fit, and say nothing."""
    assert request.node.nodeid.endswith("@services")


def test_it_says_what_it_does_and_where_to_look(up: Up) -> None:
    for name in ("Postgres", "Airflow", "Spark", "report site"):
        assert f"{name:<14} … ready" in up.printed
    assert f"Airflow is at {up.state.url}" in up.printed
    assert f"password {up.password} " in up.printed
    assert f"logs are in {up.place.home / 'logs'}" in up.printed


def test_up_twice(up: Up, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(up.place.project)
    assert main(["up", "--port", str(free_port())]) == 0
    out = capsys.readouterr().out
    assert "it is up already" in out
    assert up.state.url in out
    assert up.password not in out  # printed once
    assert up.place.state() == up.state


def test_status(up: Up, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(up.place.project)
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1] for line in out.splitlines()[2:9]}
    running = dict.fromkeys(("postgres", "spark", "api-server", "site"), "runs")
    assert lines == running | dict.fromkeys(("scheduler", "dag-processor", "triggerer"), "healthy")
    assert f"{DAGS} DAGs" in out


def connections(process: psutil.Process) -> list[Any]:
    """Those of a process, if it still runs: Airflow's come and go."""
    try:
        return list(process.net_connections("inet"))
    except psutil.NoSuchProcess:
        return []


def test_only_this_machine_and_its_owner_get_in(up: Up) -> None:
    listening = {
        connection.laddr.ip
        for process in tree(up.state.services)
        for connection in connections(process)
        if connection.status == psutil.CONN_LISTEN
    }
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}

    assert stat.S_IMODE(up.place.home.stat().st_mode) == 0o700
    for name in ("secrets", "passwords.json"):
        assert stat.S_IMODE((up.place.home / name).stat().st_mode) == 0o600
    logs = "".join(file.read_text("utf-8", "replace") for file in (up.place.home / "logs").glob("*.log"))
    secrets = up.place.secrets()
    assert not [name for name in secrets_file.SECRETS if secrets[name] in logs]

    with pytest.raises(HTTPError) as refused:
        Rest(up.state.url, "wrong").call("GET", "/dags")
    assert refused.value.code == 401
    (command,) = (psutil.Process(s.pid).cmdline() for s in up.state.services if s.name == "postgres")
    assert not postgres.answers(int(command[command.index("-p") + 1]), "wrong")


def test_spark_wants_its_token(up: Up) -> None:
    program = "import sys; from pipeline.config import Config; from pipeline.spark import session\n"
    program += "print(session(Config(master=sys.argv[1])).range(3).count())"

    def count(**environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, up.state.spark]
        return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)

    token = up.place.secrets()[secrets_file.SPARK_TOKEN]
    assert count(SPARK_CONNECT_AUTHENTICATE_TOKEN=token).stdout == "3\n"
    assert "is no working server" in count().stderr


def test_the_pool_has_a_slot_a_core(up: Up) -> None:
    assert up.rest.call("GET", f"/pools/{POOL}")["slots"] == slots()


def test_a_scheduled_night(up: Up) -> None:
    """Without anybody's asking: every night from TRENDS_START on, with Spark by its connection."""
    wait("the scheduled run", lambda: up.states(NIGHTLY, "scheduled").get(str(LAST_NIGHT)) == "success")
    (row,) = intervals(up.config, ACTIVITY)
    assert (row["landing_date"], row["status"]) == (LAST_NIGHT, COMPLETE)
    assert row["events"] > 0


def intervals(config: Config, dataset: Dataset) -> list[dict[str, Any]]:
    names = ("landing_date", "status", "events")
    found = arrow_tables.rows(config, OPS_INTERVALS, names, dataset=dataset.name)
    return sorted((row for row in found if row["status"] == COMPLETE), key=lambda row: row["landing_date"])


@pytest.fixture
def own(up: Up, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[SparkSession, Config]]:
    """A lake of the test's own, and a session at the same server; without checks."""
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", up.place.secrets()[secrets_file.SPARK_TOKEN])
    leave_checks_out(monkeypatch)
    monkeypatch.setattr(days, "check", lambda *_, **__: Report(()))
    config = replace(up.config, lake=str(tmp_path / "lake"))
    spark = session(config)
    try:
        yield spark, config
    finally:
        spark.stop()
        os.environ.pop(CONNECT_MODE, None)


def test_a_backfill_of_five_days(up: Up, own: tuple[SparkSession, Config]) -> None:
    """All at once, backwards, before TRENDS_START, and answers asked for before their events: as nights in order."""
    for dag in (TRENDS, INGEST):
        ends = {"from_date": f"{WEEK[0]}T00:00:00Z", "to_date": f"{WEEK[-1]}T00:00:00Z"}
        how = {"max_active_runs": len(WEEK), "run_backwards": True, "reprocess_behavior": "none"}
        up.rest.call("POST", "/backfills", {"dag_id": dag, "dag_run_conf": {}, **ends, **how})

    spark, expected = own
    question = nights.question(expected, STOCK, "falling")
    days.prepare(spark, expected, STOCK)
    gold.prepare(spark, expected, [question])
    for day in WEEK:
        days.process_day(spark, expected, STOCK, day, "in order")
        answer_interval(spark, expected, [question], day, "in order")

    def done(dag: str) -> bool:
        states = up.states(dag, "backfill")
        assert "failed" not in states.values(), states
        return states == dict.fromkeys(map(str, WEEK), "success")

    for dag in (INGEST, TRENDS):
        wait(f"the backfill of {dag}", partial(done, dag))
    for table in (silver(STOCK), quarantine(STOCK), question.table, gold_history(question.table)):
        found = contents(spark, up.config, table)
        assert found == contents(spark, expected, table), table.full_name
        assert found or table.layer == "quarantine" or table.name.endswith("_history")
    assert [row["landing_date"] for row in intervals(up.config, STOCK)] == WEEK


def contents(spark: SparkSession, config: Config, table: Table) -> list[str]:
    """All rows, but for who wrote them and when."""
    stamps = {*STAMPS, "arrived_at", "silver_version"}
    return sorted(str(row) for row in delta.read(spark, config, table).drop(*stamps).collect())


def test_a_backfill_does_not_keep_tonight_back(up: Up) -> None:
    """By the weights that the scheduler gave their tasks."""
    weights: dict[str, set[int]] = {}
    for kind in ("scheduled", "backfill"):
        runs = up.rest.call("GET", f"/dags/{TRENDS}/dagRuns?limit=100&run_type={kind}")["dag_runs"]
        for run in runs:
            tasks = up.rest.call("GET", f"/dags/{TRENDS}/dagRuns/{run['dag_run_id']}/taskInstances")["task_instances"]
            weights.setdefault(kind, set()).update(task["priority_weight"] for task in tasks)
    assert min(weights["scheduled"]) > max(weights["backfill"])


def test_every_task_has_a_pool_that_is_there(up: Up) -> None:
    pools = {pool["name"] for pool in up.rest.call("GET", "/pools")["pools"]}
    used = {
        task["pool"]
        for dag in (INGEST, TRENDS)
        for task in up.rest.call("GET", f"/dags/{dag}/tasks")["tasks"]
        if task["pool"]
    }
    assert POOL in used
    assert used <= pools


def test_the_pages_in_a_browser(up: Up, browser: Browser) -> None:
    (run,) = (
        run["dag_run_id"]
        for run in up.rest.call("GET", f"/dags/{NIGHTLY}/dagRuns?limit=100")["dag_runs"]
        if str(run["data_interval_start"]).startswith(str(LAST_NIGHT))
    )
    page = browser.new_page()
    page.goto(up.state.url)
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(up.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{up.state.url}/", timeout=60_000)
    page.goto(f"{up.state.url}/dags/{NIGHTLY}/runs")
    page.get_by_text(run).first.wait_for(timeout=60_000)
    page.goto(f"{up.state.url}/dags/{NIGHTLY}/runs/{run}")
    for task in ("landing", "bronze", "silver", "quality"):
        page.get_by_text(task, exact=True).first.wait_for(timeout=60_000)


def test_a_missed_deadline_is_told(up: Up) -> None:
    run = up.rest.call("POST", "/dags/endless/dagRuns", {"logical_date": None})["dag_run_id"]

    def told() -> list[dict[str, Any]]:
        return [one for one in up.posted if one["kind"] == "deadline missed"]

    wait("the deadline", lambda: bool(told()))
    (one,) = told()
    assert (one["dag"], one["run"]) == ("endless", run)
    assert one["text"] == f"endless {run} is late: not done a second after it was queued"


def test_a_task_that_runs_ends_with_the_rest(up: Up) -> None:
    """The last one: its task is stopped by the fixture's end, which looks for processes that are left."""
    file = up.place.project / "child"
    wait("the task", file.exists)
    child = psutil.Process(int(file.read_text()))
    assert os.getsid(child.pid) == child.pid
    assert child in tree(up.state.services)
