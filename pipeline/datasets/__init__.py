"""The datasets there are, by name."""

from __future__ import annotations

from pipeline.datasets.activity import ACTIVITY
from pipeline.datasets.declaration import Dataset
from pipeline.datasets.stock import STOCK
from pipeline.datasets.taxi import TAXI

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in (STOCK, TAXI, ACTIVITY)}
