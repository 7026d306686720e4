"""What `trends doctor` finds out: whether everything around the program is there, and how to mend what is not."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from pipeline.config import Config
from pipeline.errors import SetupError, TrendsError
from pipeline.jars import DELTA, FOLDER, damaged
from pipeline.java import find_java
from pipeline.memory import available_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIB = 2**30
DISK, MEMORY = 5 * GIB, 3 * GIB  # below these, a day of a few million events may not fit
LEAST_DISK = GIB // 2
ZONES = ("America/New_York", "UTC")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; a mend is given where it is not ok."""

    subject: str
    level: Literal["ok", "warning", "error"]
    found: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.level:7}  {self.subject}: {self.found}" + (f"\n         {self.mend}" if self.mend else "")


def checks(config: Config) -> list[Finding]:
    """Everything that a run needs. Spark is started only where what it needs is there."""
    early = [finding for check in EARLY for finding in check(config)]
    if any(finding.level == "error" for finding in early):
        skipped = Finding("Spark", "warning", "not tried, because of the errors above", "mend them first")
        return [*early, skipped]
    return [*early, *_spark(config)]


def _packages(config: Config) -> Iterator[Finding]:
    """The pinned versions are those of the installed package itself, so that a mixed environment shows."""
    wanted = [
        line.split(";")[0].strip().split("==") for line in metadata.requires("trendmill") or () if "extra" not in line
    ]
    wrong = []
    for name, version in (pin for pin in wanted if len(pin) == 2):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "missing"
        if found != version:
            wrong.append(f"{name} is {found}, not {version}")
    if wrong:
        yield Finding("packages", "error", "; ".join(wrong), "make venv")
    else:
        yield Finding("packages", "ok", f"{len(wanted)} in their pinned versions")


def _java(config: Config) -> Iterator[Finding]:
    if config.remote:
        return
    try:
        java = find_java()
        java.home()
    except SetupError as error:
        yield _of_error("Java", error)
    else:
        yield Finding("Java", "ok", f"{java.version}, {java.program} (from {java.origin})")


def _jars(config: Config) -> Iterator[Finding]:
    if config.remote:
        return
    if not FOLDER.exists():
        yield Finding("Delta jars", "error", f"{FOLDER} is missing", "make venv, or python -m pipeline.jars")
    elif wrong := damaged():
        yield Finding(
            "Delta jars", "error", f"damaged: {', '.join(wrong)}", "python -m pipeline.jars fetches them again"
        )
    else:
        yield Finding("Delta jars", "ok", f"{DELTA} in {FOLDER}")


def _environment(config: Config) -> Iterator[Finding]:
    """Settings of other Sparks on the machine that would get into this one."""
    for name in ("SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"):
        if value := os.environ.get(name):
            yield Finding(name, "warning", f"is set to {value}: Spark may take settings from it", f"unset {name}")


def _zones(config: Config) -> Iterator[Finding]:
    missing = []
    for zone in ZONES:
        try:
            ZoneInfo(zone)
        except (OSError, ValueError, KeyError):
            missing.append(zone)
    if missing:
        yield Finding("time zones", "error", f"no data for {', '.join(missing)}", "make venv (the package tzdata)")
    else:
        yield Finding("time zones", "ok", "data found")


def _folders(config: Config) -> Iterator[Finding]:
    for subject, variable, text in (
        ("lake", "TRENDS_LAKE", config.lake),
        ("landing", "TRENDS_LANDING", config.landing),
    ):
        if "://" in text:
            continue  # Spark alone can reach it
        folder = Path(text)
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not os.access(nearest, os.W_OK | os.X_OK | os.R_OK):
            mend = f"give yourself the right to write there, or set {variable}"
            yield Finding(subject, "error", f"{nearest} is not yours to read and write", mend)
        elif not folder.exists():
            mend = "the first run makes it" if subject == "lake" else "trends generate fills it, or copy files there"
            yield Finding(subject, "warning", f"{folder} is not there yet", mend)
        elif subject == "landing":
            datasets = sorted(child.name for child in folder.iterdir() if child.is_dir())
            yield Finding(subject, "ok", f"{folder}, with {', '.join(datasets) or 'nothing in it'}")


