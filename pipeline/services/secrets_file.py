"""What is an installation's own: its secrets and its first night, in a file of `NAME=value` lines for its owner alone.

Each is generated once, and kept.

`python -m pipeline.services.secrets_file .env` makes the one that `docker-compose.yml` reads.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

ADMIN_PASSWORD = "AIRFLOW_ADMIN_PASSWORD"
FERNET_KEY = "AIRFLOW_FERNET_KEY"
JWT_SECRET = "AIRFLOW_JWT_SECRET"
SESSION_KEY = "AIRFLOW_SESSION_KEY"
POSTGRES_PASSWORD = "POSTGRES_PASSWORD"
SPARK_TOKEN = "SPARK_CONNECT_TOKEN"
SECRETS = (ADMIN_PASSWORD, FERNET_KEY, JWT_SECRET, SESSION_KEY, POSTGRES_PASSWORD, SPARK_TOKEN)
# From here on, Airflow makes up for nights that an outage left out; told of none, it takes the last alone.
FIRST_NIGHT = "TRENDS_START"
NAMES = (*SECRETS, FIRST_NIGHT)
# Spark takes a token over a network with TLS only; there the services' own network keeps others out.
COMPOSE = tuple(name for name in NAMES if name != SPARK_TOKEN)


def load(file: Path, names: Sequence[str] = NAMES) -> dict[str, str]:
    """The values in the file, which gets those of `names` that it lacks; whatever else is in it stays."""
    found = _values(file.read_text("utf-8")) if file.exists() else {}
    missing = {name: _new(name) for name in names if not found.get(name)}
    if missing:
        text = file.read_text("utf-8") if file.exists() else ""
        kept = [line for line in text.splitlines() if line.partition("=")[0].strip() not in missing]
        _write(file, "\n".join([*kept, *(f"{name}={value}" for name, value in missing.items()), ""]))
    file.chmod(0o600)
    return found | missing


def _values(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _new(name: str) -> str:
    if name == FERNET_KEY:  # 32 bytes in the alphabet of Fernet
        return base64.urlsafe_b64encode(os.urandom(32)).decode()
    if name == FIRST_NIGHT:
        return str(datetime.now(UTC).date() - timedelta(days=1))
    return secrets.token_urlsafe(12 if name == ADMIN_PASSWORD else 32)


def _write(file: Path, text: str) -> None:
    """Whole or not at all, and never readable by others."""
    new = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    new.replace(file)


def main(arguments: list[str]) -> int:
    """Make the file, or complete it, and say so."""
    file = Path(arguments[0])
    before = _values(file.read_text("utf-8")) if file.exists() else {}
    made = [name for name in load(file, COMPOSE) if not before.get(name)]
    print(f"{file}: {'generated ' + ', '.join(made) if made else 'has everything already'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
