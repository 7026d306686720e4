"""A dataset is added as CONTRIBUTING.md says: its code is run as it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle

from pipeline import delta
from pipeline.config import Config
from pipeline.datasets.declaration import Dataset
from pipeline.datasets.page import page
from pipeline.days import prepare, process_day
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
BLOCK = re.compile(r"^```python\n# (pipeline/\S+)\.py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEVELS = """\
gauge,seconds,level
Harbour,1893542400,2.5
Harbour,1893542460,1.5
Harbour,1893542460,1.5
Pier,1893542460,over
Pier,1893542520
"""


@pytest.fixture
def tide(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dataset]:
    """The dataset of the example, as if its two files were there."""
    modules = []
    for path, text in BLOCK.findall(CONTRIBUTING.read_text("utf-8")):
        module = ModuleType(path.replace("/", "."))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(text, path, "exec"), module.__dict__)
        cloudpickle.register_pickle_by_value(module)  # since Spark's workers find no such file
        modules.append(module)
    yield modules[-1].TIDE
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


def test_a_new_dataset_reaches_silver(tide: Dataset, spark: SparkSession, config: Config, tmp_path: Path) -> None:
    folder = Path(config.landing) / "tide" / "2030-01-02"
    folder.mkdir(parents=True)
    (folder / "levels.csv").write_text(LEVELS)
    prepare(spark, config, tide)
    interval = process_day(spark, config, tide, date(2030, 1, 2), "run")
    assert (interval.source_rows, interval.silver_rows, interval.duplicates) == (5, 2, 1)
    assert interval.reasons == {"level: not a number": 1, "wrong number of columns": 1}
    events = delta.read(spark, config, silver(tide)).orderBy("time").select("type", "gauge", "level").collect()
    assert [tuple(event) for event in events] == [("High", "Harbour", 2.5), ("Low", "Harbour", 1.5)]
    assert "### water levels" in page([tide])
