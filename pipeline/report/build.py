"""The site from the lake and the query files: each page by itself, so that what is wrong with one stays on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline.arrow_tables import StoredTable, open_table
from pipeline.config import Config
from pipeline.datasets.declaration import Dataset
from pipeline.delta import MissingTableError
from pipeline.explain import explain
from pipeline.publish.engine_runs import COMPARISON
from pipeline.publish.stale import Stale
from pipeline.questions import FOLDER
from pipeline.report import checks, comparison, overview
from pipeline.report.answers import Answers, page_data, read_answers
from pipeline.report.changes import Silver
from pipeline.report.drawing import as_svg
from pipeline.report.facts import Facts, read_facts, told
from pipeline.report.highlight import highlighted
from pipeline.report.revisions import Revisions, read_revisions
from pipeline.report.samples import sample
from pipeline.report.site import Site, building
from pipeline.report.stale import stale, words
from pipeline.report.subjects import HISTORY, Subject, subjects

PUBLICATIONS = 30  # intervals of a query that are listed
RUNS = 30


@dataclass(frozen=True)
class Built:
    """What was written, and what was wrong, by page."""

    folder: Path
    queries: int
    errors: Mapping[str, str]


def build(
    config: Config,
    out: Path,
    queries: Path = FOLDER,
    now: datetime | None = None,
    benchmarks: Path = comparison.BENCHMARKS,
) -> Built:
    """Write the site into a folder; what is in it already is replaced at once, at the end."""
    built_at = now or datetime.now(UTC)
    with building(out, built_at) as site:
        report = _Report(config, site, out, read_facts(config), built_at)
        known = subjects(config, queries, report.facts.publications)
        lines = [report.query(subject) for subject in known]
        report.engines(known, benchmarks)
        report.quality()
        report.front(lines)
    return Built(out, len(known), report.errors)


@dataclass
class _Report:
    config: Config
    site: Site
    out: Path
    facts: Facts
    now: datetime
    errors: dict[str, str] = field(default_factory=dict)
    silvers: dict[str, Silver] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.errors |= self.facts.errors
        self.has_docs = (self.out / "quality" / "index.html").is_file()

    def front(self, queries: list[overview.QueryLine]) -> None:
        """The front page."""
        datasets = overview.dataset_lines(self.facts, self.now)
        self._page(
            "index.html",
            "overview.j2",
            alerts=overview.alerts(self.facts, datasets, queries),
            datasets=datasets,
            nights=overview.nights(self.facts),
            queries=queries,
            words=words,
        )

    def engines(self, known: list[Subject], benchmarks: Path) -> None:
        """Engines against each other."""
        nightly, measured = comparison.comparisons(self.facts, known), comparison.benchmarks(benchmarks)
        lines = comparison.reached(self.facts, known)
        names = comparison.order([name for line in lines for name in line.engines])
        self._page(
            "engines.html",
            "engines.j2",
            reached=lines,
            engines=names,
            comparisons=nightly,
            benchmarks=measured,
            data=self.site.data("engines", [*nightly, *measured]),
        )

    def quality(self) -> None:
        """What the checks found."""
        pages = checks.data_docs(self.out)
        days, strips = checks.strips(self.facts, pages)
        put_aside = checks.quarantined(self.config, self.facts)
        bars = [
            {"dataset": one.dataset, "days": [f"{day}" for day in one.days], "reasons": one.reasons}
            for one in put_aside
        ]
        self._page(
            "quality.html",
            "quality.j2",
            days=days,
            strips=strips,
            failures=checks.failures(self.facts),
            pages=pages,
            quarantined=put_aside,
            data=self.site.data("quarantine", bars),
        )

    def query(self, subject: Subject) -> overview.QueryLine:
        """A query's page, and its line for the overview."""
        wrong: dict[str, str] = {"query": subject.error} if subject.error else {}

        def attempt(part: str, action: Callable[[], Any]) -> Any:
            """A part of the page; what is wrong with it is shown in its place."""
            try:
                return action()
            except MissingTableError:
                return None
            except Exception as error:
                wrong[part] = told(error)
                return None

        question = subject.question
        published = self.facts.published(subject.name)
        found: Mapping[date, Stale] = {}
        if question is not None and published:
            found = attempt("stale", lambda: stale(self._silver(question.dataset), question, published)) or {}
        gold: StoredTable | None = attempt("answers", lambda: open_table(self.config, f"gold.{subject.name}"))
        answers: Answers | None = None
        revisions: Revisions | None = None
        trends = None
        if gold is not None:
            answers = attempt("answers", lambda: read_answers(subject, gold))
            revisions = attempt("revisions", lambda: self._revisions(subject, gold))
        if question is not None and answers is not None and len(answers.frame):
            trends = attempt("samples", lambda: sample(self.config, question, answers))
        runs = [run for run in reversed(self.facts.runs(subject.name)) if run.purpose != COMPARISON]
        context = {
            "answers": answers,
            "data": attempt("answers", lambda: self._data(subject, answers)) if answers is not None else None,
            "plan": attempt("plan", lambda: explain(question.query)) if question else None,
            "drawing": attempt("plan", lambda: Markup(as_svg(question.query))) if question else None,
            "revisions": revisions,
            "sample": trends,
        }
        self._page(
            subject.page,
            "query.j2",
            subject=subject,
            text=highlighted(subject.text),
            published=published[::-1][:PUBLICATIONS],
            intervals=len(published),
            stale=found,
            words=words,
            runs=runs[:RUNS],
            wrong=wrong,
            **context,
        )
        if wrong:
            self.errors[subject.page] = "\n".join(wrong.values())
        return overview.query_line(subject, self.facts, found, "\n".join(wrong.values()) or None)

    def _revisions(self, subject: Subject, gold: StoredTable) -> Revisions:
        history = open_table(self.config, f"gold.{subject.name}{HISTORY}")
        silver = self._silver(subject.dataset) if subject.dataset else None
        return read_revisions(subject, gold, history, silver)

    def _data(self, subject: Subject, answers: Answers) -> str:
        reach = subject.question.reach if subject.question else None
        within = reach.within / 1000 if reach else None
        slide = reach.slide / 1000 if reach and reach.slide else None
        about, chunks = page_data(answers, within, slide)
        scripts = [self.site.data(f"{subject.name}-{number}", chunk) for number, chunk in enumerate(chunks)]
        return self.site.data(subject.name, about | {"chunks": scripts})

    def _silver(self, dataset: Dataset) -> Silver:
        return self.silvers.setdefault(dataset.name, Silver(self.config, dataset))

    def _page(self, path: str, template: str, **context: Any) -> None:
        self.site.page(path, template, has_docs=self.has_docs, **context)
