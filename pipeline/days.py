"""One landing day of a dataset: landing → bronze → staged → checked → quarantine and silver → `ops.intervals`.

Each step is safe to repeat, and nothing is committed before it was checked: a run that was killed anywhere is made good
by the next one. A day whose files are in silver already is left alone.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from pipeline import delta, intervals
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.ingest import bronze
from pipeline.ingest.landing import file_sizes, find_files, same_content
from pipeline.intervals import COMPLETE, FAILED, MISSING, File, Interval
from pipeline.quality.check import check
from pipeline.quality.report import QualityError
from pipeline.sources.formats import UNKNOWN
from pipeline.sources.landing_rows import LandingFile, path_of
from pipeline.tables import bronze as bronze_table
from pipeline.tables import catalogue
from pipeline.tables import silver as silver_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.datasets.declaration import Dataset
    from pipeline.refine.events import Layout

TRIES = 5  # at a day whose files change while it is refined


class MissingFilesError(TrendsError):
    """A day on which files were expected and none came."""


class ReconciliationError(TrendsError):
    """Rows that went in and did not come out: a mistake in this program."""


def prepare(spark: SparkSession, config: Config, dataset: Dataset) -> None:
    """Make the tables that a dataset needs, once before its days."""
    for table in catalogue([dataset]):
        delta.create(spark, config, table)


def new_run_id() -> str:
    """A name for a run, which sorts by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def process_day(
    spark: SparkSession,
    config: Config,
    dataset: Dataset,
    day: date,
    run_id: str,
    *,
    reprocess: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Interval:
    """Bring a landing day into silver; the interval as it is then."""
    work = _Day(spark, config, dataset, day, run_id, say)
    return work.to_silver(work.to_bronze(reprocess), reprocess)


def ingest_day(
    spark: SparkSession,
    config: Config,
    dataset: Dataset,
    day: date,
    run_id: str,
    *,
    reprocess: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """The first half of `process_day`: bring a landing day's files into bronze; what a person should look at."""
    return _Day(spark, config, dataset, day, run_id, say).to_bronze(reprocess)


def refine_day(
    spark: SparkSession,
    config: Config,
    dataset: Dataset,
    day: date,
    run_id: str,
    warnings: Sequence[str] = (),
    *,
    reprocess: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Interval:
    """The second half: bring what bronze has of the day into silver. `warnings`: what the first half gave."""
    return _Day(spark, config, dataset, day, run_id, say).to_silver(warnings, reprocess)


class _Day:
    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        dataset: Dataset,
        day: date,
        run_id: str,
        say: Callable[[str], None],
    ) -> None:
        self.lake = spark, config, dataset, day
        self.spark, self.config, self.dataset, self.day = spark, config, dataset, day
        self.run_id, self.say = run_id, say
        self.metadata = {"run_id": run_id}
        self.warnings: list[str] = []
        self.last: Interval | None = None
        self.version: int | None = None  # of bronze, once this run has written there

    def to_bronze(self, reprocess: bool) -> list[str]:
        """New and changed files into bronze; what a person should look at."""
        files = find_files(self.config, self.dataset, self.day)
        known = bronze.known_files(*self.lake)
        if not files and not known:
            self._without_files()
            return []
        past = {one.landing_date: one for one in intervals.read(self.spark, self.config, self.dataset.name)}
        self.last = past.get(self.day)
        self.warnings = same_content(files, _paths_of_hashes(past.values()))
        self.version = self._ingest(files, known, reprocess)
        return self.warnings

    def to_silver(self, arrived: Sequence[str], reprocess: bool) -> Interval:
        """What bronze has into silver, again if the files changed meanwhile."""
        known = bronze.known_files(*self.lake)
        if not known:
            return self._without_files()
        self.last = next(iter(intervals.read(self.spark, self.config, self.dataset.name, self.day, self.day)), None)
        if self.last and not reprocess and self._is_complete(self.last, known):
            self.say("is complete already")
            return self.last
        for attempt in range(TRIES):
            if self.version is None or attempt:
                self.version = delta.current_version(self.spark, self.config, bronze_table(self.dataset))
            self.warnings = [*arrived]
            interval, hashes = self._refine(self.version)
            # Another run may have put newer files into bronze, and their events into silver before ours.
            if bronze.known_files(*self.lake) == hashes:
                intervals.write(self.spark, self.config, interval)
                return interval
        raise TrendsError(f"{self.dataset.name} {self.day}: its files keep changing\nhint: ingest it again later")

    def _is_complete(self, last: Interval, known: dict[str, str]) -> bool:
        """Whether silver has the events of the files that bronze has."""
        return last.status == COMPLETE and last.inputs == _digest(known) and not self._is_overwritten(last)

    def _is_overwritten(self, last: Interval) -> bool:
        """Whether a run with older files came to silver after it, and was killed before it could see that."""
        commits = delta.history(self.spark, self.config, silver_table(self.dataset), delta.SEARCHED[-1])
        later = (commit for commit in commits if commit.version > (last.silver_version or 0))
        inputs = (commit.metadata["inputs"] for commit in later if commit.metadata.get("landing_date") == str(self.day))
        return next(inputs, last.inputs) != last.inputs

    def _without_files(self) -> Interval:
        expected = self.dataset.expects(self.day)
        interval = Interval(self.dataset.name, self.day, MISSING if expected else COMPLETE, self.run_id)
        last = intervals.read(self.spark, self.config, self.dataset.name, self.day, self.day)
        if not last or last[0].status != interval.status:
            intervals.write(self.spark, self.config, interval)
        if expected:
            folder = f"{self.config.landing}/{self.dataset.name}/{self.day}"
            due = self.dataset.expected_at(self.day)
            raise MissingFilesError(
                f"{self.dataset.name} {self.day}: no file in {folder}, where some should be "
                f"by {due:%Y-%m-%d %H:%M %Z}\nhint: put the day's files there and run it again"
            )
        return interval

    def _ingest(self, files: Sequence[LandingFile], known: dict[str, str], reprocess: bool) -> int | None:
        """Put new and changed files into bronze, when reprocessing those too of no known format; the version, if any.

        What other runs put there until then is in that version too.
        """
        here = bronze.day_rows(*self.lake)
        unknown = set()
        if reprocess:
            found = here.where(f"format = '{UNKNOWN}'").select("file").distinct().collect()
            unknown = {path_of(row.file) for row in found}
        new = [file for file in files if known.get(file.path) != file.hash or file.path in unknown]
        if not new:
            return None
        self.say(f"reads {len(new):,} files, {sum(file.bytes for file in new) / 1e6:,.1f} MB")
        paths = [file.path for file in new]
        rows = _staged(bronze.read_files(self.spark, self.dataset, new))
        day = bronze.with_kept(rows, here, paths) if known.keys() - {*paths} else rows
        self._check("bronze", day, source_rows=day.count(), quarantined=0)
        self._forget_inputs()
        self.say("writes bronze")
        return bronze.commit(*self.lake, rows, paths, self.metadata)

    def _forget_inputs(self) -> None:
        """Until silver has the new files' events nobody may take the day for done, though its old files come back."""
        if self.last and self.last.inputs is not None:
            self.last = replace(self.last, inputs=None)
            intervals.write(self.spark, self.config, self.last)

    def _refine(self, version: int) -> tuple[Interval, dict[str, str]]:
        """Bring the day's rows of a version of bronze into quarantine and silver; with the hashes of the files."""
        from pipeline.refine import staged as stage
        from pipeline.refine.events import refined

        rows = bronze.day_rows(*self.lake, version)
        files, layouts = self._contents(rows)
        hashes = {path_of(file.file): file.hash for file in files}
        inputs = _digest(hashes)
        source_rows = sum(file.rows for file in files)
        self.say(f"refines {source_rows:,} rows")
        staged = _staged(refined(rows, self.dataset, self.day, layouts, source_rows))
        counts = stage.counted(staged, self.dataset)
        interval = Interval(
            self.dataset.name,
            self.day,
            COMPLETE,
            self.run_id,
            inputs=inputs,
            bronze_version=version,
            files=files,
            source_rows=source_rows,
            **asdict(counts),
        )
        if not interval.is_reconciled:
            raise ReconciliationError(f"{self.dataset.name} {self.day}: rows do not add up: {interval}")
        events = stage.silver_events(staged, self.dataset)
        formats = {file.file: file.format for file in files}
        self._check("silver", events, formats=formats, source_rows=source_rows, quarantined=interval.quarantined)
        self.say("writes silver")
        quarantine_version = stage.commit_quarantine(*self.lake, staged, hashes.values(), self.metadata)
        told = self.metadata | {"landing_date": str(self.day), "inputs": inputs}
        silver_version = stage.commit_silver(*self.lake, events, told)
        self.say(
            f"has {interval.events:,} events; {interval.quarantined:,} rows in quarantine, "
            f"{interval.duplicates:,} duplicates"
        )
        done = replace(
            interval,
            silver_version=silver_version,
            quarantine_version=quarantine_version,
            warnings=self.warnings,
            completed_at=datetime.now(UTC),
        )
        return done, hashes

    def _contents(self, rows: DataFrame) -> tuple[list[File], list[Layout]]:
        """The day's files, and the formats and headers that they have."""
        found = rows.groupBy("file", "file_hash", "format", "header").count().collect()
        sizes = {path_of(file.file): file.bytes for file in (self.last.files if self.last else ())}
        sizes |= file_sizes(self.config, self.dataset, self.day)
        files = [File(r.file, r.file_hash, r.format, r["count"], sizes.get(path_of(r.file), 0)) for r in found]
        return sorted(files, key=lambda file: file.file), sorted({(row.format, row.header) for row in found}, key=str)

    def _check(self, layer: str, frame: DataFrame, **facts: object) -> None:
        """Check a staged table; a critical failure ends the day, which is recorded."""
        self.say(f"checks {layer}")
        table = f"{layer}.{self.dataset.name}"
        report = check(*self.lake, table, frame, self.run_id, **facts)  # type: ignore[arg-type]
        self.warnings += report.warnings
        try:
            report.raise_on_critical()
        except QualityError:
            before = self.last or Interval(self.dataset.name, self.day, FAILED, self.run_id)
            failed = replace(
                before, status=FAILED, run_id=self.run_id, warnings=self.warnings, completed_at=datetime.now(UTC)
            )
            intervals.write(self.spark, self.config, failed)
            raise


def _paths_of_hashes(past: Iterable[Interval]) -> dict[str, str]:
    """Of every content that came before, the first path that it came under."""
    paths: dict[str, str] = {}
    for interval in past:
        for file in interval.files:
            paths.setdefault(file.hash, path_of(file.file))
    return paths


def _staged(frame: DataFrame) -> DataFrame:
    """A frame that is computed once and read several times, before readers of the tables see it.

    What was checked is what is written: where it is lost with its executor the run fails, since what it came from may
    be another by then. Every query starts from the rows, not from the long plan that made them, which takes Spark
    longer to look through than a small day's rows. The rows go with the frame, when Spark's cleaner finds it unused.
    """
    from pyspark import StorageLevel

    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)


def _digest(files: dict[str, str]) -> str:
    """A day's files and their content in one text."""
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()
