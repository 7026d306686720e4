"""When two engines' values are the same, and how a difference is told."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.aggregate.columns import CLOCK
from pipeline.aggregate.differences import ROUNDING, Difference, Scale, differences, gold_differences
from pipeline.aggregate.partials import Parts, finished, gold_rows
from pipeline.aggregate.windows import alone
from pipeline.approximate import Approximate
from pipeline.engines.contract import Value
from pipeline.events import Events, Numbers
from pipeline.questions import Question, ask

ITEMS = "COUNT(*), SUM(S.price), AVG(S.volume), MIN(S.price)"
ASKED = ask(f"RETURN {ITEMS} PATTERN Stock S+ FROM stock WITHIN 1 hour SLIDE 1 hour", "asked.query")
ALONE = alone(ASKED.query)
HOUR = 3_600_000_000
KEY = (0, HOUR, ())
N = 100
SCALE = Scale(N, {"price": 8.0, "volume": 50.0})
HUGE = Approximate.of(2**70_000)


def row(count: Value = 9, total: Value = Fraction(1, 2), volume: Value = 7, most: Value = 1.5) -> Parts:
    """COUNT(*), SUM(S.price), SUM(S.volume), COUNT(S.volume), MIN(S.price)."""
    assert [str(part) for part in ALONE.aggregates] == [
        "COUNT(*)",
        "SUM(S.price)",
        "SUM(S.volume)",
        "COUNT(S.volume)",
        "MIN(S.price)",
    ]
    return {KEY: (count, total, volume, 3, most)}


def unlike(one: Parts, two: Parts) -> list[str]:
    found = differences(ASKED, ALONE, SCALE, ("pane", one), ("sase", two), None)
    return [difference.item for difference in found]


def in_gold(rows: Parts, asked: Question = ASKED, **changed: Any) -> list[dict[str, Any]]:
    """Rows of the night."""
    found: list[dict[str, Any]] = gold_rows(asked, finished(asked.query, rows)).to_pylist()
    return [one | changed for one in found]


def unlike_gold(night: list[dict[str, Any]], rows: Parts, asked: Question = ASKED) -> list[str]:
    found = gold_differences(asked, alone(asked.query), SCALE, ("pane", night), ("sase", rows))
    return [difference.item for difference in found]


# ---- engines with engines ----


def test_exact_values_must_be_equal() -> None:
    assert unlike(row(), row()) == []
    assert unlike(row(2**60_000), row(2**60_000 + 1)) == ["COUNT(*)"]
    assert unlike(row(total=Fraction(1, 2)), row(total=Fraction(1, 2) + Fraction(1, 2**80))) == ["SUM(S.price)"]
    assert unlike(row(volume=7), row(volume=8)) == ["SUM(S.volume)"]
    assert unlike(row(most=1.5), row(most=1.5 + 2**-50)) == ["MIN(S.price)"]
    assert unlike(row(most=None), row(most=1.5)) == ["MIN(S.price)"]
    assert unlike(row(total=None), row(total=0)) == ["SUM(S.price)"]


def test_a_row_that_one_does_not_have() -> None:
    (first,) = differences(ASKED, ALONE, SCALE, ("pane", {}), ("sase", row()), None)
    (second,) = differences(ASKED, ALONE, SCALE, ("pane", row()), ("sase", {}), None)
    assert (first.item, first.values, second.values) == ("row", ("no row", "a row"), ("a row", "no row"))


@given(st.floats(-1, 1), st.booleans())
def test_a_rounded_count_may_be_off_by_its_stated_error(share: float, other_exact: bool) -> None:
    near = HUGE * (1 + share * 1.9 * N * ROUNDING)
    other: Value = 2**70_000 if other_exact else HUGE
    assert unlike(row(near), row(other)) == []
    assert unlike(row(other), row(near)) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_a_rounded_count_beyond_its_error_is_wrong(sign: int) -> None:
    assert unlike(row(HUGE * (1 + sign * 2.5 * N * ROUNDING)), row(HUGE)) == ["COUNT(*)"]
    assert unlike(row(HUGE * 2), row(2**70_000)) == ["COUNT(*)"]


def test_a_rounded_sum_is_measured_by_its_terms() -> None:
    """They may cancel out: 2^70000 trends whose terms are 8 at most, and a sum of about nothing."""
    little = HUGE * (N * 8.0) * (N * ROUNDING)
    assert unlike(row(HUGE, little), row(HUGE, Approximate.of(0))) == []
    assert unlike(row(HUGE, little * 3), row(HUGE, Approximate.of(0))) == ["SUM(S.price)"]
    assert unlike(row(9, Approximate.of(1e-3)), row(9, Approximate.of(0))) == ["SUM(S.price)"]


def test_the_largest_value_of_an_attribute_is_its_scale() -> None:
    prices = Numbers(np.array([1.0, -9.0, 100.0]), np.array([False, False, True]))
    volumes = Numbers(np.array([5, 2, 3]), np.zeros(3, bool))
    events = Events(np.arange(3), CLOCK, (), {"price": prices, "volume": volumes}, (), False)
    assert Scale.of(ALONE, events) == Scale(3, {"price": 9.0, "volume": 5.0})


# ---- the night's rows with engines ----


def test_rows_of_gold_are_those_they_were_made_of() -> None:
    for rows in (row(), row(2**60_000), row(HUGE, HUGE * 3, HUGE), row(total=None, most=None), {}):
        assert unlike_gold(in_gold(rows), rows) == []


def test_exact_rows_of_gold_must_be_equal() -> None:
    assert unlike_gold(in_gold(row(2**60_000)), row(2**60_000 + 1)) == ["COUNT(*)"]
    assert unlike_gold(in_gold(row(total=0.5)), row(total=0.5 + 2**-40)) == ["SUM(S.price)"]
    assert unlike_gold(in_gold(row(volume=7)), row(volume=8)) == ["AVG(S.volume)"]
    assert unlike_gold(in_gold(row(most=1.5)), row(most=2.5)) == ["MIN(S.price)"]
    assert unlike_gold(in_gold(row()), {}) == ["row"]
    assert unlike_gold([], row()) == ["row"]


@given(st.integers(0, 2**32))
def test_rounded_rows_of_gold_may_be_off_a_little(seed: int) -> None:
    chance = random.Random(seed)
    off = [1 + chance.uniform(-1, 1) * N * ROUNDING for _ in range(3)]
    one = row(HUGE, HUGE * -3, HUGE * 5)
    two = row(HUGE * off[0], HUGE * -3 * off[1], HUGE * 5 * off[2])
    assert unlike_gold(in_gold(one), two) == []
    assert unlike_gold(in_gold(two), one) == []


def test_rounded_rows_of_gold_that_are_wrong() -> None:
    good = row(HUGE, HUGE * 3)
    assert unlike_gold(in_gold(good), row(HUGE * 1.00001, HUGE * 3)) == ["COUNT(*)"]
    assert unlike_gold(in_gold(good), row(HUGE, HUGE * -3)) == ["SUM(S.price)"]
    assert unlike_gold(in_gold(row(HUGE, HUGE * -3)), good) == ["SUM(S.price)"]
    assert unlike_gold(in_gold(good), row(HUGE, HUGE * 3, most=1.0)) == ["MIN(S.price)"]


def test_what_having_keeps_is_not_certain_where_values_are_rounded() -> None:
    text = "RETURN COUNT(*) PATTERN Stock S+ FROM stock HAVING COUNT(*) > 5 WITHIN 1 hour SLIDE 1 hour"
    asked = ask(text, "asked.query")
    many, few, rounded = ({KEY: (count,)} for count in (9, 3, HUGE))
    assert unlike_gold([], few, asked) == []
    assert unlike_gold([], many, asked) == ["row"]
    assert unlike_gold([], rounded, asked) == []
    assert unlike_gold(in_gold(rounded, asked), few, asked) == []
    assert unlike_gold(in_gold(many, asked), few, asked) == ["row"]


# ---- telling ----


def test_a_difference_names_window_group_engines_and_values() -> None:
    text = "RETURN sector, COUNT(*) PATTERN Stock S+ FROM stock GROUP-BY sector WITHIN 1 hour SLIDE 1 hour"
    asked = ask(text, "asked.query")
    one, two = ({(HOUR, 2 * HOUR, ("Chip",)): (count,)} for count in (3, 4))
    (whole,) = differences(asked, alone(asked.query), SCALE, ("pane", one), ("sase", two), None)
    (part,) = differences(asked, alone(asked.query), SCALE, ("pane", one), ("sase", two), 16)
    window = "window 1970-01-01T01:00:00Z to 1970-01-01T02:00:00Z"
    assert str(whole) == f"{window}, sector Chip: COUNT(*): pane 3, sase 4"
    assert str(part) == f"{window}, its first 16 events, sector Chip: COUNT(*): pane 3, sase 4"


def test_sensitive_values_are_masked() -> None:
    text = "RETURN driver, COUNT(*), MIN(T.driver) PATTERN Taxi T+ FROM taxi GROUP-BY driver WITHIN 1 hour SLIDE 1 hour"
    asked = ask(text, "asked.query")
    one, two = ({(0, HOUR, ("Ann",)): (1, name)} for name in ("Ann", "Bob"))
    (found,) = differences(asked, alone(asked.query), SCALE, ("pane", one), ("sase", two), None)
    assert "Ann" not in str(found)
    assert "Bob" not in str(found)
    assert found.group[0].startswith("driver driver-")


def test_few_of_many_differences_are_told() -> None:
    many: Parts = {(at * HOUR, (at + 1) * HOUR, ()): row()[KEY] for at in range(1000)}
    found: tuple[Difference, ...] = differences(ASKED, ALONE, SCALE, ("pane", many), ("sase", {}), None)
    assert len(found) == 20
