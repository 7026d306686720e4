"""The generator: realistic files of any size in the raw formats, which take the same path as real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path

from pipeline.datasets.declaration import Dataset
from pipeline.errors import InputError
from pipeline.sources.generator import activity, stock, taxi
from pipeline.sources.generator.files import Manifest, Shares, Writer

# The files of one landing day: how, seed, day, rows, and the day from which late rows come.
WriteDay = Callable[[Writer, int, date, int, date], None]
DAYS: dict[str, WriteDay] = {"stock": stock.write_day, "taxi": taxi.write_day, "activity": activity.write_day}


def generate(
    dataset: Dataset, landing: Path, days: Sequence[date], rows: int, *, seed: int = 1, shares: Shares | None = None
) -> Manifest:
    """Write files with so many rows a day to `landing/<dataset>/<day>/`, and say what is in them.

    A day on which no files are expected gets none. A file depends on the seed, its day and the rows alone, so that
    days can be written in any order, again, or apart.
    """
    if dataset.name not in DAYS:
        raise InputError(f"no generator for the dataset {dataset.name!r}\nhint: there is one for {', '.join(DAYS)}")
    manifest = Manifest()
    for day in days:
        if dataset.expects(day):
            writer = Writer(landing, f"{dataset.name}/{day}", shares or Shares(), manifest)
            DAYS[dataset.name](writer, seed, day, rows, _late_day(dataset, day))
    return manifest


def _late_day(dataset: Dataset, day: date) -> date:
    """A day whose events are late on another: too early even if all of them were of its last hours in local time."""
    earlier = day - timedelta(days=dataset.lag + 2)
    while not dataset.calendar.includes(earlier):
        earlier -= timedelta(days=1)
    return earlier
