"""Events in memory: one array a column, in the order in which the input gave the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Kind(Enum):
    """What a query needs an attribute to be."""

    NUMBER = "number"
    TEXT = "text"
    ORDERED = "number or text"  # values are compared by order, so that all must be of one kind
    ANY = "any"


@dataclass(frozen=True)
class Numbers:
    """A column of numbers: int64, float64, or Python integers (object) where one exceeds 64 bits; never NaN."""

    values: Array
    null: Array

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Texts:
    """A column of text: codes into sorted words, so that codes compare as their words do; -1 is null."""

    codes: Array
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def null(self) -> Array:
        """Where the value is missing."""
        return self.codes < 0


Column = Numbers | Texts


class TimeStyle(Enum):
    """How the input wrote its times, and so how results write theirs."""

    INTEGER = "integer seconds"
    DECIMAL = "decimal seconds"
    ISO = "ISO 8601"


@dataclass(frozen=True)
class Clock:
    """Times are integers: ticks of 1 / `ticks_per_second` (a power of ten) since the epoch in UTC."""

    ticks_per_second: int
    style: TimeStyle

    def show(self, ticks: int) -> int | float | str:
        """A time as the input would write it: an integer where it can be one.

        >>> Clock(10, TimeStyle.INTEGER).show(25)
        2.5
        """
        whole, part = divmod(ticks, self.ticks_per_second)
        if self.style is TimeStyle.ISO:
            digits = str(part).zfill(len(str(self.ticks_per_second)) - 1).rstrip("0")
            return f"{np.datetime64(whole, 's')}{'.' + digits if digits else ''}Z"  # knows years beyond 9999
        return whole if part == 0 else ticks / self.ticks_per_second


@dataclass(frozen=True)
class Events:
    """The events of one input, in input order."""

    time: Array  # int64 ticks of `clock`
    clock: Clock
    types: tuple[Texts, ...]  # one column a type column; empty where the input has none
    attributes: Mapping[str, Column]
    known: tuple[str, ...]  # every column name of the input, for hints
    open_schema: bool  # JSONL: a row may leave any attribute out
    skipped: int = 0  # how many bad rows were set aside
    skipped_examples: tuple[str, ...] = ()  # what was wrong with the first few of them

    def __len__(self) -> int:
        return len(self.time)
