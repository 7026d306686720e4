"""What a raw format is: how a file of it is recognised, what its fields are, and how its rows become events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNKNOWN = "unknown"  # the format of a file that none recognises
SAMPLE_LINES = 20  # how many of a file's first lines are looked at


@dataclass(frozen=True)
class Field:
    """A column of a raw format, as its publisher documents it; what breaks this is a reason to set a row aside."""

    name: str
    type: str  # text, whole number, number, date and time, or 0 or 1
    about: str
    unit: str = ""
    required: bool = True
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()


class Format(Protocol):
    """A raw format of some dataset."""

    name: str  # what bronze calls it, such as "trade ticks"
    about: str  # where such files come from, and what a row is
    fields: tuple[Field, ...]  # in the file's order

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """Whether a file that begins with these lines is of this format."""
        ...

    def is_header(self, line: str) -> bool:
        """Whether the file's first line names its columns, rather than being a row."""
        ...

    def events(self, rows: DataFrame) -> DataFrame:
        """Bronze rows of this format, all with one header, as events, and as rows with a reason that are none.

        Gives file, file_hash, line, copy, raw and landing_date of the row, part (which of the row's events it is, from
        0), reason (the first thing wrong, null where nothing is), time, ambiguous_time, derived, and the columns of the
        dataset. A row with a reason comes once, as part 0, with nulls.
        """
        ...


def detect(formats: Iterable[Format], file_name: str, lines: Sequence[str]) -> Format | None:
    """The format of a file by its name and first lines, if it is one of these."""
    return next((known for known in formats if known.recognises(file_name, lines)), None)


def mostly(lines: Sequence[str], looks_right: Callable[[str], object]) -> bool:
    """Whether more than half of some lines look right: a bad row at the start does not hide a file's format."""
    return 2 * sum(bool(looks_right(line)) for line in lines) > len(lines)


def base_name(file: str) -> str:
    """The last part of a path, or of a member's path in an archive (`data.zip!protocol/subject101.dat`).

    >>> base_name("activity/2030-01-07/data.zip!protocol/subject101.dat")
    'subject101.dat'
    """
    return file.replace("!", "/").rpartition("/")[2]
