"""The site, built from tables that were written without a JVM."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.errors import SetupError
from pipeline.quality.mask import masked
from pipeline.report import build as build_module
from pipeline.report.build import build
from pipeline.tables import OPS_INTERVALS, gold_history
from tests.report import lake
from tests.report.lake import HUGE, MONDAY, NOW, answer, at, question


def words(page: Path) -> str:
    """What a page says, without its markup."""
    text = re.sub(r"<(script|style).*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def files(site: Path) -> dict[str, bytes]:
    """All pages by their names."""
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*.html")}


@pytest.fixture
def queries(config: Config) -> Path:
    """The lake of a test's own."""
    return lake.fill(config)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where its site goes."""
    return tmp_path / "site"


# ------------------------------------------------------------------------------------------------------------- overview


def test_the_overview_says_what_needs_somebody(site: Path) -> None:
    text = words(site / "index.html")
    assert "taxi 2030-01-08: failed" in text
    assert "silver.stock 2030-01-08: checks failed: 1 price_positive" in text
    assert "silver.taxi" not in text  # it was waived
    assert "stock: 2030-01-09 missing trends ingest stock --from 2030-01-09" in text
    assert "taxi: 2 days missing trends ingest taxi --from 2030-01-08 --to 2030-01-09" in text
    stale = "falling is stale on 2030-01-08: its events changed"
    assert f"{stale} trends backfill falling --from 2030-01-08 --changed" in text
    assert "stale on 2030-01-07" not in text
    assert "broken: something is wrong with this query" in text
    assert "2030-01-08: 1 event changed, in 1 window" in text


def test_nothing_needs_somebody_where_all_is_well(config: Config, out: Path) -> None:
    days = [MONDAY - timedelta(days=1), MONDAY]
    common = {"status": "complete", "run_id": "r", "completed_at": NOW, "reasons": []}
    write = [common | {"dataset": name, "landing_date": day} for name in DATASETS for day in days]
    lake.write(config, OPS_INTERVALS, write)
    build(config, out, Path("nowhere"), datetime(2030, 1, 8, 12, tzinfo=UTC))
    text = words(out / "index.html")
    assert "Nothing: every day is complete" in text
    assert text.count("up to date") == len(DATASETS)


def test_an_empty_lake_has_a_site(config: Config, tmp_path: Path) -> None:
    out = tmp_path / "data" / "site"  # the folder of compose, which has the name of one of its own
    assert build(config, out, Path("nowhere"), benchmarks=Path("nowhere")).errors == {}
    assert "Nothing was ingested yet" in words(out / "index.html")
    # Nothing was well, either.
    assert "every day is complete" not in words(out / "index.html")
    assert "Every check passed" not in words(out / "quality.html")
    assert "Nothing was compared yet" in words(out / "engines.html")
    assert "No table has been checked yet" in words(out / "quality.html")


# -------------------------------------------------------------------------------------------------------------- queries


def test_a_query_page_has_text_plan_revisions_and_trends(site: Path) -> None:
    page = site / "queries/falling.html"
    text = words(page)
    assert "WHERE [company] AND S.price > NEXT ( S ).price" in text.replace("NEXT (S)", "NEXT ( S )")
    assert 'class="automaton"' in page.read_text()
    assert "pane yes an index an edge: Stock S → Stock S: S.price > NEXT(S).price by a Fenwick tree" in text
    # Monday's window gained an event by the late file; Tuesday's row went.
    assert "2030-01-07 12:00:00 Computer 1 → 2 count: 3 → 7 events changed (silver 0 → 1)" in text
    assert "stock/2030-01-08/late.csv : 1 added, 0 removed" in text
    assert "2030-01-08 14:00:00 Chip 1 → gone count: 12 → gone" in text
    # The three trends of two falling prices.
    assert "sector Computer : 3 of 3 trends" in text
    trends = re.search(r'<ol class="trends">(.*?)</section>', page.read_text(), re.DOTALL)
    assert trends is not None
    assert sorted(re.findall(r"price (\d+)", one) for one in trends[1].split("<li><ol>")[1:]) == [
        ["10"],
        ["10", "9"],
        ["9"],
    ]


def test_what_is_sensitive_is_masked_everywhere(site: Path) -> None:
    everything = "\n".join(path.read_text() for path in site.rglob("*") if path.suffix in (".html", ".js"))
    for secret in ("driver 0", "driver 1", "rider of", "secret line"):
        assert secret not in everything
    data = next(site.glob("data/*/drivers.js")).read_text()
    assert str(masked("driver", "driver 0")) in data
    # A trend of the sample shows whose it is by the same digest.
    assert str(masked("driver", "driver 0")) in (site / "queries/drivers.html").read_text()


def test_a_broken_query_shows_its_line_and_its_text(site: Path) -> None:
    page = words(site / "queries/broken.html")
    assert "broken.query:2:1: expected" in page
    assert "did you mean PATTERN?" in page
    assert "Nothing is published yet" in page


def test_a_gold_table_without_a_query_keeps_its_page(config: Config, queries: Path, out: Path) -> None:
    (queries / "taxi/drivers.query").unlink()
    assert "queries/drivers.html" not in build(config, out, queries, NOW).errors
    assert "The file of this query is gone" in words(out / "queries/drivers.html")
    about = _data(out, "drivers")
    assert about["groups"][0]["label"] == [masked("driver", "driver 0")]
    assert [item["name"] for item in about["items"]] == ["count", "avg_t_speed"]


def test_a_column_that_nobody_declares_any_more_is_masked(config: Config, queries: Path, out: Path) -> None:
    asked = question("taxi/drivers.query")
    table = gold_history(asked.table)  # any other table with its columns, under a name that no query has
    rows = [answer(asked, at(MONDAY), {"driver": "driver 7"}, {"count": 1, "avg_t_speed": 1.0})]
    stamps = {"superseded_by": "r", "superseded_silver": 0, "superseded_at": NOW}
    lake.write(config, table, [row | stamps for row in rows])
    shutil.copytree(table.path(config), Path(config.lake) / "gold/nobodys")
    build(config, out, queries, NOW)
    assert _data(out, "nobodys")["groups"][0]["label"][0] == masked("driver", "driver 7")


def test_a_broken_table_is_an_error_of_its_page_alone(config: Config, queries: Path, out: Path) -> None:
    for table in ("gold/falling", "ops/quality"):
        for file in Path(config.lake, table).rglob("*.parquet"):
            file.write_bytes(b"no parquet")
    built = build(config, out, queries, NOW)
    assert built.errors.keys() == {"queries/falling.html", "queries/broken.html", "ops.quality"}
    assert "ops.quality cannot be read" in words(out / "index.html")
    assert "This could not be shown" in words(out / "queries/falling.html")
    assert "RETURN sector, COUNT" in words(out / "queries/falling.html")
    assert "This could not be shown" not in words(out / "queries/drivers.html")


def test_exact_digits_reach_the_page(site: Path) -> None:
    chunk = _data(site, "falling-0")
    computer = next(group for group in chunk.values() if len(group["t"]) == 4)
    texts = dict(zip(_times(computer["t"]), computer["count"]["x"], strict=True))
    assert texts[at(MONDAY, 13)] == str(2**100)
    digits = str(HUGE)
    assert texts[at(MONDAY, 13, 10)] == f"{digits[:30]}…{digits[-12:]} (603 digits)"
    assert computer["count"]["y"][2] == pytest.approx(2000 * 0.30103, abs=0.01)
    assert computer["rounded"] == [2]
    assert computer["revised"] == {"0": 2}


def test_only_the_newest_intervals_of_a_large_table_are_shown(
    config: Config, queries: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = build_module.read_answers
    monkeypatch.setattr(build_module, "read_answers", lambda subject, table: read(subject, table, most=3))
    build(config, out, queries, NOW)
    assert "2 of 6 rows of gold.falling are here: intervals 2030-01-08 to 2030-01-08" in words(
        out / "queries/falling.html"
    )


# ---------------------------------------------------------------------------------------------------- engines, quality


def test_an_engine_that_did_not_finish_is_at_its_budget(site: Path) -> None:
    found, _ = _data(site, "engines")
    assert found["engines"] == ["sase", "pane", "cogra", "aseq"]
    stopped = [one for one in found["points"] if one["status"] == "did not finish"]
    # What was not even tried is where the engine was stopped before.
    assert [(one["size"], one["time"]) for one in stopped] == [(32, 12.0), (64, 12.0)]
    assert [one["below"] for one in stopped] == [16.0, 32.0]
    text = words(site / "engines.html")
    assert "16; did not finish on 32" in text
    assert "cannot run" in text


def test_quality_has_states_places_and_links(site: Path) -> None:
    page = (site / "quality.html").read_text()
    text = words(site / "quality.html")
    assert "silver.stock.price_positive failed 1 3 rows 1 row stock/2030-01-08/a.csv:17: -3.5" in text
    assert "Waived: a parade" in text
    assert 'aria-label="silver.stock, 2030-01-08: 1 of 2 checks failed"' in page
    link = re.search(r'href="(quality/stock/2030-01-08/[^"]*)"', page)
    assert link is not None
    assert (site / link[1]).is_file()
    assert "2030-01-07 stock/2030-01-07/a.csv 4 price is no number no" in text
    stock = next(one for one in _data(site, "quarantine") if one["dataset"] == "stock")
    assert stock["reasons"] == {"price is no number": [2, 2], "2 fields, not 3": [1, 1]}


# ----------------------------------------------------------------------------------------------------- putting in place


def test_a_second_build_replaces_the_first_and_leaves_data_docs(config: Config, queries: Path, out: Path) -> None:
    docs = out / "quality/index.html"
    docs.parent.mkdir(parents=True)
    docs.write_text("checks")
    build(config, out, queries, NOW)
    first = {path.name for path in (out / "data").iterdir()}
    (queries / "stock/unpublished.query").rename(queries / "stock/renamed.query")
    for minutes in (1, 2):
        build(config, out, queries, NOW + timedelta(minutes=minutes))
    pages = files(out)
    assert docs.read_text() == "checks"
    assert "queries/renamed.html" in pages
    assert "queries/unpublished.html" not in pages
    builds = {path.name for path in (out / "data").iterdir()}
    assert len(builds) == 2  # an older page that is open still finds its data
    assert not builds & first
    for name, page in pages.items():
        for link in re.findall(r'(?:src|href)="([^"#:]+\.(?:js|css|html))"', page.decode()):
            assert ((out / name).parent / link).is_file(), (name, link)
    assert not [*out.glob(".report-*")]


def test_a_build_that_fails_leaves_the_old_site(
    config: Config, queries: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(config, out, queries, NOW)
    before = files(out)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(build_module.checks, "strips", fail)
    with pytest.raises(OSError, match="no space left"):
        build(config, out, queries, NOW + timedelta(minutes=1))
    assert files(out) == before
    assert not [*out.glob(".report-*")]


def test_pages_need_no_network(site: Path) -> None:
    for name, page in files(site).items():
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', page.decode()), name


def test_a_site_that_cannot_be_written_is_said(config: Config, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="the site cannot be written there"):
        build(config, tmp_path / "file")


def test_the_command(
    config: Config, queries: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(queries.parent)
    assert main(["report", "--lake", config.lake]) == 0
    told = capsys.readouterr()
    assert "queries: 4" in told.out
    assert f"open {queries.parent / 'site' / 'index.html'}" in told.out
    assert "queries/broken.html: queries/stock/broken.query:2:1" in told.err
    assert (queries.parent / "site/index.html").is_file()


# ------------------------------------------------------------------------------------------------------------- helpers


def _data(site: Path, name: str) -> dict:  # type: ignore[type-arg]
    """What a script of data gives."""
    script = max(site.glob(f"data/*/{name}.js"))
    found = re.fullmatch(r'trends\.put\("[^"]+",(.*)\);\n', script.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def _times(steps: list[int]) -> list[datetime]:
    return [datetime.fromtimestamp(sum(steps[: number + 1]) / 1000, UTC) for number in range(len(steps))]
