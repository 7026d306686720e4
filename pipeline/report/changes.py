"""Silver's changes without a JVM: the files that two versions do not share, and in them the events that differ.

What `pipeline.publish.changes` nets from the change feed is here the difference of two versions, so that it says the
same: a landing day that was written again with the same rows has not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.aggregate.columns import TIME
from pipeline.aggregate.cut import Range
from pipeline.aggregate.reach import Reach
from pipeline.aggregate.scan import read_range
from pipeline.aggregate.snapshot import DataFile, Snapshot, snapshot
from pipeline.config import Config
from pipeline.datasets.declaration import Dataset
from pipeline.errors import TrendsError
from pipeline.events import Array
from pipeline.publish.changes import FileChange, content
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    import pandas

SIGN, FILE = "_sign", "file"


class NotKeptError(TrendsError):
    """A version of silver, or files of it, that is no longer there."""


@dataclass(frozen=True)
class Silver:
    """The versions of a dataset's events."""

    config: Config
    dataset: Dataset
    _seen: dict[int, Snapshot] = field(default_factory=dict)
    _read: dict[tuple[int, int, Range, tuple[str, ...]], Any] = field(default_factory=dict)

    @cached_property
    def version(self) -> int:
        """The newest one."""
        return snapshot(self.config, silver(self.dataset)).version

    def changed(self, question: Question, after: int, upto: int, times: Range) -> pandas.DataFrame:
        """The events of these times that came (`_sign` 1) or went (−1) between two versions, as a question reads them.

        Files are read once for all questions that read the same columns.
        """
        names = (FILE, *content(question))
        key = after, upto, times, names
        if key not in self._read:
            self._read[key] = self._differing(after, upto, times, list(names))
        return self._read[key]

    def _differing(self, after: int, upto: int, times: Range, names: list[str]) -> pandas.DataFrame:
        import pandas

        old, new = self._files(after), self._files(upto)
        parts = [
            _rows(files, times, names).assign(**{SIGN: sign})
            for files, sign in ((new - old, 1), (old - new, -1))
            if any(file.low < times[1] and file.high > times[0] for file in files)
        ]
        whole = pandas.concat(parts) if parts else pandas.DataFrame(columns=[*names, SIGN])
        return _netted(whole, names)

    def _files(self, version: int) -> set[DataFile]:
        from deltalake.exceptions import DeltaError

        if version not in self._seen:
            try:
                self._seen[version] = snapshot(self.config, silver(self.dataset), version)
            except (DeltaError, TrendsError):
                raise NotKeptError(f"version {version} of silver.{self.dataset.name} is no longer kept") from None
        return set(self._seen[version].files)


def by_file(changes: pandas.DataFrame) -> list[FileChange]:
    """How many events of each landing file came and went."""
    return [
        FileChange(str(file), int((signs > 0).sum()), int((signs < 0).sum()))
        for file, signs in changes.groupby(FILE, observed=True)[SIGN]
    ]


def micros(changes: pandas.DataFrame) -> Array:
    """The times of events."""
    return np.asarray(changes[TIME].astype("int64"))


def windows(reach: Reach, ends: Range, times: Array) -> int | None:
    """How many windows with these ends have one of these times; None without SLIDE: not known before they are made."""
    if reach.slide is None:
        return None
    low, high = reach.affected(0)
    first = -((reach.within - np.maximum(times + low, ends[0])) // reach.slide)
    last = (np.minimum(times + high, ends[1]) - 1 - reach.within) // reach.slide
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    before = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min // 2], last[:-1]])) if len(last) else last
    return int(np.maximum(last - np.maximum(first, before + 1) + 1, 0).sum())


def _rows(files: Iterable[DataFile], times: Range, names: Sequence[str]) -> pandas.DataFrame:
    from pipeline.errors import InputError

    try:
        found = read_range(sorted(files, key=lambda file: file.path), *times, names)
    except InputError as error:
        raise NotKeptError(str(error)) from None
    import pandas

    if found is None:
        return pandas.DataFrame(columns=list(names))
    # As Python's own values: codes of two files do not compare.
    frame: pandas.DataFrame = found.to_pandas(strings_to_categorical=False)
    categories = [name for name in frame.columns if isinstance(frame[name].dtype, pandas.CategoricalDtype)]
    return frame.astype(dict.fromkeys(categories, object)).assign(**{TIME: found.column(TIME).cast("int64").to_numpy()})


def _netted(rows: pandas.DataFrame, names: list[str]) -> pandas.DataFrame:
    rows = rows[[*names, SIGN]]
    if rows.empty or rows[SIGN].min() == rows[SIGN].max():
        return rows
    left = rows.groupby(names, dropna=False, as_index=False, observed=True)[SIGN].sum()
    return left[left[SIGN] != 0]
