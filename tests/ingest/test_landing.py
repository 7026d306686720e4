"""Which days and files a landing folder has."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.errors import InputError
from pipeline.ingest.landing import find_files, landing_days

STOCK = DATASETS["stock"]
DAY = date(2030, 1, 7)


def put(config: Config, *paths: str) -> None:
    for path in paths:
        file = Path(config.landing) / "stock" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def test_days_are_folders_named_as_a_date(config: Config) -> None:
    assert landing_days(config, STOCK) == []
    # Python takes the last two for dates, but no file would be looked for in such a folder.
    put(config, "2030-01-08/a", "2030-01-07/a", "notes/a", "20300109/a", "2030-W02-4/a")
    assert landing_days(config, STOCK) == [DAY, date(2030, 1, 8)]


def test_files_that_are_finished_in_the_order_of_their_paths(config: Config) -> None:
    put(config, "2030-01-07/b.csv", "2030-01-07/a/c.csv", "2030-01-08/d.csv")
    put(config, "2030-01-07/e.csv.part", "2030-01-07/.f.csv", "2030-01-07/_g/h.csv")
    assert [file.path for file in find_files(config, STOCK, DAY)] == [
        "stock/2030-01-07/a/c.csv",
        "stock/2030-01-07/b.csv",
    ]


def test_a_name_that_would_be_taken_for_a_member_of_an_archive(config: Config) -> None:
    put(config, "2030-01-07/new!.csv")
    with pytest.raises(InputError, match=r"stock/2030-01-07/new!\.csv: ! stands between .*\nhint: give the file"):
        find_files(config, STOCK, DAY)
