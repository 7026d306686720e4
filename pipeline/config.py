"""Where lake, landing files, queries and pages are, and which Spark works on them: read once from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import SetupError

SCHEMES = ("hdfs", "s3a")
MASTERS = re.compile(r"local|local\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\]|yarn|(spark|sc)://[^/\s]+(/\S*)?|k8s://\S+")
# Tables hold UTC; a session in another zone would write other dates for the same times.
FIXED = {"spark.sql.session.timeZone": "UTC"}
OWN = {"spark.master": "TRENDS_SPARK", "spark.remote": "TRENDS_SPARK"}


@dataclass(frozen=True)
class Config:
    """Settings of one run. Folders are absolute; `hdfs://` and `s3a://` addresses stay as they are.

    >>> Config(lake="hdfs://names:9000/lake/", landing="/data/landing").lake
    'hdfs://names:9000/lake'
    """

    lake: str = "lake"
    landing: str = "landing"
    master: str = "local[*]"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    queries: str = "queries"
    site: str = "site"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lake", _folder("TRENDS_LAKE", self.lake))
        object.__setattr__(self, "landing", _folder("TRENDS_LANDING", self.landing))
        object.__setattr__(self, "queries", _folder("TRENDS_QUERIES", self.queries))
        object.__setattr__(self, "site", _folder("TRENDS_SITE", self.site))
        if self.lake == self.landing or f"{self.landing}/".startswith(f"{self.lake}/"):
            raise SetupError(
                f"TRENDS_LANDING: {self.landing} is inside the lake {self.lake}\n"
                "hint: raw files and tables need folders of their own"
            )
        if not MASTERS.fullmatch(self.master):
            raise SetupError(
                f"TRENDS_SPARK: {self.master!r} is no Spark master\n"
                "hint: local[*], local[4], spark://host:7077, yarn, k8s://…, or sc://host:15002 for Spark Connect"
            )
        for key, value in self.spark_conf.items():
            _check_setting(key, value)

    @classmethod
    def from_environment(cls) -> Config:
        """The settings of `TRENDS_LAKE`, `TRENDS_LANDING`, `TRENDS_SPARK`, `TRENDS_SPARK_CONF` and the others."""
        return cls(
            lake=os.environ.get("TRENDS_LAKE", cls.lake),
            landing=os.environ.get("TRENDS_LANDING", cls.landing),
            master=os.environ.get("TRENDS_SPARK", cls.master).strip(),
            spark_conf=parse_conf(os.environ.get("TRENDS_SPARK_CONF", "")),
            queries=os.environ.get("TRENDS_QUERIES", cls.queries),
            site=os.environ.get("TRENDS_SITE", cls.site),
        )

    @property
    def remote(self) -> bool:
        """Whether Spark is reached through Spark Connect."""
        return self.master.startswith("sc://")

    @property
    def lake_folder(self) -> Path | None:
        """The lake as a folder of this machine; None where it is in another store."""
        return None if "://" in self.lake else Path(self.lake)


def parse_conf(text: str) -> dict[str, str]:
    """Settings written as `key=value`, one a line, or on one line with `;` between them.

    >>> parse_conf("spark.driver.memory=2g; spark.sql.shuffle.partitions=8")
    {'spark.driver.memory': '2g', 'spark.sql.shuffle.partitions': '8'}
    """
    settings = {}
    for part in text.splitlines() if "\n" in text.strip() else text.split(";"):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals:
            raise SetupError(f"TRENDS_SPARK_CONF: {part.strip()!r} is not key=value\nhint: spark.driver.memory=2g")
        settings[key.strip()] = value.strip()
    return settings


def _folder(variable: str, text: str) -> str:
    path = text.strip()
    if not path:
        raise SetupError(
            f"{variable}: the value is empty\nhint: a folder, hdfs://… or s3a://…; unset it for the default"
        )
    scheme, colon, rest = path.partition("://")
    if colon and scheme == "file":
        path = rest
    elif colon:
        if scheme not in SCHEMES or not rest.strip("/"):
            known = ", ".join(f"{name}://…" for name in SCHEMES)
            raise SetupError(f"{variable}: {path} cannot be used\nhint: a folder of this machine, or {known}")
        return path.rstrip("/")
    try:
        folder = Path(path).expanduser().absolute()
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    except (ValueError, RuntimeError, OSError) as error:
        raise SetupError(f"{variable}: {path!r} is no folder ({error})\nhint: name another folder") from None
    if not nearest.is_dir():
        raise SetupError(f"{variable}: {nearest} is a file\nhint: name a folder")
    if folder == Path(folder.anchor):
        raise SetupError(f"{variable}: {folder} is the root of the file system\nhint: name a folder in it")
    return os.path.normpath(folder)


def _check_setting(key: str, value: str) -> None:
    if not re.fullmatch(r"spark\.[\w.\-]+", key):
        raise SetupError(f"TRENDS_SPARK_CONF: {key!r} is no Spark setting\nhint: settings are named spark.…")
    if key in OWN:
        raise SetupError(f"TRENDS_SPARK_CONF: {key} is set by {OWN[key]}\nhint: set {OWN[key]}={value}")
    if value != FIXED.get(key, value):
        raise SetupError(f"TRENDS_SPARK_CONF: {key} is always {FIXED[key]}, not {value}\nhint: leave it out")
