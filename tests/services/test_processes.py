"""Processes are found again by number and start, or by their mark; strangers are never touched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pipeline.services.down import left, stop_all
from pipeline.services.place import Place, State
from pipeline.services.processes import last_lines, log_of, start, strays, tree

# Ends on TERM only; its child has a session of its own and outlives it.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "dags").mkdir()
    place = Place(tmp_path)
    place.make()
    return place


@pytest.fixture
def stranger() -> Iterator[psutil.Process]:
    """A process that nobody of ours started."""
    process = subprocess.Popen(["sleep", "600"])
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def child_of(place: Place, name: str) -> psutil.Process:
    end = time.monotonic() + 30
    while not (text := log_of(place.home, name).read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return psutil.Process(int(text))


def test_all_that_was_started_ends(place: Place, stranger: psutil.Process) -> None:
    service = start("scheduler", [sys.executable, "-c", PARENT], os.environ, place.home, place.project)
    place.keep(State(1, services=(service,)))
    child = child_of(place, "scheduler")
    assert {process.pid for process in tree([service])} == {service.pid, child.pid}

    assert stop_all(place, lambda _: None) == 2
    assert service.process() is None
    assert not child.is_running()
    assert (left(place), place.state()) == (0, None)
    assert stranger.is_running()


def test_a_child_is_found_after_its_parent_and_the_state_are_gone(place: Place) -> None:
    service = start("scheduler", [sys.executable, "-c", PARENT], os.environ, place.home, place.project)
    child = child_of(place, "scheduler")
    psutil.Process(service.pid).kill()
    psutil.wait_procs([psutil.Process(service.pid)], timeout=5)
    assert strays(place.home) == {child}
    stop_all(place, lambda _: None)
    assert not child.is_running()


def test_a_number_that_belongs_to_a_stranger_by_now(place: Place, stranger: psutil.Process) -> None:
    service = start("postgres", ["true"], os.environ, place.home, place.project)
    place.keep(State(1, services=(replace(service, pid=stranger.pid, started=stranger.create_time() - 3600),)))
    assert stop_all(place, lambda _: None) == 0
    assert stranger.is_running()


def test_processes_of_another_folder_are_strangers(place: Place, tmp_path: Path) -> None:
    other = Place(tmp_path / "other")
    other.dags.mkdir(parents=True)
    other.make()
    service = start("scheduler", ["sleep", "600"], os.environ, other.home, other.project)
    assert stop_all(place, lambda _: None) == 0
    assert service.process() is not None
    other.keep(State(1, services=(service,)))
    assert stop_all(other, lambda _: None) == 1


def test_a_state_that_cannot_be_read(place: Place) -> None:
    service = start("spark", ["sleep", "600"], os.environ, place.home, place.project)
    (place.home / "state.json").write_text('{"port": 8080, "serv')
    assert stop_all(place, lambda _: None) == 1
    assert service.process() is None


def test_an_earlier_log_is_kept(place: Place) -> None:
    for text in ("first", "second"):
        service = start("postgres", ["echo", text], os.environ, place.home, place.project)
        end = time.monotonic() + 30
        while service.process() is not None and time.monotonic() < end:
            time.sleep(0.05)
    assert last_lines(log_of(place.home, "postgres")) == ["  second"]
    assert last_lines(log_of(place.home, "postgres.previous")) == ["  first"]
