"""The compose file: commands and settings as on one machine, nothing open, no secret defaulted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.services import secrets_file
from pipeline.services.airflow import COMPONENTS, CONNECTION, settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text("utf-8")
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = COMPOSE["x-trends"]["image"]
DOCKER, NGINX = shutil.which("docker"), shutil.which("nginx")

every_service = pytest.mark.parametrize("name", SERVICES)


@every_service
def test_a_service_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "network_mode", "pid", "devices"} & set(service)
    assert service["image"] == OURS or service["user"] not in ("root", "0", 0)
    assert not [volume for volume in service.get("volumes", ()) if "docker.sock" in volume]


def test_the_image_has_a_user_of_its_own() -> None:
    assert re.findall(r"^USER (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE) == ["10001"]


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if service["image"] == OURS])
def test_code_may_be_unpacked_to_be_loaded(name: str) -> None:
    """Snappy's library, with which Spark writes and reads Parquet; Docker mounts a tmpfs noexec unless told."""
    assert [mount for mount in SERVICES[name]["tmpfs"] if mount.startswith("/tmp:") and "exec" in mount[5:].split(",")]


@every_service
def test_ports_are_this_machines(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        assert port.startswith("127.0.0.1:")


def test_the_image_is_built_once() -> None:
    assert [name for name, service in SERVICES.items() if "build" in service] == ["prepare"]


def test_images_are_pinned() -> None:
    images = {service["image"] for service in SERVICES.values()}
    images |= set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert len(images) == 4
    for image in images:
        assert re.search(r":\d+\.\d+(\.\d+)?(-[\w.-]+)?$", image), image


def test_secrets_are_never_defaulted() -> None:
    used = dict(re.findall(r"\$\{(\w+)(:\?run make env|:-[^}]*)?\}", TEXT))
    assert {name for name, how in used.items() if how == ":?run make env"} == set(secrets_file.COMPOSE)
    assert not [name for name, how in used.items() if not how]


@every_service
def test_a_service_says_whether_it_is_well(name: str) -> None:
    assert ("healthcheck" in SERVICES[name]) == (name != "prepare")  # which ends


def test_postgres_is_well_once_others_can_reach_it() -> None:
    assert "--host=127.0.0.1" in SERVICES["postgres"]["healthcheck"]["test"]


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_start_as_on_one_machine(name: str) -> None:
    assert SERVICES[name]["command"] == ["python", "-m", *COMPONENTS[name]]


def test_settings_are_those_of_one_machine() -> None:
    given = COMPOSE["x-airflow"]["environment"]
    local = settings(Path("/data/airflow"), Path("/opt/trendmill/dags"), 8080, dict.fromkeys(secrets_file.NAMES, ""))
    assert set(local) <= set(given)
    other = {name for name, value in local.items() if given[name] != value}
    secret = {name for name, value in local.items() if not value}
    elsewhere = {"API__HOST", "API__BASE_URL", "CORE__EXECUTION_API_SERVER_URL", "CORE__PARALLELISM"}
    assert other - secret == {f"AIRFLOW__{name}" for name in elsewhere}
    assert f"AIRFLOW_CONN_{CONNECTION.upper()}" in given


def test_every_copied_path_is_in_the_build() -> None:
    """`.dockerignore` lets in what the Dockerfile copies, and no more."""
    copied = {
        path
        for line in re.findall(r"^COPY (?!--)(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        for path in line.split()[:-1]
    }
    let_in = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert {path.name for pattern in let_in for path in ROOT.glob(pattern)} == {
        path for path in copied if (ROOT / path).exists()
    }


def compose(*arguments: str, env_file: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in secrets_file.NAMES}
    command = [DOCKER or "docker", "compose", "--env-file", str(env_file), *arguments]
    return subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True)


@pytest.mark.skipif(
    DOCKER is None or subprocess.run([DOCKER, "compose", "version"], capture_output=True).returncode != 0,
    reason="no docker compose: install the Compose plugin of Docker (no engine is needed)",
)
def test_docker_compose_takes_it_with_generated_secrets_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    refused = compose("config", "--quiet", env_file=tmp_path / "empty")
    assert refused.returncode != 0
    assert "run make env" in refused.stderr
    secrets_file.main([str(tmp_path / ".env")])
    taken = compose("config", "--quiet", env_file=tmp_path / ".env")
    assert taken.returncode == 0, taken.stderr


@pytest.mark.skipif(NGINX is None, reason="no nginx: apt-get install nginx-light")
def test_nginx_takes_its_settings() -> None:
    tried = subprocess.run(
        [NGINX or "nginx", "-t", "-c", str(ROOT / "deploy" / "nginx.conf")], capture_output=True, text=True
    )
    assert tried.returncode == 0, tried.stderr
