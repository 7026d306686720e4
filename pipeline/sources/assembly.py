"""Batches of raw columns become events; bad rows end the run or are set aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pipeline.errors import InputError
from pipeline.events import Array, Column
from pipeline.sources.columns import Bad, Batch, ColumnReader
from pipeline.sources.times import TimeColumn

BadRowPolicy = Literal["fail", "skip"]
EXAMPLES = 5


class BadRows:
    """What happens to bad rows: the first one raises, or they are counted and the first few described."""

    def __init__(self, path: str, policy: BadRowPolicy, place: str) -> None:
        self.policy = policy
        self.count = 0
        self.examples: list[str] = []
        self._path, self._place = path, place

    def report(self, problems: Sequence[tuple[int, str]]) -> None:
        """Take note of bad rows, given in the file's order."""
        if problems and self.policy == "fail":
            raise InputError(f"{self._say(*problems[0])}\nhint: --bad-rows skip sets such rows aside and goes on")
        self.count += len(problems)
        self.examples += [self._say(*problem) for problem in problems[: EXAMPLES - len(self.examples)]]

    def _say(self, line: int, message: str) -> str:
        return f"{self._path}{self._place.format(line)}: {message}"


class Assembly:
    """The columns that a query needs, filled batch by batch with the good rows."""

    def __init__(self, path: str, time: TimeColumn, bad_rows: BadRows) -> None:
        self._path, self._bad_rows = path, bad_rows
        self._readers: list[tuple[str, Any]] = [("time", time)]

    def want(self, name: str, reader: ColumnReader) -> ColumnReader:
        """Fill this reader with the column of this name."""
        self._readers.append((name, reader))
        return reader

    @property
    def names(self) -> list[str]:
        """The columns to read, each once."""
        return list(dict.fromkeys(name for name, _ in self._readers))

    def take(self, batch: Batch) -> None:
        """Add the good rows of a batch."""
        wrong: dict[int, str] = {}
        rows, columns = np.arange(batch.rows), batch.columns
        while True:
            chunks, name, bad = self._read(columns)
            if not bad:
                break
            # All columns are read again without the bad rows, so that no value of a bad row has any influence.
            keep = np.ones(len(rows), np.bool_)
            if self._bad_rows.policy == "fail":
                first = min(bad)
                keep[first:] = False  # another column may be bad in an earlier row, which is then the one to name
                wrong = {int(rows[first]): f"{name}: {bad[first]}"}
            else:
                keep[list(bad)] = False
                wrong.update((int(rows[row]), f"{name}: {message}") for row, message in bad.items())
            rows, columns = rows[keep], {column: _filter(raw, keep) for column, raw in columns.items()}
        problems = [(batch.line(row), message) for row, message in wrong.items()]
        self._bad_rows.report(sorted(problems + batch.broken))
        for (_, reader), chunk in zip(self._readers, chunks, strict=True):
            reader.add(chunk)

    def _read(self, columns: dict[str, Any]) -> tuple[list[Any], str, Bad]:
        """Every column's chunk, or the first column with bad values and these."""
        chunks = []
        for name, reader in self._readers:
            try:
                chunk, bad = reader.read(columns[name])
            except OverflowError:
                raise self._too_large(name) from None
            if bad:
                return [], name, bad
            chunks.append(chunk)
        return chunks, "", {}

    def finish(self, name: str, reader: ColumnReader) -> Column:
        """The whole column of a reader."""
        try:
            return reader.finish()
        except OverflowError:
            raise self._too_large(name) from None

    def _too_large(self, name: str) -> InputError:
        return InputError(
            f"{self._path}: {name}: an integer beyond 1.8e308 cannot stand beside decimal numbers\n"
            "hint: write the column without decimals"
        )


def _filter(raw: Any, keep: Array) -> Any:
    if isinstance(raw, list):
        return [value for value, kept in zip(raw, keep.tolist(), strict=True) if kept]
    return raw.filter(pa.array(keep))
