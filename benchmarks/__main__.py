"""Runs the experiments: `python -m benchmarks [--quick] [--only NAME] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiments import EXPERIMENTS
from benchmarks.harness import as_json, progress, table

RESULTS = Path(__file__).with_name("results.json")


def bench(names: Sequence[str], scale: float, file: Path) -> None:
    """Print the figures of these experiments, and write them to a file; `scale`: this part of all events."""
    results = {}
    for name in names:
        progress(name)
        results[name] = EXPERIMENTS[name](scale)
    print(table(results))
    file.write_text(json.dumps({"scale": scale, "experiments": as_json(results)}, indent=2) + "\n", "utf-8")


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast the engines are.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the events; the targets are for all of them")
    parser.add_argument("--only", choices=EXPERIMENTS, metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="where to write the figures")
    options = parser.parse_args()
    bench([options.only] if options.only else list(EXPERIMENTS), 0.1 if options.quick else 1.0, options.json)


if __name__ == "__main__":
    main()
