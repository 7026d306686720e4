"""The commands over the services: up, down, status."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.commands import Add

if TYPE_CHECKING:
    from pipeline.services.place import Place

PORT = 8080


def register(add: Add) -> None:
    """Add the commands to the parser."""
    up = add("up", help="start Airflow, its database and Spark on this machine")
    up.add_argument("--port", type=int, default=PORT, metavar="N", help=f"of Airflow's pages (default: {PORT})")
    up.set_defaults(command=_up)
    down = add("down", help="stop them, and the tasks that run")
    down.set_defaults(command=_down)
    status = add("status", help="say what of them runs, how it is, and what it takes")
    status.set_defaults(command=_status)


def _up(options: argparse.Namespace) -> int:
    from pipeline.services import secrets_file
    from pipeline.services.up import up

    place = _place()
    new = not (place.home / "secrets").exists()
    print(f"starting in {place.home}")
    state = up(place, options.port, _say)
    file = place.home / "secrets"
    password = place.secrets()[secrets_file.ADMIN_PASSWORD] if new else "as before"
    print(f"Airflow is at {state.url}")
    print(f"  log in as admin, password {password} (kept in {file} as {secrets_file.ADMIN_PASSWORD})")
    print(f"  reports are at {state.site}, Spark's pages at {state.spark_pages or state.spark}")
    print(f"  logs are in {place.home / 'logs'}; make status says what runs, make down stops it")
    return 0


def _down(_: argparse.Namespace) -> int:
    from pipeline.errors import SetupError
    from pipeline.services.down import left, stop_all

    place = _place()
    place.make()  # also where the folder was removed under running services: they are found by their mark
    with place.alone():
        stopped = stop_all(place, _say)
        if still := left(place):
            raise SetupError(f"{still} processes do not end\nhint: make down once more")
    print(f"{stopped} processes stopped, none is left" if stopped else "nothing was running")
    return 0


def _status(_: argparse.Namespace) -> int:
    from pipeline.output import aligned
    from pipeline.services import secrets_file
    from pipeline.services.airflow import Rest, found_dags
    from pipeline.services.processes import memory, tree

    place = _place()
    state = place.state()
    if state is None:
        print("nothing is running\nhint: make up")
        return 0
    rest = Rest(state.url, place.secrets()[secrets_file.ADMIN_PASSWORD])
    health = {name.replace("_", "-"): found for name, found in rest.health().items()}
    rows, missing = [], False
    for service in state.services:
        processes = tree([service])
        missing |= not processes
        size = f"{sum(map(memory, processes)) / 2**20:,.0f} MB"
        how = health.get(service.name, "runs") if processes else "ended"
        rows.append([service.name, how, str(service.pid), str(len(processes)), size])
    for line in aligned(["service", "state", "pid", "processes", "memory"], rows, {2, 3, 4}):
        print(line)
    dags, errors = found_dags(rest)
    print(f"\nAirflow: {state.url}, {len(dags)} DAGs" + (f", {len(errors)} files with errors" if errors else ""))
    for file, message in errors.items():
        print(f"  {file}: {message}")
    print(f"reports: {state.site}")
    print(f"Spark:   {state.spark}" + (f", its pages: {state.spark_pages}" if state.spark_pages else ""))
    print(f"logs:    {place.home / 'logs'}")
    return 2 if missing else 0


def _place() -> Place:
    from pipeline.services.place import Place

    return Place(Path.cwd())


def _say(text: str) -> None:
    print(text, end="", flush=True)
