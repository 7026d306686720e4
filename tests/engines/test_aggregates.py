"""Rows of one group and window are added up exactly, be they machine words, larger, or beyond exact numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.approximate import Approximate
from pipeline.engines import totals
from pipeline.engines.aggregates import Found
from pipeline.engines.kernels.numbers import BITS, MASK
from pipeline.engines.kernels.sase import COUNT, MAXIMUM, MINIMUM, SUM

EDGES = [0, 1, -1, 2**30, -(2**30), 2**31, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 3**100]
NUMBERS = st.sampled_from(EDGES) | st.integers(-(10**4), 10**4)
RANKS = st.integers(0, 99)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), *[NUMBERS] * 3, RANKS, RANKS), max_size=40)
WINDOW: Any = SimpleNamespace(slide=1, bounds=lambda numbers: (numbers, numbers))


def empty() -> Found:
    """Nothing found yet; each row's values are its numbers."""
    measures: Any = SimpleNamespace(
        kinds=(COUNT, SUM, MINIMUM, MAXIMUM),
        values=lambda _, trends, measured: list(zip(trends, *measured, strict=True)),
    )
    query: Any = SimpleNamespace(aggregates=(None,))
    return Found(query, measures)


def rows_of(found: Found) -> dict[tuple[int, int], tuple[Any, ...]]:
    return {(row.window_start, row.group): row.values[0] for row in found.rows(WINDOW)}


def digits(number: int, places: int, carried: bool) -> list[int]:
    """A number as kernels have it: the last digit is signed, and machine words hold what is not carried yet."""
    found = []
    for _ in range(places - 1):
        found.append(number & MASK)
        number >>= BITS
    if not carried:
        found[0] += found[1] << BITS
        found[1] = 0
    return [*found, number]


@given(rows=ROWS, batches=st.lists(st.tuples(st.integers(1, 7), st.sampled_from(["any", "exact", "uncarried"]))),
       words=st.integers(1, 500))  # fmt: skip
def test_as_plain_python_adds(rows: list[tuple[Any, ...]], batches: list[tuple[int, str]], words: int) -> None:
    expected: dict[tuple[int, int], tuple[Any, ...]] = {}
    for window, group, *row in rows:
        before = expected.get((window, group))
        t, c, s, low, high = row
        if before:
            t, c, s, low, high = t + before[0], c + before[1], s + before[2], min(low, before[3]), max(high, before[4])
        expected[window, group] = t, c, s, low, high
    found = empty()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "FEW_WORDS", words)
        first = 0
        for size, way in [*batches, (len(rows) + 1, "any")]:
            some = rows[first : first + size]
            first += size
            if not some:
                continue
            windows, groups, *columns = zip(*some, strict=True)
            place = np.array(windows), np.array(groups)
            if way == "any":
                found.add(*place, columns)
                continue
            numbers = [[digits(n, 8, way == "exact") for n in row] for row in zip(*columns[:3], strict=True)]
            found.add_exact(*place, np.array(numbers), [np.array(ranks) for ranks in columns[3:]])
        assert rows_of(found) == expected


def test_beyond_exact_numbers() -> None:
    large = Approximate.of(1.0, 70_000)
    found, place = empty(), (np.array([0]), np.array([0]))
    found.add(*place, [[large], [0], [0], [0], [0]])
    found.add_exact(*place, np.ones((1, 3, 1), np.int64), [np.zeros(1, np.int64)] * 2)
    assert found.is_rounded_below(70_001)
    assert not found.is_rounded_below(70)
    found.add(*place, [[large], [0], [0], [0], [0]])
    ((trends, count, *_),) = rows_of(found).values()
    assert str(trends) == str(Approximate.of(1.0, 70_001))
    assert count == 1
