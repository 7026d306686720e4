"""Columns of JSON values: each value brings its own type, which must be the one that the column needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pipeline.events import Column, Kind
from pipeline.sources.columns import Bad, GuessedColumn, NumberColumn, TextColumn
from pipeline.sources.numbers import from_arrow, shorten
from pipeline.sources.times import NO_TIMES, TimeColumn, Times

Values = Sequence[Any]


class NumberText(str):
    """A decimal number of a JSON text, as it is written there."""

    __slots__ = ()


def is_text(value: object) -> bool:
    """Text, or a boolean, which is the text `true` or `false`."""
    return type(value) is str or isinstance(value, bool)


def is_number(value: object) -> bool:
    """An integer, a decimal or an infinity (which the number's reader then refuses)."""
    return isinstance(value, int | float | NumberText) and not isinstance(value, bool)


def show(value: object) -> str:
    """A value as a message quotes it."""
    if isinstance(value, NumberText):
        return str(value)
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return shorten(value) if isinstance(value, str) else shorten(json.dumps(value)).strip("'")


def _wrong(values: Values, fits: Callable[[object], bool], needed: str) -> Bad:
    return {
        row: f"{show(value)} is not {needed}"
        for row, value in enumerate(values)
        if value is not None and not fits(value)
    }


def _types(values: Values) -> set[type]:
    return set(map(type, values)) - {type(None)}


class JsonNumberColumn(NumberColumn):
    """JSON numbers."""

    needed = "a number"

    def read(self, raw: Values) -> tuple[Any, Bad]:
        """The numbers of a batch."""
        types = _types(raw)
        if not types <= {int, NumberText, float} and (bad := _wrong(raw, is_number, self.needed)):
            return None, bad
        if types <= {int}:
            try:
                return from_arrow(pa.array(raw, pa.int64())), {}
            except (OverflowError, pa.ArrowInvalid):
                pass  # beyond 64 bits
        return super().read(pa.array([None if value is None else str(value) for value in raw], pa.string()))


class JsonTextColumn(TextColumn):
    """JSON texts and booleans."""

    needed = "text"

    def read(self, raw: Values) -> tuple[Any, Bad]:
        """The texts of a batch."""
        types = _types(raw)
        if not types <= {str, bool} and (bad := _wrong(raw, is_text, self.needed)):
            return None, bad
        texts = raw if types <= {str} else [json.dumps(value) if isinstance(value, bool) else value for value in raw]
        if bad := _not_unicode(texts):
            return None, bad
        return super().read(pa.array(texts, pa.string()))


def _not_unicode(texts: Values) -> Bad:
    """Half a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        "".join(filter(None, texts)).encode()
    except UnicodeEncodeError:
        return {row: "the text is not Unicode" for row, text in enumerate(texts) if text and not _encodes(text)}
    return {}


def _encodes(text: str) -> bool:
    return text.encode("utf-8", "replace").decode() == text


class DecidedColumn:
    """Values of which the first that is not null decides what the others must be."""

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._nulls = 0  # rows before the decision
        self._inner: JsonNumberColumn | JsonTextColumn = JsonNumberColumn()

    def read(self, raw: Values) -> tuple[Any, Bad]:
        """A batch as the decided kind."""
        kind = self._kind or _decide(raw)
        if kind is None:
            bad = _wrong(raw, lambda _: False, "a number or text")
            return (None, len(raw)), bad
        inner = self._inner if self._kind else _reader(kind)
        chunk, bad = inner.read(raw)
        return (kind, chunk), {
            # Why it is not: another row said so, not the query.
            row: f"{message}, but the column's first value is" if message.endswith(inner.needed) else message
            for row, message in bad.items()
        }

    def add(self, chunk: Any) -> None:
        """Keep a batch."""
        kind, inner_chunk = chunk
        if kind is None:
            self._nulls += inner_chunk
            return
        if self._kind is None:
            self._kind, self._inner = kind, _reader(kind)
            self._inner.add(self._inner.read([None] * self._nulls)[0])
        self._inner.add(inner_chunk)

    def finish(self) -> Column:
        """The whole column; of numbers if every value is null."""
        if self._kind is None:
            self._inner.add(self._inner.read([None] * self._nulls)[0])
        return self._inner.finish()


def _decide(values: Values) -> Kind | None:
    for value in values:
        if is_text(value):
            return Kind.TEXT
        if is_number(value):
            return Kind.NUMBER
    return None


def _reader(kind: Kind) -> JsonNumberColumn | JsonTextColumn:
    return JsonNumberColumn() if kind is Kind.NUMBER else JsonTextColumn()


class LooseColumn(GuessedColumn):
    """Values that no query looks at: numbers if all are, else everything as text."""

    def __init__(self) -> None:
        super().__init__()
        self._all_numbers = True

    def read(self, raw: Values) -> tuple[Any, Bad]:
        """A batch as text."""
        texts = [None if value is None else _text(value) for value in raw]
        chunk, _ = super().read(pa.array(texts, pa.string()))
        return (chunk, all(value is None or is_number(value) for value in raw)), {}

    def add(self, chunk: Any) -> None:
        """Keep a batch."""
        encoded, numbers = chunk
        self._all_numbers &= numbers
        super().add(encoded)

    def finish(self) -> Column:
        """The whole column."""
        return super().finish() if self._all_numbers else TextColumn.finish(self)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(_plain(value), ensure_ascii=False).encode("utf-8", "replace").decode()


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return float(value) if isinstance(value, NumberText) else value


class JsonTimeColumn(TimeColumn):
    """JSON times: integers, decimals, or text."""

    def read(self, raw: Values) -> tuple[Times, Bad]:
        """The times of a batch."""
        types = _types(raw)
        if types <= {int}:
            try:
                return super().read(pa.array(raw, pa.int64()))
            except (OverflowError, pa.ArrowInvalid):
                pass  # beyond 64 bits
        if not types <= {int, NumberText} and (bad := _wrong(raw, _is_time, "a time")):
            return NO_TIMES, bad
        return super().read(pa.array([None if value is None else str(value) for value in raw], pa.string()))


def _is_time(value: object) -> bool:
    return is_number(value) or (isinstance(value, str) and _encodes(value))
