"""Differences between revisions, and the files behind them."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pipeline import answer_commands, delta
from pipeline.cli import main
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.publish import diff, gold
from pipeline.publish.changes import FileChange
from pipeline.publish.diff import Difference, Revision, differences
from tests.publish.samples import BY_SECTOR, MONDAY, SILVER, Counts, Event, answers, made, write_events
from tests.small_lake import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIDNIGHT = datetime.combine(MONDAY, datetime.min.time())
DELL, IPIX = "of DELL", "of IPIX"


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def test_revisions_and_their_files(connect: SparkSession, config: Config) -> None:
    delta.create(connect, config, SILVER)
    gold.prepare(connect, config, [BY_SECTOR])

    def step(run_id: str, counts: Counts, events: dict[str, Event]) -> None:
        version = write_events(connect, config, events)
        gold.publish(connect, config, BY_SECTOR, MONDAY, answers(connect, counts), made(run_id, version))

    def found(start: float, end: float | None = None, **group: str) -> list[Difference]:
        upto = None if end is None else MIDNIGHT + minutes(end)
        return differences(connect, config, BY_SECTOR, MIDNIGHT + minutes(start), upto, group)

    events: dict[str, Event] = {
        "a": (minutes(1), "DELL", 1.0, "one"),
        "b": (minutes(2), "DELL", 2.0, "one"),
        "c": (minutes(1), "IPIX", 2.0, "one"),
    }
    step("first", {(0, DELL): 3, (0, IPIX): 1}, events)
    assert found(0) == []
    # An event at the window's end is not in it, one of another sector not behind the row.
    events |= {
        "d": (minutes(9), "DELL", 2.0, "late"),
        "e": (minutes(10), "DELL", 2.0, "late"),
        "f": (minutes(9), "QQQ", 2.0, "late"),
        "b": (minutes(2), "DELL", 5.0, "one"),
    }
    step("second", {(0, DELL): 7, (0, IPIX): 1, (10, DELL): 1}, events)
    del events["c"], events["e"]
    step("third", {(0, DELL): 7}, events)
    step("fourth", {(0, DELL): 7, (0, IPIX): 1}, events | {"c": (minutes(1), "IPIX", 2.0, "one")})

    (dell,) = found(0, sector=DELL)
    assert (dell.window_start.hour, dell.group, len(dell.revisions)) == (0, {"sector": DELL}, 2)
    old, new = dell.revisions
    assert [(r.revision, r.values and r.values["count"], r.run_id) for r in (old, new)] == [
        (1, "3", "first"),
        (2, "7", "second"),
    ]
    assert (old.files, new.files) == ((), [FileChange("late", 1, 0), FileChange("one", 1, 1)])

    (ipix,) = found(0, sector=IPIX)
    assert [(r.revision, r.values and r.values["count"], r.run_id) for r in ipix.revisions] == [
        (1, "1", "first"),
        (1, None, "third"),
        (2, "1", "fourth"),
    ]
    assert [r.files for r in ipix.revisions] == [(), [FileChange("one", 0, 1)], [FileChange("one", 1, 0)]]

    (late,) = found(10)
    assert [(r.revision, r.values and r.values["count"], r.run_id) for r in late.revisions] == [
        (0, None, "first"),
        (1, "1", "second"),
        (1, None, "third"),
    ]
    assert [r.files for r in late.revisions] == [(), [FileChange("late", 1, 0)], [FileChange("late", 0, 1)]]
    assert found(0) == [dell, ipix]
    assert found(0, 20) == [dell, ipix, late]
    with pytest.raises(TrendsError, match=r"company is not in GROUP-BY\nhint: one of sector"):
        found(0, company="DELL")


def test_what_is_shown_hides_who_it_is_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    was, is_now = (
        Revision(number, {"count": str(number)}, "run", number, MIDNIGHT, files=[FileChange("late.csv", number, 0)])
        for number in (1, 2)
    )
    found = [Difference(MIDNIGHT, MIDNIGHT + minutes(1), {"patient": "patient 105"}, [was, is_now])]
    monkeypatch.setattr(diff, "differences", lambda *_: found)
    monkeypatch.setattr(answer_commands, "lake", lambda _: nullcontext((None, None)))
    command = ["diff", str(ROOT / "queries/activity/slow-to-fast-heart-rate.query"), "--window", str(MIDNIGHT)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert f"00:00:00 to {MIDNIGHT:%Y-%m-%d} 00:01:00, patient patient-" in shown
    assert "105" not in shown
    assert "revision 2: count 2" in shown
    assert "late.csv: 2 events added, 0 removed" in shown
    assert main([*command, "--reveal"]) == 0
    assert "patient 105" in capsys.readouterr().out
