"""Generated rows become files of the raw formats, some rows of them bad on purpose; the same seed, the same bytes."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.events import Array

FAST = 1  # gzip's level: the files are read once or twice
MOST = 0.4  # with more bad rows, a file's first lines no longer show its format


@dataclass(frozen=True)
class Fault:
    """A mistake put into a good row: another text in one of its columns, and the reason it must be set aside for."""

    column: str
    text: bytes
    reason: str


@dataclass
class Manifest:
    """What was written, so that what is read can be compared with it."""

    files: list[str] = field(default_factory=list)  # paths below the landing folder
    rows: int = 0  # of all files, headers apart; bad ones and duplicates included
    bad: Counter[str] = field(default_factory=Counter)  # rows by the reason to set them aside
    duplicates: int = 0  # rows that came before, by the dataset's keys
    late: int = 0  # rows of an earlier day than the dataset's lag allows


@dataclass(frozen=True)
class Shares:
    """Which part of the rows is bad, came before, or comes late."""

    bad: float = 0.001
    duplicate: float = 0.001
    late: float = 0.01

    def __post_init__(self) -> None:
        for name in ("bad", "duplicate", "late"):
            if not 0 <= getattr(self, name) <= MOST:
                raise ValueError(f"the {name} share is {getattr(self, name)}, not between 0 and {MOST}")


Columns = Mapping[str, Any]  # Arrow arrays, or NumPy's


def generator(seed: int, day: date, *names: str) -> np.random.Generator:
    """Random numbers that depend on these alone, not on what else is generated."""
    return np.random.default_rng([seed, day.toordinal(), *(zlib.crc32(name.encode()) for name in names)])


class Writer:
    """Writes the files of one landing day, and keeps the manifest."""

    def __init__(self, landing: Path, folder: str, shares: Shares, manifest: Manifest) -> None:
        self._landing, self._folder, self.shares, self._manifest = landing, folder, shares, manifest
        self._owed: dict[str, float] = defaultdict(float)  # parts of rows that files were too small for
        self._bad = 0

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """A file of this day, which has its name once it is complete."""
        path = self._landing / self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.part")
        with hidden.open("wb") as file:
            yield file
        hidden.replace(path)
        self._manifest.files.append(f"{self._folder}/{name}")

    @contextmanager
    def gzipped(self, name: str) -> Iterator[BinaryIO]:
        """A file that is compressed, without the time in it."""
        with self.create(name) as file, gzip.GzipFile("", "wb", FAST, file, mtime=0) as stream:
            yield stream  # type: ignore[misc]

    @contextmanager
    def zipped(self, name: str) -> Iterator[zipfile.ZipFile]:
        """An archive; see `member`."""
        with self.create(name) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=FAST) as archive:
            yield archive

    def text(
        self,
        random: np.random.Generator,
        columns: Columns,
        separator: str,
        faults: Sequence[Fault] = (),
        *,
        repeats: bool = False,
        late: bool = False,
    ) -> bytes:
        """Rows as lines, with the shares of bad ones and, if it `repeats`, of rows that come twice."""
        cells = {name: as_text(values) for name, values in columns.items()}
        count = len(next(iter(cells.values())))
        bad = np.zeros(count, np.bool_)
        if faults:
            chosen = random.permutation(count)[: self._share("bad", count, self.shares.bad)]
            bad[chosen] = True
            for number, fault in enumerate(faults):
                rows = chosen[(number - self._bad) % len(faults) :: len(faults)]
                _put(cells, fault, rows, count)
                self._manifest.bad[fault.reason] += len(rows)
            self._bad += len(chosen)
        names = list(cells)
        cells[names[-1]] = pc.binary_join_element_wise(cells[names[-1]], b"\n", b"")
        lines = pc.binary_join_element_wise(*(cells[name] for name in names), separator.encode())
        if repeats:
            again = random.permutation(np.flatnonzero(~bad))[: self._share("again", count, self.shares.duplicate)]
            lines = pa.concat_arrays([lines, lines.take(pa.array(np.sort(again)))])
            self._manifest.duplicates += len(again)
        self._manifest.rows += len(lines)
        self._manifest.late += len(lines) if late else 0
        return b"".join(_bytes_of(lines))

    def _share(self, name: str, count: int, share: float) -> int:
        """A share of a file's rows, with what the day's files before it owe; never so much that it hides the format."""
        owed = self._owed[name] + count * share
        given = min(max(0, round(owed)), int(count * MOST))
        self._owed[name] = owed - given
        return given

    def rows(self, count: int) -> None:
        """Note rows that were written otherwise."""
        self._manifest.rows += count


def member(archive: zipfile.ZipFile, name: str, text: bytes) -> None:
    """Add a file to an archive, without the time in it."""
    info = zipfile.ZipInfo(name)
    info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
    archive.writestr(info, text, compresslevel=FAST)


def as_text(values: Any) -> Any:
    """A column as bytes."""
    array = pa.array(values) if isinstance(values, np.ndarray) else values
    return array.cast(pa.string()).cast(pa.binary())


def choose(
    random: np.random.Generator, words: Sequence[str], count: int, weights: Sequence[float] | None = None
) -> Any:
    """A column of words, each as often as its weight says."""
    codes = random.choice(len(words), count, p=None if weights is None else np.array(weights) / sum(weights))
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words)).dictionary_decode()


def parts(total: int, weights: Sequence[float]) -> list[int]:
    """A number of rows cut by weights, to the last row.

    >>> parts(10, (2, 1, 1))
    [5, 3, 2]
    """
    edges = np.floor(np.cumsum([0, *weights]) / sum(weights) * total + 0.5)
    return [int(part) for part in np.diff(edges)]


def _put(cells: dict[str, Any], fault: Fault, rows: Array, count: int) -> None:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    texts = pa.repeat(pa.scalar(fault.text, pa.binary()), len(rows))
    cells[fault.column] = pc.replace_with_mask(cells[fault.column], pa.array(mask), texts)


def _bytes_of(lines: Any) -> Iterator[Any]:
    for chunk in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
        offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        yield memoryview(chunk.buffers()[2])[offsets[0] : offsets[-1]]
