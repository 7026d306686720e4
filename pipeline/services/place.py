"""The folder of the services, `.airflow` in the project's: what runs, secrets, logs and data."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.errors import SetupError
from pipeline.services import secrets_file
from pipeline.services.processes import Service

NAME = ".airflow"


@dataclass(frozen=True)
class State:
    """What was started, and where it listens."""

    port: int
    spark: str = ""
    spark_pages: str = ""
    site: str = ""
    services: tuple[Service, ...] = ()

    @property
    def url(self) -> str:
        """The address of Airflow's pages."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Place:
    """A project's folder, with `dags` in it."""

    project: Path

    @property
    def home(self) -> Path:
        """The services' own folder."""
        return self.project / NAME

    @property
    def dags(self) -> Path:
        """What Airflow reads."""
        return self.project / "dags"

    def secrets(self) -> dict[str, str]:
        """The secrets, generated on the first call."""
        return secrets_file.load(self.home / "secrets")

    def make(self) -> None:
        """Make the services' folder, for its owner alone."""
        if not self.dags.is_dir():
            raise SetupError(f"{self.dags} is missing\nhint: run this in the project's folder")
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.home.chmod(0o700)

    def state(self) -> State | None:
        """What was started last and not stopped since, though it may have died."""
        try:
            found = json.loads(self._state.read_text("utf-8"))
            services = tuple(Service(**service) for service in found.pop("services"))
            return State(**found, services=services)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            return State(0)  # a disk that was full: what was started is found by its mark

    def keep(self, state: State) -> None:
        """Remember what was started."""
        new = self._state.with_suffix(".new")
        new.write_text(json.dumps(asdict(state), indent=1), "utf-8")
        new.replace(self._state)

    def forget(self) -> None:
        """Nothing is running any more."""
        self._state.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder; the system lets go of it when the command ends, however it ends."""
        with (self.home / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SetupError(
                    f"{self.home}: another up or down is at work there\nhint: wait until it has ended"
                ) from None
            yield

    @property
    def _state(self) -> Path:
        return self.home / "state.json"
