"""Real event data, where it lies beside the project: whole files through the command line, checked by plain Python."""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.cli import main

DATA = Path(__file__).parents[2] / "shared" / "data"
TAXI = DATA / "taxi" / "ride_events_2013-01-01.csv.gz"
HEART = DATA / "activity" / "stress_predict_heart_rate.csv.gz"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data beside the project")


def test_rides_that_nothing_interrupts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A driver's START right before an END, within one day: neighbours in time among the driver's events."""
    path = tmp_path / "rides.csv"
    header = "ride,type,time,other,start_lon,start_lat,end_lon,end_lat,passengers,taxi,driver\n"
    with gzip.open(TAXI, "rt") as raw:
        text = raw.read()
    path.write_text(header + text)
    query = (
        "RETURN COUNT(*) AS rides PATTERN SEQ(START, END) SEMANTICS contiguous WHERE [driver] WITHIN 1 day SLIDE 1 day"
    )
    assert main(["run", query, "--events", str(path), "--format", "jsonl"]) == 0
    rides = json.loads(capsys.readouterr().out)["rides"]

    by_driver: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.reader(text.splitlines()):
        by_driver[row[10]][row[2]].append(row[1])
    expected = sum(
        times[before].count("START") * times[after].count("END")
        for times in by_driver.values()
        for before, after in pairwise(sorted(times))
    )
    assert rides == expected > 0


def test_rising_heart_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs of consecutive seconds in which a participant's rate rises, per participant; 44 rates are missing."""
    path = tmp_path / "rates.csv"
    with gzip.open(HEART, "rt") as raw:
        rows = list(csv.DictReader(raw))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "person", "rate"])
        writer.writerows([row["Time(sec)"], row["Participant"], row["HR"]] for row in rows)
    query = (
        "RETURN person, COUNT(*) AS pairs PATTERN rates S{2} FROM rates SEMANTICS contiguous "
        "WHERE S.rate < NEXT(S).rate GROUP-BY person WITHIN 52 weeks SLIDE 52 weeks"
    )
    assert main(["run", query, "--events", str(path), "--format", "jsonl"]) == 0
    found: dict[int, int] = defaultdict(int)
    for line in capsys.readouterr().out.splitlines():
        found[json.loads(line)["person"]] += json.loads(line)["pairs"]

    rates: dict[int, dict[int, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        rates[int(row["Participant"])][int(row["Time(sec)"])].append(float(row["HR"]) if row["HR"] else None)
    year = 52 * 7 * 86400
    expected = {
        person: sum(
            x is not None and y is not None and x < y and before // year == after // year
            for before, after in pairwise(sorted(times))
            for x in times[before]
            for y in times[after]
        )
        for person, times in rates.items()
    }
    assert found == {person: count for person, count in expected.items() if count}
