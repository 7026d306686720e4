"""Runs the experiments: `python -m benchmarks [NAME …] [--quick] [--out FOLDER]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cogra, flink, growth, ingest, jobs, own, sequences, sizes, start
from benchmarks.harness import Experiment, Figure, compare, progress
from benchmarks.page import section, write
from pipeline.memory import MEMINFO

ROOT = Path(__file__).parents[1]
QUICK_OUT, OUT = ROOT / "build" / "benchmarks", ROOT / "docs"
RESULTS = "benchmarks.json"
Measure = Callable[[bool], dict[str, Any]]


def experiments() -> dict[str, Measure]:
    """All experiments by name, in the order in which they are shown."""
    compared = {
        one.name: partial(_compare, one)
        for one in (*cogra.EXPERIMENTS, *sequences.EXPERIMENTS, *own.EXPERIMENTS, *growth.EXPERIMENTS)
    }
    figures = {
        "jobs": (jobs.TITLE, jobs.jobs),
        "sizes": (sizes.TITLE, sizes.sizes),
        "ingest": (ingest.TITLE, ingest.ingest),
        "start": (start.TITLE, start.start),
    }
    return compared | {name: partial(_measure, title, run) for name, (title, run) in figures.items()}


def _compare(experiment: Experiment, quick: bool) -> dict[str, Any]:
    return compare(experiment, 1, quick=True) if quick else compare(experiment)


def _measure(title: str, run: Callable[[float], list[Figure]], quick: bool) -> dict[str, Any]:
    return {"title": title, "figures": [figure.as_json() for figure in run(0.1 if quick else 1.0)]}


def bench(names: Sequence[str], out: Path, *, quick: bool, known: Mapping[str, Measure] | None = None) -> list[str]:
    """Print what these experiments give, and write it beside what others gave before; those that failed."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / RESULTS
    results = json.loads(file.read_text("utf-8")) if file.exists() else {}
    measures = experiments() if known is None else known
    failed = []
    for name in names:
        progress(name)
        made = {"command": _command(name, quick), "at": f"{datetime.now(UTC):%Y-%m-%d}", "machine": _machine()}
        started = time.monotonic()
        try:
            measured = measures[name](quick)
        except Exception:  # the others are worth their hour
            traceback.print_exc()
            failed.append(name)
            continue
        results[name] = measured | made | {"took": time.monotonic() - started}
        print(f"{name}: {section(name, results[name])}")
        ordered = {one: results[one] for one in measures if one in results}
        file.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")
        write(ordered, out / "benchmarks.md", out / "benchmarks")
    return failed


def _command(name: str, quick: bool) -> str:
    return f"make bench BENCH='{name}{' --quick' if quick else ''}'"


def _machine() -> str:
    cpu = platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    memory = int(MEMINFO.read_text().split()[1]) / 2**20 if MEMINFO.exists() else 0
    return f"{os.cpu_count()} cores of {cpu}, {memory:.0f} GB, Python {platform.python_version()}"


def main() -> None:
    """Read the options."""
    known = experiments()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast the engines are.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(known)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="the easy points, once: minutes instead of hours")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for results, page and charts (default: docs, or, "
                        "with --quick, build/benchmarks)")  # fmt: skip
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no experiment {unknown[0]}; there are {', '.join(known)}")
    if reason := flink.missing():
        parser.error(f"Flink cannot run: {reason}")
    out = options.out or (QUICK_OUT if options.quick else OUT)
    if failed := bench(options.names or list(known), out, quick=options.quick):
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
