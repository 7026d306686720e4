"""Engines against each other on the same windows: as an experiment, and every night as a check of what is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import reduce
from itertools import groupby
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipeline.aggregate.differences import Difference, Gold, gold_differences
from pipeline.aggregate.each_window import Source
from pipeline.aggregate.partials import data_columns, gold_schema, log10
from pipeline.aggregate.reach import as_micros, as_time
from pipeline.aggregate.trials import Attempt, Budget, Checked, Trial, check_night, stepping_up
from pipeline.aggregate.windows import Stretch, alone
from pipeline.config import Config
from pipeline.engines import choice
from pipeline.engines.contract import Engine
from pipeline.errors import TrendsError, nearest
from pipeline.events import Events
from pipeline.publish.engine_runs import AGREEMENT, CANNOT_RUN, COMPARISON, DID_NOT_FINISH, FAILED, FINISHED, EngineRun
from pipeline.quality.report import EXAMPLES, SHOWN, QualityError, Result
from pipeline.questions import Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BASELINE = "sase"
# Those first that share least with the default engine: by themselves, windows are the same to `cogra` as to `pane`.
SECOND = ("aseq", "greta", "cogra", "pane")
COMPARED = 6  # windows
CHECKED = 12  # windows of a night
EXPERIMENT = Budget(seconds=2, trends=100_000_000)
QUICK = Budget(seconds=0.5, trends=200_000)
NIGHT_SECONDS = 6.0  # for all windows of a question
WORST_FIRST = (FAILED, DID_NOT_FINISH, CANNOT_RUN, FINISHED)


@dataclass(frozen=True)
class Comparison:
    """What engines gave on the same windows."""

    question: Question
    day: date
    runs: tuple[EngineRun, ...]
    differences: tuple[Difference, ...]
    compared: int  # windows on which two engines or more finished
    total: int  # windows that were tried

    @property
    def check(self) -> str:
        """Its name as a check of the query's gold table."""
        return f"{self.question.table.full_name}.engines_agree"

    @property
    def warnings(self) -> list[str]:
        """What a person should look at."""
        if self.compared or not self.total:
            return []
        return [f"{self.question.name}: none of {self.total} windows could be compared with another engine"]

    def result(self, run_id: str) -> Result:
        """As a check of the query's gold table: a difference is critical, nothing compared a warning."""
        return Result(
            dataset=self.question.dataset.name,
            landing_date=self.day,
            table_name=self.question.table.full_name,
            run_id=run_id,
            checked_at=datetime.now(UTC),
            expectation=self.check,
            column_name=None,
            severity="critical" if self.differences else "warning",
            success=not self.differences and not self.warnings,
            observed=f"{self.compared} of {self.total} windows compared",
            unexpected=len(self.differences),
            examples=tuple(map(str, self.differences[:EXAMPLES])),
        )

    def raise_on_difference(self) -> None:
        """Stop where engines differ."""
        if not self.differences:
            return
        more = len(self.differences) - SHOWN
        raise QualityError(
            "\n".join(
                [
                    f"{self.question.name} {self.day}: engines disagree on the same events",
                    *(f"  {difference}" for difference in self.differences[:SHOWN]),
                    *([f"  … and {more} more"] if more > 0 else []),
                    "hint: one of these engines is wrong, or events changed meanwhile; "
                    f"trends compare {self.question.name} --interval {self.day} tries them all",
                ]
            )
        )


