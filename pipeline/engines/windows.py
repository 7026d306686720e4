"""The windows of a stream, as kernels walk through them, and the rows that these give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.engines.aggregates import Found, Pool
from pipeline.engines.compiled import run
from pipeline.engines.contract import Limits
from pipeline.engines.kernels import windows as kernel
from pipeline.engines.kernels.status import DONE
from pipeline.engines.stream import Stream
from pipeline.events import Array

NEVER = 2**62  # a time or place that no event reaches
LEAST_ROWS, MOST_ROWS = 512, 8192  # that wait until they are taken
ROW_BITS = 1 << 22  # that they may take: each has room for the largest number


def make_windows(stream: Stream, trend_ends: Callable[[], Array]) -> kernel.Windows:
    """The windows of a stream; without SLIDE one a time and group at which one of these events may end a trend.

    Where a group has several partitions, the sum of its windows is that of all of them, and each partition is looked
    at where its part of the sum may change: few times, however many there are in its group.
    """
    window, parts = stream.window, len(stream.part_group)
    moments = moment = moment_end = np.zeros(0, np.int64)
    if window.slide is None:
        ends = trend_ends()
        order = np.lexsort((stream.place[ends], stream.group[ends]))
        group, place = stream.group[ends][order], stream.place[ends][order]
        new = changes(group, place)
        group, moments = group[new], place[new]
        parts_of = stream.part_group
        if has_steps(stream):
            parts_of, (group, moments) = np.arange(parts), _turns(stream, ends, group, moments)
        moment = np.searchsorted(group, parts_of)
        moment_end = np.searchsorted(group, parts_of, side="right")
    return kernel.Windows(
        place=stream.place,
        begins=stream.begins if parts else np.zeros(1, np.int64),
        within=window.within,
        slide=window.slide or 0,
        first_window=0 if window.in_events else -NEVER,
        moment=moment,
        moment_end=moment_end,
        moments=moments,
    )


def has_steps(stream: Stream) -> bool:
    """Whether windows move with every event, and are those of several partitions."""
    return stream.window.slide is None and len(np.unique(stream.part_group)) < len(stream.part_group)


def _turns(stream: Stream, ends: Array, group: Array, moments: Array) -> tuple[Array, Array]:
    """Partitions and times: the first of the group's moments since a trend may have ended, or an event has left."""
    part = np.concatenate([stream.part[ends], stream.part])
    place = np.concatenate([stream.place[ends], stream.place + stream.window.within])
    rank = np.searchsorted(places := np.unique(place), place)
    key = group * len(places) + np.searchsorted(places, moments)
    at = np.searchsorted(key, stream.part_group[part] * len(places) + rank)
    known = np.append(group, -1)[at] == stream.part_group[part]
    turn = np.unique(part[known] * len(moments) + at[known])
    return turn // len(moments), moments[turn % len(moments)]


def row_buffer(stream: Stream) -> int:
    """How many rows may wait: more where partitions are small, and so their numbers, of about a bit an event."""
    most = int(np.diff(stream.begins).max(initial=1))
    return min(max(ROW_BITS // most, LEAST_ROWS), MOST_ROWS)


class RowBuffer:
    """Rows that a kernel has finished, taken away from time to time."""

    def __init__(self, stream: Stream, cell: int) -> None:
        """`cell`: the number of the first of the `row_buffer` cells of a pool."""
        self._stream = stream
        self._has_steps = has_steps(stream)
        part, window, ended, moment = (np.zeros(row_buffer(stream), np.int64) for _ in range(4))
        self.rows = kernel.Rows(np.zeros(kernel.REGISTERS, np.int64), part, window, ended, moment, cell)
        self.rows.register[kernel.INSIDE] = -1

    def take(self, found: Found, pool: Pool, windows: kernel.Windows) -> None:
        """Take the rows away."""
        rows, count = self.rows, int(self.rows.register[kernel.ROWS])
        rows.register[kernel.ROWS] = 0
        part, window, ended = rows.part[:count], rows.window[:count], rows.ended[:count]
        groups = self._stream.part_group[part]
        if not self._has_steps:
            pool.add_to(found, window, groups, rows.cell, ended=ended)
            return
        after = rows.moment[:count] + 1
        until = np.where(after < windows.moment_end[part], np.append(windows.moments, NEVER)[after], NEVER)
        found.add_steps(window, until, groups, pool.columns(np.arange(rows.cell, rows.cell + count)), ended)

    def so_far(self) -> str:
        """How far the kernel is."""
        done, parts = int(self.rows.register[kernel.PART]), len(self._stream.part_group)
        return f"{done:,} of {parts:,} partitions aggregated"


def most_within(key: Array, place: Array, within: int) -> int:
    """How many events of one key lie at most in a stretch of this length; they are sorted by key and place."""
    if not len(place):
        return 1
    codes, register = key.astype(np.int32, copy=False), np.zeros(3, np.int64)
    pauses = run(
        kernel.most_within,
        lambda: (codes, place, within, register),
        Limits(),
        lambda: "windows were being measured",
        steps=len(place),
    )
    assert list(pauses) == [DONE]
    return int(register[kernel.MOST])


def changes(*columns: Array) -> Array:
    """Where a sorted sequence takes a new value."""
    changed = np.ones(len(columns[0]), bool)
    changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changed
