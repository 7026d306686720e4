"""Start the services in the order in which they need each other: all are ready afterwards, or none is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from pipeline.config import Config
from pipeline.errors import SetupError
from pipeline.services import airflow, postgres, secrets_file
from pipeline.services.down import stop_all
from pipeline.services.place import Place, State
from pipeline.services.ports import LOOPBACK, free_port, listens
from pipeline.services.processes import Service, last_lines, log_of, marked, start
from pipeline.services.secrets_file import FIRST_NIGHT
from pipeline.spark import address

PATIENCE = 300.0  # seconds that a service may take to get ready; a busy machine takes ten times those of an idle one
DAGS_PATIENCE = 60.0
Say = Callable[[str], None]


class _Start:
    """One start: what runs so far, and what is said of it."""

    def __init__(self, place: Place, port: int, say: Say) -> None:
        self.place, self.say = place, say
        self.began = datetime.now(UTC).isoformat()
        self.secrets = place.secrets()
        self.config = Config.from_environment()
        remote = self.config.remote
        self.state = State(
            port,
            # Spark takes a token without TLS by this name of the machine alone.
            spark=self.config.master if remote else f"sc://localhost:{free_port()}",
            spark_pages="" if remote else f"http://{LOOPBACK}:{free_port()}",
            site=f"http://{LOOPBACK}:{free_port()}",
        )
        self.database_port = free_port()
        self.rest = airflow.Rest(self.state.url, self.secrets[secrets_file.ADMIN_PASSWORD])

    def environment(self) -> dict[str, str]:
        """That of every process here, and so of every task."""
        local = f"{LOOPBACK},localhost"
        proxied = {name: f"{os.environ[name]},{local}" for name in ("NO_PROXY", "no_proxy") if name in os.environ}
        return {
            **os.environ,
            "NO_PROXY": local,
            **proxied,
            # DAG files import what they share as dags.…
            "PYTHONPATH": os.pathsep.join(filter(None, (str(self.place.project), os.environ.get("PYTHONPATH")))),
            **airflow.settings(self.place.home, self.place.dags, self.state.port, self.secrets),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgres.url(
                self.database_port, self.secrets[secrets_file.POSTGRES_PASSWORD]
            ),
            f"AIRFLOW_CONN_{airflow.CONNECTION.upper()}": self.state.spark,
            FIRST_NIGHT: os.environ.get(FIRST_NIGHT) or self.secrets[FIRST_NIGHT],
            # A browser follows no link from Airflow's pages to a file.
            "TRENDS_SITE_URL": self.state.site,
            "TRENDS_SPARK_UI": self.state.spark_pages,
            **({} if self.config.remote else self._own_spark()),
        }

    def _own_spark(self) -> dict[str, str]:
        return {
            # They are the server's, which tasks may not set again.
            "TRENDS_SPARK_CONF": "",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": self.secrets[secrets_file.SPARK_TOKEN],
            "SPARK_LOCAL_DIRS": str(self.place.home / "spark"),
        }

    def start(self, name: str, command: list[str], environment: dict[str, str]) -> Service:
        """Start a service, and remember it at once: this command may be killed at any time."""
        service = start(name, command, environment, self.place.home, self.place.project)
        self.state = replace(self.state, services=(*self.state.services, service))
        self.place.keep(self.state)
        return service

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Say what is waited for, and how long that took."""
        began = time.monotonic()
        self.say(f"  {name:<14} … ")
        yield
        self.say(f"ready ({time.monotonic() - began:.0f} s)\n")

    def wait(self, services: list[Service], ready: Callable[[], bool]) -> None:
        """Wait until it is ready; a service that ends meanwhile is an error."""
        end = time.monotonic() + PATIENCE
        while not ready():
            for service in services:
                if service.process() is None:
                    raise self._failed(service.name, f"{service.name} ended while it was starting")
            if time.monotonic() > end:
                name = services[-1].name if services else "spark"
                raise self._failed(name, f"{name} was not ready after {PATIENCE:.0f} seconds")
            time.sleep(0.3)

    def run(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        """Run a command to its end."""
        log = log_of(self.place.home, name)
        with log.open("wb") as stream:
            done = subprocess.run(
                command,
                env=environment | marked(self.place.home),
                cwd=self.place.project,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )
        if done.returncode:
            raise self._failed(name, f"airflow {' '.join(command[3:])} failed")

    def _failed(self, name: str, what: str) -> SetupError:
        self.say("failed\n")
        log = log_of(self.place.home, name)
        return SetupError("\n".join([what, *last_lines(log), f"hint: more is in {log}"]))


def up(place: Place, port: int, say: Say) -> State:
    """Start everything, unless it is up; raises a `SetupError`, and leaves no process, where that fails."""
    place.make()
    with place.alone():
        if (running := place.state()) is not None:
            if running.services and all(service.process() for service in running.services):
                say("it is up already\n")
                return running
            say("  an earlier start was not stopped: what is left of it is stopped now\n")
            stop_all(place, lambda _: None)
        if listens(LOOPBACK, port):
            raise SetupError(f"port {port} is taken by another program\nhint: make up PORT={port + 1}")
        starting = _Start(place, port, say)
        try:
            for step in STEPS:
                step(starting)
        except BaseException:
            say("  stopping what was started\n")
            stop_all(place, lambda _: None)
            raise
        return starting.state


def _postgres(at: _Start) -> None:
    data, password = at.place.home / "postgres", at.secrets[secrets_file.POSTGRES_PASSWORD]
    with at.step("Postgres"):
        postgres.prepare(data, password)
        server = at.start("postgres", postgres.command(data, at.database_port), dict(os.environ))
        at.wait([server], lambda: postgres.answers(at.database_port, password))


def _migrate(at: _Start) -> None:
    with at.step("its tables"):
        airflow.write_password(at.place.home, at.secrets[secrets_file.ADMIN_PASSWORD])
        at.run("migrate", airflow.migrate(), at.environment())


def _spark(at: _Start) -> None:
    """A server of our own, unless the user has named one."""
    if not at.config.remote:
        ports = ["--port", _port(at.state.spark), "--ui-port", _port(at.state.spark_pages)]
        conf = {"TRENDS_SPARK_CONF": os.environ.get("TRENDS_SPARK_CONF", "")}
        command = [sys.executable, "-m", "pipeline.services.spark_connect", *ports]
        at.start("spark", command, at.environment() | conf)


def _airflow(at: _Start) -> None:
    """The api-server gets ready while the pool is made; the others come after the pool that their tasks need."""
    with at.step("Airflow"):
        at.start("api-server", airflow.component("api-server"), at.environment())
        at.run("pool", airflow.make_pool(), at.environment())
        for name in airflow.COMPONENTS:
            if name != "api-server":
                at.start(name, airflow.component(name), at.environment())
        services = [service for service in at.state.services if service.name in airflow.COMPONENTS]
        at.wait(services, lambda: {*at.rest.health().values()} == {"healthy"})


def _spark_ready(at: _Start) -> None:
    with at.step("Spark"):
        servers = [service for service in at.state.services if service.name == "spark"]
        host, port = address(Config(master=at.state.spark))
        at.wait(servers, lambda: listens(host, port))


def _site(at: _Start) -> None:
    """The report site, which opens from disk too."""
    folder = at.place.project / "site"
    folder.mkdir(exist_ok=True)
    server = [sys.executable, "-m", "http.server", "--bind", LOOPBACK, "--directory", str(folder)]
    with at.step("report site"):
        service = at.start("site", [*server, _port(at.state.site)], dict(os.environ))
        at.wait([service], lambda: listens(LOOPBACK, int(_port(at.state.site))))


def _dags(at: _Start) -> None:
    """Airflow is up without them: a mistake in one of the files is for its author to mend."""
    end = time.monotonic() + DAGS_PATIENCE
    dags, errors = airflow.found_dags(at.rest, at.began)
    while not dags and not errors and time.monotonic() < end:
        time.sleep(1)
        dags, errors = airflow.found_dags(at.rest, at.began)
    at.say(f"  {'DAGs':<14} … {len(dags)} found\n")
    for file, message in errors.items():
        at.say(f"  {file}: {message}\n")


# Spark gets ready while Airflow does.
STEPS: tuple[Callable[[_Start], None], ...] = (
    _postgres,
    _spark,
    _migrate,
    _airflow,
    _spark_ready,
    _site,
    _dags,
)


def _port(url: str) -> str:
    return url.rpartition(":")[2]