def compare(
    spark: SparkSession,
    config: Config,
    question: Question,
    day: date,
    engines: Sequence[str] | None = None,
    *,
    run_id: str,
    windows: int = COMPARED,
    budget: Budget = EXPERIMENT,
    version: int | None = None,
    by_spark: bool | None = None,
) -> Comparison:
    """The baseline and other engines on windows of an interval, on more and more events until the baseline gives up.

    Every engine that finished is compared with the baseline, or where that did not finish with the first that did.
    """
    tried = _engines(engines)
    source = Source.of(spark, config, question, question.reach.ends(day), version, by_spark)
    stretches = source.windows(windows)

    def work(stretch: Stretch, events: Events) -> list[Attempt]:
        return stepping_up(Trial(question, stretch, events, budget), tried)

    found = [one for several in source.each(stretches, work, "engines compared") for one in several]
    place = {engine.name: number for number, engine in enumerate(tried)}
    ordered = sorted(found, key=lambda one: (one.step, place[one.engine]))
    record = _Record(question, day, run_id, COMPARISON, source.found.version)
    return Comparison(
        question,
        day,
        tuple(record.of(list(same)) for _, same in groupby(ordered, key=lambda one: (one.step, one.engine))),
        tuple(difference for one in found for difference in one.differences),
        len({one.stretch for one in found if one.compared}),
        len(stretches),
    )


def agreement(
    spark: SparkSession,
    config: Config,
    question: Question,
    day: date,
    answers: DataFrame | pa.Table,
    engine: str,
    *,
    run_id: str,
    version: int | None = None,
    windows: int = CHECKED,
    budget: Budget = QUICK,
    seconds: float = NIGHT_SECONDS,
    by_spark: bool | None = None,
) -> Comparison:
    """Some windows of a night's staged answers, which an engine gave on a version of silver, by other engines.

    Each is compared with the rows of a second online engine and of the baseline, and where that does not finish, the
    engine with the baseline on the window's first events. `seconds`: about how long all of it may take. Where the
    interval has few events, all of it is done in this process: a job would take longer.
    """
    night, baseline = choice.choose(question.query, engine), choice.choose(question.query, BASELINE)
    others = _seconds(question, night)
    source = Source.of(spark, config, question, question.reach.ends(day), version, by_spark, may_be_here=True)
    stretches = source.windows(windows)
    share = seconds * source.tasks / max(len(stretches), 1)

    def work(stretch: Stretch, events: Events) -> Checked:
        return check_night(Trial(question, stretch, events, budget), night, others, baseline, share)

    checked: list[Checked] = source.each(stretches, work, "the night's answers checked")
    rows = _night_rows(question, answers, stretches)
    found = [_with_night(question, engine, one, rows) for one in checked]
    compared = {one.stretch for one in found if one.engine is not None or _tried(one, engine)}
    differences = tuple(unlike for checked in found for one in checked.attempts for unlike in one.differences)
    attempts = sorted((one for checked in found for one in checked.attempts), key=lambda one: one.engine)
    record = _Record(question, day, run_id, AGREEMENT, source.found.version)
    others_runs = [
        record.of(list(same)) for name, same in groupby(attempts, key=lambda one: one.engine) if name != engine
    ]
    own = record.night(engine, found, len(compared), differences)
    return Comparison(question, day, (own, *others_runs), differences, len(compared), len(stretches))


# ------------------------------------------------------------------------------------------------------------- engines


def _engines(names: Sequence[str] | None) -> tuple[Engine, ...]:
    """The baseline first, then the others in their order."""
    known = {engine.name: engine for engine in choice.ENGINES}
    wanted = list(known) if names is None else names
    for name in wanted:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close}?" if close else f"the engines are {', '.join(known)}"
            raise TrendsError(f"unknown engine {name}\nhint: {hint}")
    return tuple(known[name] for name in dict.fromkeys((BASELINE, *wanted)))


def _seconds(question: Question, night: Engine) -> tuple[Engine, ...]:
    """The online engines that can check a night's, the best first."""
    query, known = alone(question.query), {engine.name: engine for engine in choice.ENGINES}
    return tuple(known[name] for name in SECOND if name != night.name and known[name].refuses(query) is None)


# ----------------------------------------------------------------------------------------------------------- the night


