"""The pages in a real browser, from disk and without a network: clicked, filtered and read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pipeline.config import Config
from pipeline.quality.mask import masked
from pipeline.report.build import build
from tests.report import lake
from tests.report.lake import MONDAY, answer, at, question

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = (
    "index.html",
    "engines.html",
    "quality.html",
    "queries/falling.html",
    "queries/drivers.html",
    "queries/broken.html",
)
READY = "document.getElementById('chart').dataset.ready"
LUMINANCE = """
(text) => {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
  const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
"""

Open = Callable[..., "Page"]


@pytest.fixture
def opened(browser: Browser, site: Path) -> Iterator[Open]:
    """Opens a page of the site; nothing may go wrong on it."""
    contexts, mistakes = [], []

    def open_page(name: str, width: int = 1280, scheme: str = "light", folder: Path = site) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,  # type: ignore[arg-type]
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: mistakes.append(f"{name}: {error}"))
        page.on("requestfailed", lambda request: mistakes.append(f"{name}: {request.url}"))
        page.goto((folder / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert mistakes == []


def texts(page: Page, selector: str) -> list[str]:
    """The texts of what is visible."""
    return [text.strip() for text in page.locator(f"{selector} >> visible=true").all_inner_texts()]


def drawn(page: Page, chart: str = "chart") -> list[dict[str, Any]]:
    """The lines of a chart."""
    found: list[dict[str, Any]] = page.evaluate(
        f"document.getElementById('{chart}').data.map(({{name, type, x, y, text}}) =>"
        " ({name, type, text: [...text ?? []], x: [...x], y: [...y]}))"
    )
    return found


def test_the_list_of_queries_is_filtered(opened: Open) -> None:
    page = opened("index.html")
    assert len(texts(page, "#query-list tbody tr")) == 4
    page.get_by_label("search").fill("fall")
    assert texts(page, "#query-list tbody th") == ["falling"]
    page.get_by_label("search").fill("")
    page.get_by_role("combobox", name="dataset").select_option("taxi")
    assert texts(page, "#query-list tbody th") == ["drivers"]
    page.get_by_role("link", name="drivers").click()
    assert page.title() == "drivers · Trendmill"
    page.wait_for_function(READY)
    page.get_by_role("link", name="Data Docs").click()
    assert page.title() == "Checks"


def test_answers_are_drawn_and_listed(opened: Open) -> None:
    page = opened("queries/falling.html")
    page.wait_for_function(READY)
    lines = {line["name"]: line for line in drawn(page)}
    assert lines.keys() == {"Computer", "Chip", "revised"}
    # Beyond what a number of the browser holds, the exponents are drawn; the digits are in the words.
    assert [y for y in lines["Computer"]["y"] if y is not None] == pytest.approx(
        [math.log10(7), 100 * math.log10(2), 2000 * math.log10(2), math.log10(3)], abs=1e-5
    )
    hover = next(text for text in lines["Computer"]["text"] if "13:00" in text)
    assert str(2**100) in hover.replace(",", "").replace("<br>", "")
    assert "logarithmic" in page.locator("#chart-note").inner_text()
    rows = texts(page, "#rows tbody tr")
    assert len(rows) == 6
    assert any("revision" in text for text in lines["revised"]["text"])

    page.get_by_label("Chip").uncheck()
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 4")
    assert {line["name"] for line in drawn(page)} == {"Computer", "revised"}
    page.locator("#day").select_option("2030-01-08")
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 1")
    assert "2030-01-08 12:00:00" in texts(page, "#rows tbody tr")[0]
    page.get_by_role("button", name="whole range").click()
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 4")
    page.get_by_role("button", name="none").click()
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 0")


def test_dragging_over_the_chart_narrows_the_rows(opened: Open) -> None:
    page = opened("queries/falling.html")
    page.wait_for_function(READY)
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 6")
    box = page.locator("#chart .nsewdrag").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 120, steps=5)
    page.mouse.up()
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 2")


def test_groups_are_searched_and_masked(opened: Open) -> None:
    page = opened("queries/drivers.html")
    page.wait_for_function(READY)
    labels = [str(masked("driver", f"driver {number}")) for number in range(2)]
    assert sorted(texts(page, "#group-list span")) == sorted(labels)
    page.locator("#group-search").fill(labels[1][-6:])
    assert texts(page, "#group-list span") == [labels[1]]
    page.locator("#item").select_option("avg_t_speed")
    page.wait_for_function("document.getElementById('chart').data[0].y[0] === 30")
    assert "linear" in page.locator("#chart-note").inner_text()


def test_engines_are_compared(opened: Open) -> None:
    page = opened("engines.html")
    page.wait_for_function("document.getElementById('stored').data")
    lines = {line["name"]: line for line in drawn(page, "time")}
    assert lines.keys() == {"sase", "pane", "cogra", "sase: did not finish"}
    assert (lines["sase"]["x"], lines["sase: did not finish"]["x"]) == ([8, 16], [32, 64])
    assert lines["sase: did not finish"]["y"] == [12, 12]
    types = page.evaluate("['xaxis', 'yaxis'].map((axis) => document.getElementById('time').layout[axis].type)")
    assert types == ["log", "log"]
    assert "sase\tdid not finish\t> 12" in page.locator("#points").inner_text()


def test_benchmarks_are_shown_beside_them(opened: Open) -> None:
    page = opened("engines.html")
    page.wait_for_function("document.getElementById('stored').data")
    page.get_by_label("comparison").select_option("cogra-5: events a window, any-match")
    lines = {line["name"]: line for line in drawn(page, "time")}
    assert (lines["flink cep"]["x"], lines["flink cep: did not finish"]["x"]) == ([1000], [2000])
    assert lines["pane"]["y"] == [0.002, 0.004]
    assert page.locator("#about").inner_text().startswith("Figure 5. RETURN COUNT(*)")
    assert page.evaluate("document.getElementById('time').layout.xaxis.title.text") == "events"
    assert "pane\tfinished\t0.004\t500,000\t3\t1.049" in page.locator("#points").inner_text()


def test_failures_are_filtered(opened: Open) -> None:
    page = opened("quality.html")
    page.locator("[data-filter=failure-list]").get_by_label("result").select_option("waived")
    assert texts(page, "#failure-list tbody tr td.time") == ["2030-01-07"]
    cell = page.get_by_role("link", name="silver.stock, 2030-01-08: 1 of 2 checks failed")
    cell.click()
    assert page.title() == "silver.stock"


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_phone_and_have_contrast_in_the_dark(opened: Open, name: str) -> None:
    phone = opened(name, width=320)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 320
    dark = opened(name, scheme="dark")
    if dark.locator(".chart").count():
        dark.wait_for_function("document.querySelector('.chart').layout")
        page = dark.evaluate("getComputedStyle(document.body).backgroundColor")
        paper = dark.evaluate("document.querySelector('.chart').layout.paper_bgcolor")
        assert dark.evaluate(LUMINANCE, page) == pytest.approx(dark.evaluate(LUMINANCE, paper))
    for page in (phone, dark):
        back = page.evaluate(LUMINANCE, page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for selector in ("body", "a", ".state", ".about", "th", ".q-word", ".q-note"):
            if page.locator(selector).count():
                colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
                front = page.evaluate(LUMINANCE, colour)
                assert (max(front, back) + 0.05) / (min(front, back) + 0.05) >= 4.5, (selector, colour)


def test_answers_are_in_view_on_a_phone(opened: Open) -> None:
    """Also one of 603 digits: nobody scrolls to the side for what the page is about."""
    page = opened("queries/falling.html", width=390)
    page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 6")
    for cell in page.locator("#rows tbody td.number").all():
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
    assert texts(page, "#rows thead th")[:3] == ["window start", "sector", "count"]


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible(opened: Open, name: str) -> None:
    page = opened(name)
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == 1
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = "input:not([aria-label]), select:not([aria-label])"
    assert page.evaluate(f"[...document.querySelectorAll('{unnamed}')].filter((one) => !one.labels.length).length") == 0
    assert page.evaluate("[...document.querySelectorAll('th')].filter((one) => !one.scope).length") == 0
    assert page.locator(".chart:not([aria-label])").count() == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_a_hundred_thousand_windows(opened: Open, tmp_path: Path) -> None:
    windows = 100_000
    config = Config(str(tmp_path / "lake"), str(tmp_path / "landing"))
    queries = tmp_path / "queries/stock"
    queries.mkdir(parents=True)
    text = lake.FALLING.replace("SLIDE 10 minutes", "SLIDE 10 seconds")
    (queries / "falling.query").write_text(text)
    asked = question("stock/falling.query")
    first = answer(asked, at(MONDAY), {"sector": "Computer"}, {"count": 1})
    starts = np.datetime64(at(MONDAY).replace(tzinfo=None), "us") + np.arange(windows) * np.timedelta64(10, "s")
    bits = 10 + np.arange(windows) % 120
    columns = {name: [value] * windows for name, value in first.items()}
    columns |= {"window_start": starts, "window_end": starts + np.timedelta64(10, "m")}
    columns |= {"count": [str(1 << int(bit)) for bit in bits], "count_log10": bits * math.log10(2)}
    write_deltalake(
        asked.table.path(config), pa.table({name: _timed(value) for name, value in columns.items()}),
        partition_by=["interval_date"],
    )  # fmt: skip

    site = build(config, tmp_path / "site", tmp_path / "queries", datetime(2030, 2, 1, tzinfo=UTC)).folder
    page = opened("queries/falling.html", folder=site)
    page.wait_for_function(READY)
    [line] = drawn(page)
    # Few points, but no peak is lost: bits go from 10 to 129 and begin again.
    assert len(line["x"]) < 5000
    assert (min(line["y"]), max(line["y"])) == (2**10, pytest.approx(2.0**129))
    assert "the least and the greatest are drawn" in page.locator("#chart-note").inner_text()
    page.locator("#scale").select_option("linear")
    page.wait_for_function("document.getElementById('chart').layout.yaxis.type === 'linear'")
    page.get_by_role("button", name="older").click()
    assert texts(page, "#rows tbody tr")[0].startswith(
        f"{at(MONDAY) + timedelta(seconds=10 * (windows - 26)):%Y-%m-%d %H:%M:%S}"
    )


def _timed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "M":
        return pa.array(value).cast(pa.timestamp("us", "UTC"))
    return pa.array(value)
