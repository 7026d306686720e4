"""The product behind one function, for the tests that compare it with the oracle."""

from __future__ import annotations

import numpy as np

from pipeline.engines.choice import choose
from pipeline.engines.contract import Cost, Engine, Limits
from pipeline.errors import CannotRunError
from pipeline.events import Clock, Column, Events, Numbers, Texts, TimeStyle
from pipeline.query.check import check
from pipeline.run import fit_events, run_rows
from tests.oracle import Event, Row, Value
from tests.strategies import ATTRS


class CannotRun(Exception):
    """The engine refuses the query (exit 3)."""


def product_rows(query_text: str, events: list[Event], engine: str | Engine) -> list[Row]:
    """The rows of `trends run` on these events; raises CannotRun where the engine cannot run the query.

    `event.types` are the event's types; an attribute of `strategies.ATTRS` that is not in `event.attrs` is null.
    """
    query = check(query_text)
    fitted = fit_events(query, as_columns(events), "events")
    try:
        chosen = choose(query, engine) if isinstance(engine, str) else engine
    except CannotRunError as error:
        raise CannotRun(str(error)) from error
    return run_rows(query, chosen, fitted, Limits(), Cost())


def as_columns(events: list[Event]) -> Events:
    """The events as a file's reader would give them."""
    levels = max((len(event.types) for event in events), default=1)
    return Events(
        time=np.array([event.time for event in events], np.int64),
        clock=Clock(1, TimeStyle.INTEGER),
        types=tuple(_texts([(*event.types, *[None] * levels)[level] for event in events]) for level in range(levels)),
        attributes={name: _column([event.attrs.get(name) for event in events]) for name in ATTRS},
        known=tuple(ATTRS),
        open_schema=True,
    )


def _texts(values: list[Value]) -> Texts:
    words = sorted({str(value) for value in values if value is not None})
    return Texts(np.array([-1 if v is None else words.index(str(v)) for v in values], np.int32), tuple(words))


def _column(values: list[Value]) -> Column:
    if any(isinstance(value, str) for value in values):
        return _texts(values)
    null = np.array([value is None for value in values], bool)
    numbers = [0 if value is None else value for value in values]
    return Numbers(np.array(numbers, float if any(isinstance(n, float) for n in numbers) else np.int64), null)
