"""Airflow's scheduler with what tasks import: they are forks of it, and none imports Great Expectations once more.

`python -m pipeline.services.scheduler` takes the options of `airflow scheduler`.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module

# Each once, not in each of a night's hundred tasks: four seconds of a core on an idle machine. None starts a thread.
IMPORTED_ONCE = (
    "deltalake",
    "great_expectations",
    "numba",
    "pipeline.nights",
    "pipeline.report.build",
    "pipeline.upkeep",
    "pyspark.sql.connect.session",
)


def main() -> None:
    """Import, then become the scheduler."""
    for name in IMPORTED_ONCE:
        import_module(name)
    sys.argv = ["airflow", "scheduler", *sys.argv[1:]]
    runpy.run_module("airflow", run_name="__main__")


if __name__ == "__main__":
    main()
