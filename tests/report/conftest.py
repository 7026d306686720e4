"""A lake and its site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.report.build import build
from tests.report import lake


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the lake, beside a page of Data Docs."""
    home = tmp_path_factory.mktemp("report")
    config = Config(str(home / "lake"), str(home / "landing"))
    queries = lake.fill(config)
    page = home / "site/quality/stock/2030-01-08/silver.stock/20300109T000000.000000.run.failed.html"
    page.parent.mkdir(parents=True)
    page.write_text("<title>silver.stock</title>")
    (home / "site/quality/index.html").write_text("<title>Checks</title>")
    benchmarks = home / "benchmarks.json"
    benchmarks.write_text(json.dumps(lake.BENCHMARKS))
    return build(config, home / "site", queries, lake.NOW, benchmarks).folder
