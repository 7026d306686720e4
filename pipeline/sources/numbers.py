"""Text becomes numbers: Arrow casts where every value is plain, and an exact path value by value for the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.events import Array, Numbers

Chunk = TypeVar("Chunk")

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"[+-]?[0-9]+")
# What a guess takes for a number; `007` and `+1` are codes rather than numbers.
PLAIN_INTEGER = r"^-?(0|[1-9][0-9]*)$"
PLAIN_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
NOT_A_NUMBER = r"^[+-]?([nN]a[nN]|NAN)$"
MAX_DIGITS = 4300  # of an integer in the input; the time to read one grows with their square


def letters(raw: Any) -> frozenset[int]:
    """The bytes other than digits that occur in a text array.

    >>> sorted(map(chr, letters(pa.array(["-1.5", None, "20"]))))
    ['-', '.']
    """
    _, offsets, data = raw.buffers()
    if data is None:
        return frozenset()
    wide = pa.types.is_large_string(raw.type)
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[raw.offset : raw.offset + len(raw) + 1]
    used = data.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()
    return frozenset(used.translate(None, b"0123456789"))


def cast(raw: Any, to: Any) -> Any | None:
    """The array as another type, or None if a value cannot be."""
    try:
        raw.slice(0, 8).cast(to)  # Arrow goes on to the end after a failure, at ten times the cost of a success
        return raw.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def null_mask(raw: Any) -> Array:
    """Where an Arrow array is null."""
    if not raw.null_count:
        return np.zeros(len(raw), np.bool_)
    mask: Array = raw.is_null().to_numpy(zero_copy_only=False)
    return mask


def from_arrow(raw: Any) -> Numbers:
    """An Arrow array of int64 or float64, NaN taken for null."""
    null, values = null_mask(raw), raw.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype == np.float64 and np.isnan(values).any():
        null = null | np.isnan(values)
        values = np.where(null, 0.0, values)
    return Numbers(values, null)


def from_integers(integers: Sequence[int], null: Array) -> Numbers:
    """Python integers as int64 if each fits, else as they are."""
    try:
        return Numbers(np.array(integers, np.int64), null)
    except OverflowError:
        return Numbers(np.array(integers, object), null)


def numbers_from_text(raw: Any) -> tuple[Numbers, dict[int, str]]:
    """The numbers that a text array holds, and what is wrong at the positions where it holds none."""
    found = letters(raw)
    # The letters are tested first because Arrow also reads `0x1A`, `inf` and `nan`.
    if found <= set(b"-") and (integers := cast(raw, pa.int64())) is not None:
        return from_arrow(integers), {}
    if found & set(b".eE") and found <= set(b"+-.eE") and (floats := cast(raw, pa.float64())) is not None:
        numbers = from_arrow(floats)
        if np.isfinite(numbers.values).all():
            return numbers, {}
    return _one_by_one(raw)


def _one_by_one(raw: Any) -> tuple[Numbers, dict[int, str]]:
    encoded = raw.dictionary_encode()
    parsed = [parse_number(word) for word in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(-1).to_numpy().tolist()
    bad = {row: wrong for row, code in enumerate(codes) if code >= 0 and isinstance(wrong := parsed[code], str)}
    cells = [parsed[code] if code >= 0 else None for code in codes]
    null = np.array([cell is None for cell in cells], np.bool_)
    numbers = [0 if cell is None or isinstance(cell, str) else cell for cell in cells]
    if any(isinstance(number, float) for number in numbers):
        return Numbers(np.array([float(number) for number in numbers], np.float64), null), bad
    return from_integers([int(number) for number in numbers], null), bad


def parse_number(word: str) -> int | float | str | None:
    """One number; None for NaN, and a text that says what is wrong where it is none.

    >>> parse_number(" 12345678901234567890123 "), parse_number("1.5e3"), parse_number("nan"), parse_number("abc")
    (12345678901234567890123, 1500.0, None, "'abc' is not a number")
    """
    text = word.strip()
    if re.match(NOT_A_NUMBER, text):
        return None
    if not NUMBER.fullmatch(text):
        finite = text.lstrip("+-").lower() not in ("inf", "infinity")
        return f"{shorten(word)} is not a {'number' if finite else 'finite number'}"
    try:
        number = whole_number(text) if INTEGER.fullmatch(text) else float(text)
    except ValueError:
        return f"{shorten(word)} has too many digits"
    return number if isinstance(number, int) or math.isfinite(number) else f"{shorten(word)} is too large a number"


def whole_number(text: str) -> int:
    """An integer of the input; ValueError where it is longer than one may be, whatever this process allows."""
    if len(text) > MAX_DIGITS:
        raise ValueError("too many digits")
    return int(text)


def numbers_from_words(words: Any) -> Numbers | None:
    """The numbers that distinct words are, if all of them are plain numbers; NaN among numbers is null."""
    # Most text gives itself away by a letter, which spares it the regular expressions.
    if not letters(words) <= set(b"+-.eEnNaA"):
        return None
    null: Array = pc.match_substring_regex(words, NOT_A_NUMBER).to_numpy(zero_copy_only=False)
    kept = words if not null.any() else pc.if_else(pa.array(null), "0", words).cast(words.type)
    if pc.all(pc.match_substring_regex(kept, PLAIN_INTEGER), min_count=0).as_py():
        if (integers := cast(kept, pa.int64())) is not None:
            return Numbers(integers.to_numpy(), null)
        exact = [number for word in kept.to_pylist() if isinstance(number := parse_number(word), int)]
        return from_integers(exact, null) if len(exact) == len(kept) else None
    if not pc.all(pc.match_substring_regex(kept, PLAIN_NUMBER), min_count=0).as_py():
        return None
    values = kept.cast(pa.float64()).to_numpy()
    return Numbers(values, null) if np.isfinite(values).all() else None


def join_numbers(chunks: list[Numbers]) -> Numbers:
    """One column of all chunks, which are used up: float64 if one is, else Python integers if one is, else int64.

    An integer that float64 cannot hold beside decimal numbers raises OverflowError.
    """
    kinds = {chunk.values.dtype.kind for chunk in chunks}
    values: Array = np.empty(
        sum(map(len, chunks)), np.float64 if "f" in kinds else object if "O" in kinds else np.int64
    )
    null = np.concatenate([np.empty(0, np.bool_), *(chunk.null for chunk in chunks)])
    for part, chunk in fill(values, chunks, len):
        part[:] = _as_floats(chunk.values) if "f" in kinds else chunk.values
    return Numbers(values, null)


def fill(whole: Array, chunks: list[Chunk], length: Callable[[Chunk], int]) -> Iterator[tuple[Array, Chunk]]:
    """The part of an array that each chunk is to fill; a chunk's memory is free once it has."""
    start = 0
    chunks.reverse()
    while chunks:
        chunk = chunks.pop()
        yield whole[start : start + length(chunk)], chunk
        start += length(chunk)


def _as_floats(values: Array) -> Array:
    if values.dtype == object:
        return np.array([float(value) for value in values], np.float64)
    return values.astype(np.float64, copy=False)


def shorten(value: str, length: int = 40) -> str:
    """A value as a message quotes it."""
    return repr(value if len(value) <= length else value[: length - 1] + "…")