def _night_rows(question: Question, answers: DataFrame | pa.Table, stretches: Sequence[Stretch]) -> list[Gold]:
    from pyspark.sql import functions as F

    if isinstance(answers, pa.Table):
        ends = np.asarray(answers.column("window_end").cast(pa.int64()))
        asked = np.zeros(len(ends), bool)
        for stretch in stretches:
            asked |= (stretch.ends[0] <= ends) & (ends < stretch.ends[1])
        few: list[Gold] = answers.filter(pa.array(asked)).to_pylist()
        return few
    end = F.col("window_end")
    wanted = [end.between(as_time(stretch.ends[0]), as_time(stretch.ends[1] - 1)) for stretch in stretches]
    names = [column.name for column in data_columns(question.table)]
    rows = answers.where(reduce(or_, wanted, F.lit(False))).select(*names).toArrow()
    found: list[Gold] = rows.cast(gold_schema(question)).to_pylist()
    return found


def _with_night(question: Question, engine: str, checked: Checked, rows: Sequence[Gold]) -> Checked:
    """The engine that has a window's rows, compared with the night's."""
    if checked.engine is None:
        return checked
    own = [row for row in rows if checked.stretch.holds(as_micros(row["window_end"]))]
    pair = (engine, own), (checked.engine, checked.rows)
    unlike = gold_differences(question, alone(question.query), checked.scale, *pair)
    attempts = tuple(
        replace(one, compared=True, differences=(*unlike, *one.differences))
        if (one.engine, one.events) == (checked.engine, checked.scale.events)
        else one
        for one in checked.attempts
    )
    return replace(checked, attempts=attempts)


def _tried(checked: Checked, engine: str) -> bool:
    return any(one.compared for one in checked.attempts if one.engine == engine)


# ------------------------------------------------------------------------------------------------------------- records


@dataclass(frozen=True)
class _Record:
    """What the rows of `gold.engine_runs` have in common."""

    question: Question
    day: date
    run_id: str
    purpose: str
    version: int

    def of(self, attempts: Sequence[Attempt]) -> EngineRun:
        """One engine on several windows."""
        status = min((one.status for one in attempts), key=WORST_FIRST.index)
        reasons = [one.reason for one in attempts if one.status == status and one.reason is not None]
        some = f"{len(reasons)} of {len(attempts)} times: " if 0 < len(reasons) < len(attempts) else ""
        compared = len({one.stretch for one in attempts if one.compared})
        unlike = [difference for one in attempts for difference in one.differences]
        events, wall = sum(one.events for one in attempts), sum(one.wall_seconds for one in attempts)
        ran = status not in (CANNOT_RUN, FAILED)
        return self._run(
            attempts[0].engine,
            status,
            compared,
            unlike,
            reason=some + reasons[0] if reasons else None,
            events=events,
            windows=len({one.stretch for one in attempts}),
            events_a_window=max(one.events for one in attempts),
            rows=sum(one.rows for one in attempts) if ran else None,
            log10_trends=log10(sum(one.trends for one in attempts)) if ran else None,
            wall_seconds=wall if ran else None,
            cpu_seconds=sum(one.cpu_seconds for one in attempts) if ran else None,
            events_per_second=events / wall if status == FINISHED and wall else None,
            peak_stored=max(one.peak_stored for one in attempts) if ran else None,
            peak_memory=max(one.peak_memory for one in attempts) if ran else None,
        )

    def night(self, engine: str, checked: Sequence[Checked], compared: int, unlike: Sequence[Difference]) -> EngineRun:
        """The engine of the night, whose cost is in another row."""
        sizes = [one.scale.events for one in checked]
        return self._run(
            engine,
            FINISHED,
            compared,
            unlike,
            events=sum(sizes),
            windows=len(sizes),
            events_a_window=max(sizes, default=0),
        )

    def _run(self, engine: str, status: str, compared: int, unlike: Sequence[Difference], **facts: object) -> EngineRun:
        return EngineRun(
            query=self.question.name,
            interval_date=self.day,
            run_id=self.run_id,
            purpose=self.purpose,
            engine=engine,
            status=status,
            query_version=self.question.version,
            silver_version=self.version,
            compared=compared,
            agrees=not unlike if compared else None,
            difference=str(unlike[0]) if unlike else None,
            **facts,  # type: ignore[arg-type]
        )
