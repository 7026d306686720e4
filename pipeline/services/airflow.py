"""Airflow's processes: their settings, their commands, and what they say over REST. Airflow itself is not imported."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from pipeline.services import secrets_file
from pipeline.services.ports import LOOPBACK

ADMIN = "admin"
POOL = "trends_spark"
CONNECTION = "trends_spark"
# What follows `python -m`.
COMPONENTS = {
    "api-server": ("airflow", "api-server"),
    # Their log servers would listen on every interface; the api-server reads the same folder.
    "scheduler": ("pipeline.services.scheduler", "--skip-serve-logs"),
    "dag-processor": ("airflow", "dag-processor"),
    "triggerer": ("airflow", "triggerer", "--skip-serve-logs"),
}
# The names that Airflow's health page has for the components beside the api-server, which serves the page.
HEALTH = ("metadatabase", "scheduler", "dag_processor", "triggerer")


def settings(home: Path, dags: Path, port: int, secrets: Mapping[str, str]) -> dict[str, str]:
    """Airflow's settings but for its database, as environment variables."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        # Each is a process of its own from the start: the Spark slots, and a few for tasks that need none.
        "AIRFLOW__CORE__PARALLELISM": str(slots() + 2),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__FERNET_KEY": secrets[secrets_file.FERNET_KEY],
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://{LOOPBACK}:{port}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets[secrets_file.SESSION_KEY],
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets[secrets_file.JWT_SECRET],
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs" / "tasks"),
    }


def slots() -> int:
    """How many Spark jobs may run at once: `TRENDS_SPARK_SLOTS`, or as many as there are cores."""
    return int(os.environ.get("TRENDS_SPARK_SLOTS") or os.cpu_count() or 1)


def component(name: str) -> list[str]:
    """The command of a component, by the Python that runs this one."""
    return [sys.executable, "-m", *COMPONENTS[name]]


def migrate() -> list[str]:
    """The command that makes Airflow's tables, or brings them to its version."""
    return [sys.executable, "-m", "airflow", "db", "migrate"]


def make_pool() -> list[str]:
    """The command that makes the pool of Spark jobs, or changes its size."""
    return [sys.executable, "-m", "airflow", "pools", "set", POOL, str(slots()), "Spark jobs at once"]


def write_password(home: Path, password: str) -> None:
    """Give Airflow its password before it generates one, prints it into a log, and keeps it where all can read it."""
    file = home / "passwords.json"
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text(json.dumps({ADMIN: password}) + "\n")


class Rest:
    """Airflow's REST interface at one address.

    A proxy of the environment is not for this machine, so none is used.
    """

    def __init__(self, url: str, password: str) -> None:
        self.url, self._password, self._token = url, password, ""
        self._open = build_opener(ProxyHandler({})).open

    def health(self) -> dict[str, str]:
        """The state of each component; empty while the api-server does not answer."""
        try:
            with self._open(f"{self.url}/api/v2/monitor/health", timeout=20) as answer:
                found = json.load(answer)
        except (OSError, ValueError):
            return {}
        return {name: str((found.get(name) or {}).get("status")) for name in HEALTH}

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One call below `/api/v2`; raises `HTTPError`."""
        if not self._token:
            login = {"username": ADMIN, "password": self._password}
            self._token = self._send("POST", "/auth/token", login, {})["access_token"]
        return self._send(method, f"/api/v2{path}", body, {"Authorization": f"Bearer {self._token}"})

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json", **headers}, method=method)
        with self._open(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def found_dags(rest: Rest, since: str = "") -> tuple[list[str], dict[str, str]]:
    """The DAGs that Airflow has read since a time; the files that it could not read, with the end of each message."""
    try:
        dags = rest.call("GET", "/dags?limit=1000")["dags"]
        errors = rest.call("GET", "/importErrors?limit=100")["import_errors"]
    except (OSError, HTTPError):
        return [], {}
    return (
        [str(dag["dag_id"]) for dag in dags if str(dag["last_parsed_time"]) >= since],
        {
            str(error["filename"]): str(error["stack_trace"]).strip().splitlines()[-1]
            for error in errors
            if str(error["timestamp"]) >= since
        },
    )
