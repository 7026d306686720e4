"""A start that cannot succeed says why, and leaves nothing running."""

from __future__ import annotations

import socket
from pathlib import Path

import psutil
import pytest

from pipeline.errors import SetupError
from pipeline.services.commands import PORT
from pipeline.services.down import left
from pipeline.services.place import Place, State
from pipeline.services.ports import free_port
from pipeline.services.processes import Service
from pipeline.services.up import up


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "dags").mkdir()
    return Place(tmp_path)


def broken(place: Place) -> Place:
    """Data of a Postgres that is not the one installed."""
    place.make()
    (place.home / "postgres").mkdir(mode=0o700)
    (place.home / "postgres" / "PG_VERSION").write_text("9\n")
    return place


def test_outside_a_project(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"dags is missing\nhint: run this in the project's folder"):
        up(Place(tmp_path), PORT, print)
    assert not [*tmp_path.iterdir()]


def test_a_port_that_is_taken(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} is taken by another program\nhint: make up PORT={port + 1}"):
            up(place, port, print)
    assert (left(place), place.state()) == (0, None)


def test_a_service_that_ends(place: Place) -> None:
    said: list[str] = []
    with pytest.raises(SetupError) as failed:
        up(broken(place), free_port(), said.append)
    lines = str(failed.value).splitlines()
    assert lines[0] == "postgres ended while it was starting"
    assert any("postgresql.conf" in line for line in lines[1:-1])
    assert lines[-1] == f"hint: more is in {place.home / 'logs' / 'postgres.log'}"
    assert said[:2] == ["  Postgres       … ", "failed\n"]
    assert (left(place), place.state()) == (0, None)


def test_what_a_crash_has_left_is_no_obstacle(place: Place) -> None:
    """The machine went down: the numbers of the processes are those of others by now."""
    place.make()
    me = psutil.Process()
    place.keep(State(PORT, services=(Service("postgres", me.pid, me.create_time() - 86400),)))
    said: list[str] = []
    with pytest.raises(SetupError, match="ended while it was starting"):
        up(broken(place), free_port(), said.append)
    assert said[0].strip() == "an earlier start was not stopped: what is left of it is stopped now"


def test_one_at_a_time(place: Place) -> None:
    place.make()
    with place.alone(), pytest.raises(SetupError, match="another up or down is at work there"):
        up(place, free_port(), print)
