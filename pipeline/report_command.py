"""The command over reports: report."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pipeline.commands import Add, lake_arguments, lake_config


def register(add: Add) -> None:
    """Add the command to the parser."""
    report = add("report", help="write the report: pages of what was published, compared and checked")
    report.add_argument("--out", type=Path, metavar="FOLDER", help="of the site (default: TRENDS_SITE, or site)")
    lake_arguments(report)
    report.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from pipeline.report.build import build

    started = time.monotonic()
    config = lake_config(options)
    built = build(config, options.out or Path(config.site))
    for page, error in built.errors.items():
        print(f"{page}: {error}", file=sys.stderr)
    print(
        f"queries: {built.queries}, with errors, which their pages show: {len(built.errors)}; "
        f"{time.monotonic() - started:.1f} seconds"
    )
    print(f"open {built.folder / 'index.html'}")
    return 0
