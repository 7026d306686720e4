"""The Delta jars are fetched by Spark's real resolver, here from a folder that is laid out like a repository."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline import jars
from pipeline.errors import SetupError

POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{more}</project>"""
NEEDS = """<dependencies><dependency><groupId>{group}</groupId><artifactId>delta-storage</artifactId>
<version>{version}</version></dependency></dependencies>"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the two jars, that the resolver takes for the default one."""
    root = tmp_path / "repository"
    for jar in jars.delta_jars():
        name = jar.stem.removesuffix(f"-{jars.DELTA}")
        folder = root / jars.GROUP.replace(".", "/") / name / jars.DELTA
        folder.mkdir(parents=True)
        shutil.copy(jar, folder)
        more = NEEDS.format(group=jars.GROUP, version=jars.DELTA) if name == jars.PACKAGE else ""
        text = POM.format(group=jars.GROUP, name=name, version=jars.DELTA, more=more)
        (folder / f"{jar.stem}.pom").write_text(text)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", root.as_uri())
    return root


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without jars."""
    empty = tmp_path / "environment" / f"delta-{jars.DELTA}"
    monkeypatch.setattr(jars, "FOLDER", empty)
    return empty


def test_two_at_once_fetch_them_once(repository: Path, folder: Path) -> None:
    with pytest.raises(SetupError, match=r"the Delta jars are missing.*\nhint: run make venv"):
        jars.delta_jars()
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(jars.fetch) for _ in range(2)]
    assert sorted(future.result() for future in done) == [False, True]
    assert [jar.name for jar in jars.delta_jars()] == sorted(os.listdir(folder))
    assert jars.damaged(folder) == []
    assert not jars.fetch()


def test_after_a_kill_they_are_fetched_whole(repository: Path, folder: Path) -> None:
    code = "import sys, pathlib, pipeline.jars as jars; jars.FOLDER = pathlib.Path(sys.argv[1]); jars.fetch()"
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], start_new_session=True)
    staging = folder.with_name(f"{folder.name}.fetching")
    while not (staging / "ivy").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert staging.exists()
    assert not folder.exists()
    assert jars.fetch()
    assert jars.damaged(folder) == []
    assert not staging.exists()


def test_a_damaged_jar_is_fetched_again_but_never_another_file(
    repository: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(jars.CACHE / folder.name, folder)
    storage = folder / f"delta-storage-{jars.DELTA}.jar"
    storage.write_bytes(storage.read_bytes()[:1000])
    [other] = repository.rglob("delta-storage-*.jar")
    right = other.read_bytes()
    other.write_bytes(right + b"more")
    assert jars.main() == 2
    assert "not the jars that were pinned: delta-storage" in capsys.readouterr().err
    other.write_bytes(right)
    assert jars.main() == 0
    assert "fetching Delta" in capsys.readouterr().out
    assert jars.damaged(folder) == []


def test_what_to_do_without_a_network(
    repository: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(repository)
    # Nothing listens there, so that no other repository is reached either.
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    assert jars.main() == 2
    said = capsys.readouterr().err
    assert said.startswith("could not fetch delta-spark")
    assert "hint: a network is needed once" in said
    assert not folder.exists()


def test_two_at_once_compile_the_log_store_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "CACHE", tmp_path)
    with ThreadPoolExecutor(2) as pool:
        made = {future.result() for future in [pool.submit(jars.log_store_jar) for _ in range(2)]}
    (jar,) = made
    assert zipfile.ZipFile(jar).testzip() is None
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".jar", ".lock"]


def test_a_log_store_that_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "LinkedLogStore.scala"
    source.write_text("class LinkedLogStore extends Nothing {")
    monkeypatch.setattr(jars, "LOG_STORE", source)
    with pytest.raises(
        SetupError, match=r"(?s)could not compile LinkedLogStore.scala:.*error: .*\nhint: run make venv"
    ):
        jars.log_store_jar()