def _room(config: Config) -> Iterator[Finding]:
    for subject, text in (("disk of the lake", config.lake), ("disk for temporary files", _temporary())):
        if "://" in text:
            continue
        place = next(parent for parent in (Path(text), *Path(text).parents) if parent.exists())
        free = shutil.disk_usage(place).free
        level: Literal["ok", "warning", "error"] = (
            "ok" if free >= DISK else "warning" if free >= LEAST_DISK else "error"
        )
        mend = "" if level == "ok" else f"make room on the disk of {place}"
        yield Finding(subject, level, f"{free / GIB:.1f} GiB free", mend)
    if not config.remote:
        memory = available_memory()
        mend = (
            ""
            if memory >= MEMORY
            else "end other programs; spark.driver.memory in TRENDS_SPARK_CONF sets Spark's share"
        )
        yield Finding("memory", "ok" if memory >= MEMORY else "warning", f"{memory / GIB:.1f} GiB free", mend)


def _port(config: Config) -> Iterator[Finding]:
    from pipeline.spark import address

    if not config.remote:
        return
    host, port = address(config)
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        mend = "start the Spark Connect server there, or set TRENDS_SPARK=local[*]"
        yield Finding("Spark Connect", "error", f"nothing answers at {host}:{port} ({error})", mend)
    else:
        yield Finding("Spark Connect", "ok", f"{host}:{port} answers")


EARLY: tuple[Callable[[Config], Iterator[Finding]], ...] = (
    _packages,
    _java,
    _jars,
    _environment,
    _zones,
    _folders,
    _room,
    _port,
)


def _spark(config: Config) -> Iterator[Finding]:
    from pipeline.spark import session

    try:
        spark = session(config)
    except TrendsError as error:
        yield _of_error("Spark", error)
        return
    yield Finding("Spark", "ok", f"{spark.version} with {config.master}")
    yield from _lake(spark, config)


def _lake(spark: SparkSession, config: Config) -> Iterator[Finding]:
    """Write and read a small table in the very store that runs use; it is removed where that is a folder."""
    from pipeline import delta
    from pipeline.spark import first_line
    from pipeline.tables import OPS, Column, Table

    probe = Table("ops", "doctor", "written by trends doctor", (Column("id", "bigint", "any number"),))
    try:
        delta.create(spark, config, probe)
        delta.append(spark, config, probe, spark.range(1))
        rows = delta.row_count(spark, config, probe)
        there = [table.full_name for table in OPS if delta.exists(spark, config, table)]
    except Exception as error:  # the file system's own, through Spark
        mend = "may you write there? hdfs:// and s3a:// need what docs/lake.md says"
        yield Finding("tables", "error", f"{config.lake}: {first_line(error)}", mend)
        return
    finally:
        if config.lake_folder is not None:
            _remove(Path(probe.path(config)))
    if not rows:
        yield Finding("tables", "error", f"{config.lake}: what was written is not read back", "use another store")
        return
    found = f"written and read in {config.lake}"
    yield Finding("tables", "ok", f"{found}; {', '.join(there)} found" if there else f"{found}; none of a run yet")


def _remove(table: Path) -> None:
    """Remove the table, and the folders above it that hold nothing else."""
    shutil.rmtree(table, ignore_errors=True)
    with suppress(OSError):
        table.parent.rmdir()
        table.parent.parent.rmdir()


def _temporary() -> str:
    return os.environ.get("SPARK_LOCAL_DIRS", "/tmp").split(",")[0]


def _of_error(subject: str, error: TrendsError) -> Finding:
    found, _, mend = str(error).partition("\nhint: ")
    return Finding(subject, "error", found, mend)
