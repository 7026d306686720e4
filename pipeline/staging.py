"""Staged answers: what one step of a question's interval leaves for the next, below `<lake>/_staging`.

    <lake>/_staging/<run>/answers-<id>/           the rows of a job, which may have several questions
    <lake>/_staging/<run>/<query>.<step>.json     what a step found out, and which answers it was about

A note is written last and in one piece, so that whoever finds it finds all that it tells of. What was checked is what
is published: a step refuses notes about other answers.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from pipeline.aggregate import few, tasks
from pipeline.aggregate.job import Answer, aggregated, staged_rows
from pipeline.config import Config
from pipeline.engines.choice import AUTO
from pipeline.errors import TrendsError
from pipeline.questions import Question
from pipeline.sources.landing_bytes import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "_staging"
SHARED, AGGREGATED, COMPARED, CHECKED = "shared", "aggregated", "compared", "checked"
KEPT = timedelta(days=14)

Note = dict[str, Any]


class StagingError(TrendsError):
    """Staged answers that are gone, or are not those that were checked."""


class Staging:
    """The staged answers of one run for one interval."""

    def __init__(self, config: Config, run_id: str, day: date) -> None:
        self.config, self.day = config, day
        self.folder = f"{config.lake}/{FOLDER}/{day}-{re.sub(r'[^A-Za-z0-9.-]+', '_', run_id)}"

    def stage(
        self, spark: SparkSession, questions: Sequence[Question], *, engine: str = AUTO, step: str = AGGREGATED
    ) -> None:
        """Answer questions over one dataset in one job, and keep the answers and what they took."""
        name = f"answers-{uuid.uuid4().hex[:12]}"
        asked = [(question, question.reach.ends(self.day)) for question in questions]
        with aggregated(spark, self.config, asked, engine=engine, folder=f"{self.folder}/{name}") as answers:
            for number, answer in enumerate(answers):
                facts = {key: value for key, value in vars(answer).items() if key not in ("question", "rows", "few")}
                note = facts | {"answers": name, "number": number, "query_version": answer.question.version}
                self.write(answer.question, step, note)

    def take(self, question: Question, engine: str) -> bool:
        """Make the answers that a shared job left the question's own, once; whether there were some."""
        note = self.read(question, SHARED)
        if note is None or (note["query_version"], note["engine"]) != (question.version, engine):
            return False
        system, folder = locate(self.folder)
        system.move(f"{folder}/{question.name}.{SHARED}.json", f"{folder}/{question.name}.{AGGREGATED}.json")
        return True

    def is_up_to_date(self, question: Question, silver_version: int, engine: str) -> bool:
        """Whether the answers of this query on this version of silver, by this engine, are there."""
        note = self.read(question, AGGREGATED)
        wanted = question.version, silver_version, engine
        return (
            note is not None
            and (note["query_version"], note["silver_version"], note["engine"]) == wanted
            and _exists(f"{self.folder}/{note['answers']}")
        )

    def answer(self, spark: SparkSession, question: Question) -> Answer:
        """A question's staged answers."""
        note = self._aggregated(question)
        folder = f"{self.folder}/{note.pop('answers')}"
        number, version = note.pop("number"), note.pop("query_version")
        if version != question.version:
            raise self._error(question, "the query has changed since its answers were staged")
        if not _exists(folder):
            raise self._error(question, f"its staged answers are gone from {folder}")
        rows = staged_rows(spark.read.schema(tasks.SCHEMA).parquet(folder), number, question)
        answer = Answer(question, rows=rows, **note | {"files": tuple(note["files"])})
        found = few.staged(*locate(folder), number, question)
        return answer if found is None else few.with_rows(spark, answer, found)

    def write(self, question: Question, step: str, note: Note) -> None:
        """Keep what a step found out, in the place of what it did before."""
        system, folder = locate(self.folder)
        system.create_dir(folder, recursive=True)
        path = f"{folder}/{question.name}.{step}.json"
        making = f"{path}.{uuid.uuid4().hex[:12]}"
        with system.open_output_stream(making) as stream:
            stream.write(json.dumps(note, default=str).encode())
        system.move(making, path)

    def about(self, question: Question) -> str:
        """Which answers are staged now: what the notes of later steps say that they are about."""
        return str(self._aggregated(question)["answers"])

    def noted(self, question: Question, step: str) -> Note:
        """What a step found out about the answers that are staged now."""
        note = self.read(question, step)
        if note is None or note["about"] != self.about(question):
            raise StagingError(
                f"{question.name} {self.day}: the answers that are staged now were not {step}\n"
                f"hint: clear the task that does that, or aggregate; see {self.folder}"
            )
        return note

    def read(self, question: Question, step: str) -> Note | None:
        """What a step has left, if it has."""
        system, folder = locate(self.folder)
        try:
            with system.open_input_stream(f"{folder}/{question.name}.{step}.json") as stream:
                found: Note = json.loads(stream.read())
        except FileNotFoundError:
            return None
        return found

    def _aggregated(self, question: Question) -> Note:
        note = self.read(question, AGGREGATED)
        if note is None:
            raise self._error(question, f"no answers are staged in {self.folder}")
        return note

    def _error(self, question: Question, what: str) -> StagingError:
        return StagingError(f"{question.name} {self.day}: {what}\nhint: clear the query's task aggregate")


def remove_old(config: Config, now: datetime | None = None) -> list[str]:
    """Remove what runs staged and did not touch for as long as `KEPT`; the folders."""
    system, root = locate(f"{config.lake}/{FOLDER}")
    before = (now or datetime.now(UTC)) - KEPT
    gone = []
    for run in system.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        files = system.get_file_info(fs.FileSelector(run.path, recursive=True)) if not run.is_file else [run]
        if max((file.mtime for file in (*files, run) if file.mtime is not None), default=before) <= before:
            system.delete_file(run.path) if run.is_file else system.delete_dir(run.path)
            gone.append(run.base_name)
    return gone


def _exists(folder: str) -> bool:
    system, path = locate(folder)
    return bool(system.get_file_info(path).type == fs.FileType.Directory)
