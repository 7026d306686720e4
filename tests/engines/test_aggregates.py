"""Rows of one group and window are added up exactly, be they machine words, larger, or beyond exact numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.approximate import Approximate
from pipeline.engines import aggregates
from pipeline.engines.aggregates import Found
from pipeline.engines.kernels.sase import COUNT, MAXIMUM, MINIMUM, SUM

EDGES = [0, 1, -1, 2**31, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 3**100]
NUMBERS = st.sampled_from(EDGES) | st.integers(-(10**4), 10**4)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), *[NUMBERS] * 5), max_size=40)


def added_up(rows: list[tuple[Any, ...]], batch: int) -> dict[tuple[int, int], tuple[Any, ...]]:
    """What the rows give, added so many at a time."""
    measures: Any = SimpleNamespace(
        kinds=(COUNT, SUM, MINIMUM, MAXIMUM),
        values=lambda _, trends, measured: list(zip(trends, *measured, strict=True)),
    )
    query: Any = SimpleNamespace(aggregates=(None,))
    window: Any = SimpleNamespace(slide=1, bounds=lambda numbers: (numbers, numbers))
    found = Found(query, measures)
    for first in range(0, len(rows), batch):
        windows, groups, *columns = zip(*rows[first : first + batch], strict=True)
        found.add(np.array(windows), np.array(groups), columns)
    return {(row.window_start, row.group): row.values[0] for row in found.rows(window)}


@given(rows=ROWS, batch=st.integers(1, 7), waiting=st.integers(1, 50))
def test_as_plain_python_adds(rows: list[tuple[Any, ...]], batch: int, waiting: int) -> None:
    expected: dict[tuple[int, int], tuple[Any, ...]] = {}
    for window, group, *row in rows:
        before = expected.get((window, group))
        t, c, s, low, high = row
        if before:
            t, c, s, low, high = t + before[0], c + before[1], s + before[2], min(low, before[3]), max(high, before[4])
        expected[window, group] = t, c, s, low, high
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregates, "FEW_ROWS", waiting)
        assert added_up(rows, batch) == expected


def test_beyond_exact_numbers() -> None:
    large = Approximate.of(1.0, 70_000)
    ((trends, *_),) = added_up(
        [(0, 0, large, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0), (0, 0, large, 0, 0, 0, 0)], 2
    ).values()
    assert str(trends) == str(Approximate.of(1.0, 70_001))
