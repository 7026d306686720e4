"""Processes that outlive the command that starts them: found again later, and stopped with all they started."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

# In the environment of every process that is started, and so of all that these start, whatever session they are in.
MARK = "TRENDS_SERVICES"
SAME_START = 2.0  # seconds by which a clock that is set may move a process's start
LAST_LINES = 15


@dataclass(frozen=True)
class Service:
    """A process that was started, and when: its number may belong to a stranger by now."""

    name: str
    pid: int
    started: float

    def process(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            found = psutil.Process(self.pid)
            if abs(found.create_time() - self.started) > SAME_START or found.status() == psutil.STATUS_ZOMBIE:
                return None
        except psutil.NoSuchProcess:
            return None
        return found


def start(name: str, command: Sequence[str], environment: Mapping[str, str], home: Path, cwd: Path) -> Service:
    """Start a process in a session of its own; what it prints goes to `log_of(home, name)`."""
    log = log_of(home, name)
    log.parent.mkdir(exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".previous.log"))
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            env={**environment, **marked(home)},
            cwd=cwd,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
    return Service(name, process.pid, psutil.Process(process.pid).create_time())


def marked(home: Path) -> dict[str, str]:
    """What makes a process one of ours."""
    # Programs that change their title would write it over the environment that others can see.
    return {MARK: str(home), "SPT_NOENV": "1"}


def log_of(home: Path, name: str) -> Path:
    """Where a process prints."""
    return home / "logs" / f"{name}.log"


def last_lines(log: Path) -> list[str]:
    """The end of a log, to be shown with an error."""
    if not log.exists():
        return []
    return [f"  {line.rstrip()}" for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][
        -LAST_LINES:
    ]


def tree(services: Iterable[Service]) -> set[psutil.Process]:
    """The processes that still run, with all their descendants."""
    found: set[psutil.Process] = set()
    for process in filter(None, (service.process() for service in services)):
        found.add(process)
        try:
            found.update(process.children(recursive=True))
        except psutil.NoSuchProcess:
            continue
    return {process for process in found if _runs(process)}


def strays(home: Path) -> set[psutil.Process]:
    """Every process with our mark, also those whose parents are gone."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(home) and _runs(process):
                found.add(process)
        except psutil.Error:
            continue  # another user's, or gone
    return found - {psutil.Process(), *psutil.Process().parents()}


def stop(processes: Iterable[psutil.Process], seconds: float, how: signal.Signals = signal.SIGTERM) -> None:
    """Ask them to end; end those that have not done so in time."""
    processes = list(processes)
    _send(processes, how)
    _, left = psutil.wait_procs(processes, timeout=seconds)
    _send(left, signal.SIGKILL)
    psutil.wait_procs(left, timeout=10)


def memory(process: psutil.Process) -> int:
    """Bytes that a process has for itself, and its share of those that it shares."""
    try:
        found = process.memory_full_info()
        return int(getattr(found, "pss", found.uss))
    except psutil.Error:
        return 0


def _send(processes: Iterable[psutil.Process], how: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(how)  # psutil looks once more whether it is the same process
        except psutil.NoSuchProcess:
            continue


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
