"""Secrets and the first night are generated once; secrets differ everywhere, and are their owner's alone."""

from __future__ import annotations

import base64
import stat
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.services.place import Place
from pipeline.services.secrets_file import FERNET_KEY, FIRST_NIGHT, NAMES, load, main
from pipeline.services.up import _Start


def test_generated_once(tmp_path: Path) -> None:
    made = load(tmp_path / "secrets")
    assert set(made) == set(NAMES)
    assert len(set(made.values())) == len(NAMES)
    assert len(base64.urlsafe_b64decode(made[FERNET_KEY])) == 32
    assert load(tmp_path / "secrets") == made
    assert load(tmp_path / "others") != made
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o600


def test_what_else_is_in_the_file_stays(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# ours\nSPARK_WORKERS=3\nPOSTGRES_PASSWORD=\nAIRFLOW_JWT_SECRET=kept\n")
    assert main([str(file)]) == 0
    lines = file.read_text().splitlines()
    assert lines[:2] == ["# ours", "SPARK_WORKERS=3"]
    assert load(file)["AIRFLOW_JWT_SECRET"] == "kept"
    assert load(file)["POSTGRES_PASSWORD"]
    assert len([line for line in lines if line.startswith("POSTGRES_PASSWORD=")]) == 1


def test_nights_are_made_up_for_from_the_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow is told of the same night at every start: without one, it leaves out what it missed."""
    (tmp_path / "dags").mkdir()
    place = Place(tmp_path)
    place.make()

    def told() -> date:
        return date.fromisoformat(_Start(place, 1, print).environment()["TRENDS_START"])

    monkeypatch.delenv("TRENDS_START", raising=False)
    before = datetime.now(UTC).date()
    assert before - timedelta(days=1) <= told() < datetime.now(UTC).date()
    file = tmp_path / ".airflow" / "secrets"
    file.write_text(f"{FIRST_NIGHT}=2026-03-01\n")
    assert told() == date(2026, 3, 1)
    monkeypatch.setenv("TRENDS_START", "2026-02-01")
    assert told() == date(2026, 2, 1)
