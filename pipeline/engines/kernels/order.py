"""Sorting by small numbers: each event goes to the next place of its number."""

from __future__ import annotations

from pipeline.engines.kernels.status import DONE, MORE
from pipeline.events import Array


def sort(numbers: Array, place: Array, order: Array, register: Array, steps: int) -> int:
    """Write down the stable order; `place` has where each number's events begin."""
    begin = register[0]
    end = min(len(numbers), begin + steps)
    for event in range(begin, end):
        number = numbers[event]
        order[place[number]] = event
        place[number] += 1
    register[0] = end
    return DONE if end == len(numbers) else MORE


HELPERS = ()
