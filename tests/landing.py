"""Generated landing days with few files: what each file takes is most of what a small day takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pipeline.config import Config
from pipeline.datasets.declaration import Dataset
from pipeline.sources.generator import generate
from pipeline.sources.generator.files import Shares

# Late rows would need another night, that of revise_late.
SHARES = Shares(bad=0.01, duplicate=0.01, late=0)
KEPT = 2  # files a day


def land(config: Config, dataset: Dataset, days: Sequence[date], rows: int = 300) -> None:
    """The largest files of generated days of so many rows."""
    generate(dataset, Path(config.landing), days, rows, shares=SHARES)
    for day in days:
        files = sorted((Path(config.landing) / dataset.name / str(day)).iterdir(), key=lambda file: file.stat().st_size)
        for file in files[:-KEPT]:
            file.unlink()
