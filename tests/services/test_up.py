"""Airflow, Postgres and Spark as `make up` starts them: a scheduled run, a browser."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import psutil
import pytest

from pipeline.cli import main
from pipeline.datasets import DATASETS
from pipeline.services import postgres, secrets_file
from pipeline.services.airflow import POOL, Rest, found_dags, slots
from pipeline.services.down import left
from pipeline.services.place import Place, State
from pipeline.services.ports import free_port
from pipeline.services.processes import tree
from tests.conftest import SMALL
from tests.small_lake import QUERIES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# One Airflow for all of them.
pytestmark = pytest.mark.xdist_group("services")

ROOT = Path(__file__).parents[2]
INGEST, TRENDS, NIGHTLY = "ingest_stock", "trends_stock", "daily_count"
OTHERS = ("compare_engines.py", "digest.py", "maintain_lake.py", "revise_late.py")
DAGS = 2 * len(DATASETS) + 2
PATIENCE = 600.0


@dataclass(frozen=True)
class Up:
    """What was started."""

    place: Place
    state: State
    rest: Rest
    printed: str

    @property
    def password(self) -> str:
        return self.place.secrets()[secrets_file.ADMIN_PASSWORD]

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
    """A project with its ingest and trends DAGs and two small ones, up; afterwards down, with nothing left."""
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "dags", project / "dags", ignore=shutil.ignore_patterns(*OTHERS, "__pycache__"))
    shutil.copytree(Path(__file__).with_name("dags"), project / "dags", dirs_exist_ok=True)
    query = project / "queries" / "stock" / "falling.query"
    query.parent.mkdir(parents=True)
    query.write_text(QUERIES["stock/falling.query"])
    place = Place(project)
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
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
            yield Up(place, state, Rest(state.url, password), printed.stdout)
        finally:
            everything = tree(state.services if (state := place.state()) else ())
            assert main(["down"]) == 0
            assert left(place) == 0
            assert not [process for process in everything if process.is_running()]


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
    wait("the DAGs", lambda: len(found_dags(up.rest)[0]) == DAGS)
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
    assert not [name for name, secret in up.place.secrets().items() if secret in logs]

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
    """Without anybody's asking: the last night that has ended, with Spark by its connection."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    wait("the scheduled run", lambda: up.states(NIGHTLY, "scheduled").get(str(yesterday)) == "success")
    assert (up.place.project / "counted" / str(yesterday)).read_text() == str(yesterday.day)


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
    run = up.rest.call("POST", f"/dags/{NIGHTLY}/dagRuns", {"logical_date": "2026-02-01T00:00:00Z"})["dag_run_id"]
    page = browser.new_page()
    page.goto(up.state.url)
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(up.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{up.state.url}/", timeout=60_000)
    page.goto(f"{up.state.url}/dags/{NIGHTLY}/runs")
    page.get_by_text(run).first.wait_for(timeout=60_000)


def test_a_task_that_runs_ends_with_the_rest(up: Up) -> None:
    """The last one: its task is stopped by the fixture's end, which looks for processes that are left."""
    up.rest.call("POST", "/dags/endless/dagRuns", {"logical_date": None})
    file = up.place.project / "child"
    wait("the task", file.exists)
    child = psutil.Process(int(file.read_text()))
    assert os.getsid(child.pid) == child.pid
    assert child in tree(up.state.services)
