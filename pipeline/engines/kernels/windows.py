"""Windows one after the other, in each partition, and the rows that they give."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.cells import Cells, add_cell, clear_cell, is_empty_cell
from pipeline.engines.kernels.status import DONE, DRAIN, MORE
from pipeline.events import Array

# Registers.
PART, INSIDE, WINDOW, LOW, HIGH, ENDED, ROWS, MOMENT = range(8)
REGISTERS = 16  # the others are the caller's


MOST = 2  # register of `most_within`


class Windows(NamedTuple):
    """Which windows there are."""

    place: Array
    begins: Array  # where each partition's events begin
    within: int
    slide: int  # 0: the window moves with every event
    first_window: int  # the least number of a window
    moment: Array  # without SLIDE, per partition: where the times at which it is looked at begin, and end
    moment_end: Array
    moments: Array


class Rows(NamedTuple):
    """Finished rows, and the registers of the window at hand."""

    register: Array
    part: Array
    window: Array
    ended: Array  # whether a trend ends just where the window does
    moment: Array  # without SLIDE: the number of the window's time
    cell: int  # that of the first row


def start_and_stop(s: Windows, window: int) -> tuple[int, int]:
    """The places that a window holds: from the first on, up to the second."""
    if s.slide > 0:
        return window * s.slide, window * s.slide + s.within
    return window - s.within + 1, window + 1


def next_window(s: Windows, rows: Rows) -> int:
    """Go on to the next window that holds an event of a partition: those from LOW on, up to HIGH."""
    r = rows.register
    if r[ROWS] == len(rows.window):
        return DRAIN
    while r[PART] < len(s.begins) - 1:
        end = s.begins[r[PART] + 1]
        if r[INSIDE] != r[PART]:
            r[INSIDE] = r[PART]
            r[LOW] = r[HIGH] = s.begins[r[PART]]
            if s.slide > 0:
                r[WINDOW] = max(s.first_window, (s.place[r[LOW]] - s.within) // s.slide + 1)
            else:
                r[MOMENT] = s.moment[r[PART]]
        elif s.slide > 0:
            r[WINDOW] += 1
        over = False
        if s.slide == 0:
            over = r[MOMENT] == s.moment_end[r[PART]]
            if not over:
                r[WINDOW] = s.moments[r[MOMENT]]
                r[MOMENT] += 1
        start, stop = start_and_stop(s, r[WINDOW])
        while r[LOW] < end and s.place[r[LOW]] < start:
            r[LOW] += 1
        if over or r[LOW] == end:
            r[PART] += 1
            continue
        if s.slide > 0 and s.place[r[LOW]] >= stop:
            r[WINDOW] = (s.place[r[LOW]] - s.within) // s.slide
            continue
        r[HIGH] = max(r[HIGH], r[LOW])
        while r[HIGH] < end and s.place[r[HIGH]] < stop:
            r[HIGH] += 1
        if r[HIGH] > r[LOW]:
            r[ENDED] = 0
            return MORE
    return DONE


def give_row(rows: Rows, c: Cells, result: int) -> None:
    """Give out the window's row, if a trend finished in it."""
    r = rows.register
    if is_empty_cell(c, result):
        return
    row = r[ROWS]
    r[ROWS] += 1
    rows.part[row] = r[PART]
    rows.window[row] = r[WINDOW]
    rows.ended[row] = r[ENDED]
    rows.moment[row] = r[MOMENT] - 1
    clear_cell(c, rows.cell + row)
    add_cell(c, rows.cell + row, result)


def most_within(key: Array, place: Array, within: int, register: Array, steps: int) -> int:
    """Find, for a number of steps, how many events of one key lie at most in a stretch of this length."""
    first, last, most = register[0], register[1], register[MOST]
    end = min(len(place), last + steps)
    while last < end:
        while key[first] != key[last] or place[first] <= place[last] - within:
            first += 1
        last += 1
        most = max(most, last - first)
    register[0], register[1], register[MOST] = first, last, most
    return DONE if end == len(place) else MORE


HELPERS = (start_and_stop, next_window, give_row)
INLINED = (start_and_stop, next_window, give_row)  # so that the many arrays are not handed on for every window
