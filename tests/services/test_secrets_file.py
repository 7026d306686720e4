"""Secrets are generated once, differ everywhere, and are their owner's alone."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

from pipeline.services.secrets_file import FERNET_KEY, NAMES, load, main


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
