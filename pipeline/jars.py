"""The Delta jars: fetched once, at set-up, by Spark's own resolver; afterwards Spark starts without a network.

`python -m pipeline.jars` fetches them into the environment, and compiles the part that is ours; it does nothing where
they are there already.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import SetupError, TrendsError
from pipeline.java import CACHE, find_java

DELTA = "4.4.0"
GROUP, PACKAGE = "io.delta", "delta-spark_4.2_2.13"  # for Spark 4.2 and its Scala
SHA256 = {
    f"{PACKAGE}-{DELTA}.jar": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    f"delta-storage-{DELTA}.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
FOLDER = CACHE / f"delta-{DELTA}"
# Spark brings the first three itself; the others serve catalogues and readers that are not used here.
EXCLUDED = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.parquet:parquet-hadoop",
    "io.unitycatalog:unitycatalog-client",
    "io.unitycatalog:unitycatalog-hadoop",
    "io.delta:delta-kernel-api",
    "io.delta:delta-kernel-defaults",
    "io.delta:delta-kernel-unitycatalog",
)
LOG_STORE = Path(__file__).with_name("LinkedLogStore.scala")
HINT = "run make venv, or python -m pipeline.jars"


def delta_jars() -> list[Path]:
    """The jars, for `spark.jars`."""
    if missing := [name for name in SHA256 if not (FOLDER / name).exists()]:
        raise SetupError(f"the Delta jars are missing: {', '.join(missing)} in {FOLDER}\nhint: {HINT}")
    return [FOLDER / name for name in SHA256]


def log_store_jar() -> Path:
    """The jar with the class that commits to tables in a folder; compiled, where it is new, by Spark's own Scala."""
    jar = CACHE / f"log-store-{hashlib.sha256(LOG_STORE.read_bytes()).hexdigest()[:12]}.jar"
    if jar.exists():
        return jar
    with _alone(jar.with_suffix(".lock")):
        if jar.exists():
            return jar  # another process was faster
        making = jar.with_suffix(".making.jar")
        java, spark = str(find_java().home() / "bin" / "java"), f"{spark_home() / 'jars'}/*"
        classes = os.pathsep.join([spark, *map(str, delta_jars())])
        command = [java, "-cp", spark, "scala.tools.nsc.Main", "-cp", classes, "-d", str(making), str(LOG_STORE)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise SetupError(f"could not compile {LOG_STORE.name}:\n{done.stdout}{done.stderr}\nhint: {HINT}")
        making.rename(jar)
    return jar


def damaged(folder: Path | None = None) -> list[str]:
    """The jars that are missing from the folder or are not what was pinned."""
    folder = folder or FOLDER
    return [
        name
        for name, digest in SHA256.items()
        if not (folder / name).exists() or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]


def fetch() -> bool:
    """Fetch the jars unless they are there; whether anything was done."""
    if FOLDER.exists() and not damaged():
        return False
    with _alone(FOLDER.with_name(f"{FOLDER.name}.lock")):
        if FOLDER.exists():
            if not damaged():
                return False  # another process was faster
            shutil.rmtree(FOLDER)
        staging = FOLDER.with_name(f"{FOLDER.name}.fetching")
        shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed
        try:
            _resolve(staging)
            # Readers see the folder with both jars or not at all.
            (staging / "whole").rename(FOLDER)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return True


def _resolve(staging: Path) -> None:
    """Spark's resolver downloads into `staging`; what it found is checked and put into `staging/whole`."""
    ivy, whole = staging / "ivy", staging / "whole"
    whole.mkdir(parents=True)
    command = [
        str(spark_home() / "bin" / "spark-submit"),
        *("--packages", f"{GROUP}:{PACKAGE}:{DELTA}"),
        *("--exclude-packages", ",".join(EXCLUDED)),
        *("--conf", f"spark.jars.ivy={ivy}"),
        # A program that Spark brings along and that ends at once: the jars are resolved before it starts.
        *("--class", "org.apache.ivy.Main", "spark-internal", "-version"),
    ]
    environment = os.environ | {
        "JAVA_HOME": str(find_java().home()),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Without it, a half-filled ~/.m2 is taken for a source of jars.
        "SPARK_SUBMIT_OPTS": f'{os.environ.get("SPARK_SUBMIT_OPTS", "")} "-Duser.home={staging}"',
    }
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    for name in SHA256:
        found = ivy / "jars" / f"{GROUP}_{name}"
        if found.exists():
            found.rename(whole / name)
    if wrong := damaged(whole):
        if all((whole / name).exists() for name in SHA256):
            raise SetupError(f"not the jars that were pinned: {', '.join(wrong)}\nhint: a mirror serves other files?")
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-12:]
        raise SetupError(
            "\n".join([f"could not fetch {', '.join(wrong)}", *(f"  {line.rstrip()}" for line in said)])
            + "\nhint: a network is needed once; behind a proxy set SPARK_SUBMIT_OPTS=-Dhttps.proxyHost=…"
            " -Dhttps.proxyPort=…, for a mirror DEFAULT_ARTIFACT_REPOSITORY=https://…"
        )


def spark_home() -> Path:
    """The folder of the installed Spark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SetupError("pyspark is not installed\nhint: run make venv")
    return Path(found.origin).parent


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold the lock: the system frees it when the process ends, however it ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Fetch the jars, and say so, and compile ours; returns the exit code."""
    try:
        if not FOLDER.exists() or damaged():
            print(f"fetching Delta {DELTA} into {FOLDER}", flush=True)
            fetch()
        log_store_jar()
    except TrendsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
