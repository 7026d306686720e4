"""A CSV file as blocks of whole records, with the lines that are no records cut out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

BLOCK = 1 << 23
LONGEST_RECORD = 1 << 20  # a quote that stays open for longer than this was a slip, not a long text

BLANK = b"\r\n"  # not just a newline, which would join a lone return before it

# The module's own limit of 128 KB a field is for its callers' safety; here the file has been read already.
csv.field_size_limit(2**31 - 1)


@dataclass(frozen=True)
class Block:
    """Whole records of a file. A line cut out is left blank, so that later lines keep their numbers."""

    text: bytes
    first_line: int
    broken: list[tuple[int, str]]  # line, what is wrong
    quoted: bool


def split_header(stream: BinaryIO) -> tuple[list[str], bytes, int]:
    """The header's names, the bytes read after it, and the line at which these start; no names in an empty file."""
    lines = stream.read(BLOCK).removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    reader = csv.reader((raw.decode() for raw in lines), strict=True)
    for names in reader:
        if any(name.strip() for name in names):
            return names, b"".join(lines[reader.line_num :]), reader.line_num + 1
    return [], b"", 1


def read_blocks(stream: BinaryIO, rest: bytes, line: int, width: int) -> Iterator[Block]:
    """The records of `rest` and of what the stream has after it, `width` fields each."""
    while True:
        data = stream.read(BLOCK)
        text = rest + data
        # A cut after a newline is safe unless a quote is open there, which `_cut_out` looks after.
        cut = text.rfind(b"\n") + 1 if data else len(text)
        block, left = _cut_out(text[:cut], line, width, final=not data)
        yield block
        rest = left + text[cut:]
        line += _count_lines(block.text)
        if not data:
            return


def _count_lines(text: bytes) -> int:
    # A block holds whole lines, the file's last one apart, after which nothing is counted.
    lone_returns = text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0
    return text.count(b"\n") + lone_returns


def _cut_out(text: bytes, line: int, width: int, final: bool) -> tuple[Block, bytes]:
    """The block without lines that are not UTF-8 or leave a quote open, and the record that its end cuts in two."""
    broken: list[tuple[int, str]] = []
    quoted = b'"' in text
    valid = _is_utf8(text)
    if valid and not quoted:
        return Block(text, line, broken, quoted), b""
    lines = text.splitlines(keepends=True)
    if not valid:
        for index, raw in enumerate(lines):
            if not _is_utf8(raw):
                broken.append((line + index, "the line is not UTF-8 text"))
                lines[index] = BLANK
    # Where every line has an even number of quotes, no record goes on to the next line.
    index = 0 if any(raw.count(b'"') & 1 for raw in lines) else len(lines)
    while index < len(lines):
        used = _record_length(lines, index, width) if b'"' in lines[index] else 1
        if used is None and not final and sum(map(len, lines[index:])) < LONGEST_RECORD:
            return Block(b"".join(lines[:index]), line, broken, quoted), b"".join(lines[index:])
        if not used:
            broken.append((line + index, "a quote is opened and not properly closed"))
            lines[index] = BLANK
        index += used or 1
    return Block(b"".join(lines) if broken else text, line, broken, quoted), b""


def _record_length(lines: list[bytes], start: int, width: int) -> int | None:
    """How many lines the record from here on takes; None if the last line leaves it open, 0 if it makes no sense."""
    alone = csv.reader(chain([lines[start].decode()], _OPEN))
    with suppress(_StillOpen):
        next(alone)
        return 1
    # Over several lines a stray quote would swallow rows until the next one, so only a record without fault will do.
    several = csv.reader(chain((lines[index].decode() for index in range(start, len(lines))), _OPEN), strict=True)
    try:
        record = next(several)
    except _StillOpen:
        return None
    except csv.Error:
        return 0
    return several.line_num if len(record) == width else 0


class _StillOpen(Exception):
    """A record goes on, but there are no more lines."""


class _Open:
    def __iter__(self) -> Iterator[str]:
        raise _StillOpen


_OPEN = _Open()


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def locate_records(block: Block, width: int) -> tuple[list[int], list[tuple[int, str]]]:
    """The line on which each record starts, and the lines with too many or too few fields.

    For messages only: this takes a Python object a field.
    """
    starts, ragged = [], []
    reader = csv.reader(io.StringIO(block.text.decode(), newline=""))
    line = block.first_line
    for record in reader:
        if len(record) == width:
            starts.append(line)
        elif len(record) > 1 or "".join(record).strip():
            ragged.append((line, f"the line has {_fields(len(record))}, the header has {width}"))
        line = block.first_line + reader.line_num
    return starts, ragged


def _fields(count: int) -> str:
    return f"{count} field{'s' if count != 1 else ''}"
