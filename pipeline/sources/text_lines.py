"""A stream of bytes as lines in Arrow arrays, each with its number and which of its equals it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.events import Array
from pipeline.sources.landing_bytes import Unreadable
from pipeline.sources.line_copies import Copies

LONGEST = 1 << 20  # bytes of a line that are kept
BOM = b"\xef\xbb\xbf"
NEWLINE, RETURN, SPACE = 10, 13, 32

NOT_TEXT = "is not text in UTF-8"
TOO_LONG = "is longer than 1 MiB, and was cut off there"


@dataclass(frozen=True)
class Lines:
    """Some lines of a file, none of them blank."""

    text: Any  # an Arrow array of strings
    number: Array  # of the line in the file, from 1
    copy: Array  # which of the file's equal lines it is, from 0
    problem: Any  # an Arrow array of strings, null where the line is as it came

    def __getitem__(self, part: slice) -> Lines:
        return Lines(self.text[part], self.number[part], self.copy[part], self.problem[part])


def read_lines(blocks: Iterator[bytes]) -> Iterator[Lines]:
    """The lines of a stream. If it breaks off, the last line is what was left, with what happened as its problem."""
    copies, line = Copies(), 1
    for chunk, problem in _whole_lines(blocks):
        if problem:
            yield _broken_off(chunk, line, problem)
            return
        data, offsets, numbers, count = _split(chunk, line)
        line += count
        if len(numbers):
            text, problems = _as_text(data, offsets)
            yield Lines(text, numbers, copies.number(data, offsets), problems)


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, str | None]]:
    """The stream in pieces that end with a line; where it breaks off, what is left and why."""
    rest, first = b"", True
    try:
        for block in blocks:
            if first:
                block, first = block.removeprefix(BOM), False
            cut = block.rfind(b"\n") + 1
            if cut:
                yield rest + block[:cut], None
                rest = block[cut:]
            else:
                # What a line has beyond the longest is not kept, but its being longer is seen.
                rest = (rest + block)[: LONGEST + 1]
    except Unreadable as error:
        yield rest, str(error)
        return
    if rest:
        yield rest, None


def _split(chunk: bytes, first_line: int) -> tuple[Array, Array, Array, int]:
    """The lines' bytes one after another, where each begins, the lines' numbers, and how many lines there were."""
    raw = np.frombuffer(chunk, np.uint8)
    ends = np.flatnonzero(raw == NEWLINE)
    keep = np.ones(len(raw), np.bool_)
    keep[ends] = False
    if not chunk.endswith(b"\n"):
        ends = np.append(ends, len(raw))
    starts = np.empty(len(ends), np.int64)
    starts[:1], starts[1:] = 0, ends[:-1] + 1
    if b"\r" in chunk:
        returns = ends[(ends > starts) & (raw[ends - 1] == RETURN)] - 1
        keep[returns] = False
        ends[np.isin(ends - 1, returns)] -= 1
    blank = ends == starts
    for line in np.flatnonzero(~blank)[raw[starts[~blank]] <= SPACE]:
        if not chunk[starts[line] : ends[line]].strip():
            keep[starts[line] : ends[line]] = False
            blank[line] = True
    numbers = np.arange(first_line, first_line + len(ends), dtype=np.int32)
    if blank.any():
        starts, ends, numbers = starts[~blank], ends[~blank], numbers[~blank]
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(ends - starts, out=offsets[1:])
    return raw[keep], offsets, numbers, len(blank)


def _as_text(data: Array, offsets: Array) -> tuple[Any, Any]:
    """The lines as strings, and what is wrong with those that are none."""
    count = len(offsets) - 1
    text = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))
    problems = pa.nulls(count, pa.string())
    wrong = np.diff(offsets) > LONGEST
    found = {int(line): TOO_LONG for line in np.flatnonzero(wrong)}
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        beyond_ascii = np.flatnonzero(np.add.reduceat(data >= 128, offsets[:-1]))
        for line in beyond_ascii:
            try:
                data[offsets[line] : offsets[line + 1]].tobytes().decode()
            except UnicodeDecodeError:
                found.setdefault(int(line), NOT_TEXT)
    if not found:
        return text, problems
    mask = np.zeros(count, np.bool_)
    mask[[*found]] = True
    lines = np.flatnonzero(mask)
    escaped = [_escaped(data[offsets[line] : offsets[line + 1]].tobytes()) for line in lines]
    whole = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    chosen = pa.array(mask)
    mended = pc.replace_with_mask(whole, chosen, pa.array(escaped, pa.binary()))
    return mended.cast(pa.string()), pc.replace_with_mask(
        problems, chosen, pa.array([found[int(line)] for line in lines])
    )


def _escaped(line: bytes) -> bytes:
    return line[:LONGEST].decode("utf-8", "backslashreplace").encode()


def _broken_off(rest: bytes, line: int, problem: str) -> Lines:
    text = pa.array([_escaped(rest.rstrip(b"\r")).decode()])
    return Lines(text, np.array([line], np.int32), np.zeros(1, np.int32), pa.array([problem]))
