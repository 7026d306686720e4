"""Data Docs: pages that open from disk without a network, with an index of all runs that can be filtered.

Great Expectations renders what each check says; the frame around it, the stylesheet and the script are ours, since its
own pages load theirs from several hosts. A page's path says all that the index needs:
`<dataset>/<day>/<table>/<time>.<run>.<state>.html`.
"""

from __future__ import annotations

import fcntl
import html
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.quality.checkpoint import Validation, quiet
from pipeline.quality.report import Result
from pipeline.quality.subject import Subject

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
KEPT = 10  # pages of one table and day; the oldest go first
PAGE = re.compile(r"(?P<time>\d{8}T\d{6}\.\d{6})\.(?P<run>.+)\.(?P<state>[a-z]+)\.html")
TIME = "%Y%m%dT%H%M%S.%f"
ROOT = "../../.."
ORDER = ("failed", "waived", "warned", "passed")  # what needs somebody comes first


@dataclass(frozen=True)
class Run:
    """A line of the index."""

    dataset: str
    day: str
    table_name: str
    state: str
    run_id: str
    checked_at: str
    link: str


def write_page(site: Path, subject: Subject, validation: Validation, results: tuple[Result, ...], state: str) -> Path:
    """Write the page of one checkpoint, and the index anew; returns the page's path."""
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

    checked_at = results[0].checked_at
    folder = site / subject.dataset.name / f"{subject.day}" / subject.table_name
    run = re.sub(r"[^\w-]+", "-", subject.run_id)[:100]
    page = folder / f"{checked_at.astimezone(UTC).strftime(TIME)}.{run}.{state}.html"
    with quiet():
        for result in validation.result.results:
            result.result = _escaped(result.result)
        document = ValidationResultsPageRenderer(run_info_at_end=True).render(validation.result)
        # The first section repeats the run's name and counts, with links into a site that is not there.
        document.sections = document.sections[1:]
        text = _view().render(
            document,
            template="quality_page.j2",
            root=ROOT,
            state=state,
            day=f"{subject.day}",
            run_id=subject.run_id,
            table_name=subject.table_name,
            checked_at=f"{checked_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            checks=sorted(_lines(validation, results), key=lambda line: ORDER.index(line["state"])),
        )
    folder.mkdir(parents=True, exist_ok=True)
    _replace(page, text)
    for old in sorted(path for path in folder.glob("*.html") if PAGE.fullmatch(path.name))[:-KEPT]:
        old.unlink(missing_ok=True)
    write_index(site)
    return page


def write_index(site: Path) -> None:
    """List every page there is. Days that are checked at once wait for each other, so that none is forgotten."""
    site.mkdir(parents=True, exist_ok=True)
    with (site / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = sorted(_runs(site), key=lambda run: (run.day, run.checked_at, run.table_name), reverse=True)
        choices = {
            "dataset": sorted({run.dataset for run in runs}),
            "table": sorted({run.table_name for run in runs}),
            "result": sorted({run.state for run in runs}),
        }
        _replace(site / "index.html", _index().render(runs=runs, choices=choices))
        for name in ("quality.css", "quality.js"):
            shutil.copyfile(TEMPLATES / name, site / name)


@cache
def _view() -> Any:
    """Made once: a template is compiled when it is first used, which takes longer than to fill it in."""
    from great_expectations.render.view.view import DefaultJinjaPageView

    return DefaultJinjaPageView(custom_views_directory=str(TEMPLATES))


@cache
def _index() -> Template:
    from jinja2 import Environment, FileSystemLoader

    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True).get_template("quality_index.j2")


def _runs(site: Path) -> Iterator[Run]:
    for page in site.glob("*/*/*/*.html"):
        parts = PAGE.fullmatch(page.name)
        if parts:
            dataset, day, table_name = page.relative_to(site).parts[:3]
            checked_at = f"{datetime.strptime(parts['time'], TIME):%Y-%m-%d %H:%M:%S}"
            link = page.relative_to(site).as_posix()
            yield Run(dataset, day, table_name, parts["state"], parts["run"], checked_at, link)


def _lines(validation: Validation, results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    about = {one.check.name: one.check.configuration.get("description", "") for one in validation.outcomes}
    for result in results:
        yield {
            "short_name": result.expectation.rpartition(".")[2],
            "description": about.get(result.expectation, ""),
            "severity": result.severity,
            "state": result.state,
            "observed": "" if result.observed is None else result.observed,
            "unexpected": "" if result.unexpected is None else f"{result.unexpected:,}",
            "examples": result.examples,
            "waived_reason": result.waived_reason,
        }


def _escaped(value: Any) -> Any:
    """Values as HTML: the cells of Great Expectations' tables would take a file's text for markup."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    return [_escaped(each) for each in value] if isinstance(value, list) else value


def _replace(path: Path, text: str) -> None:
    """Write a file that readers see whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(path)
