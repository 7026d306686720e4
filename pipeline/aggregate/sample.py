"""A look at a few rows before a job, to see how many events of a key a pane holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from pipeline.aggregate.columns import TIME, SilverTable
from pipeline.aggregate.scan import read_some
from pipeline.aggregate.snapshot import DataFile
from pipeline.engines.stream import numbered
from pipeline.questions import Question

MANY = 1.2  # times as many keys in all rows as in half of them: most keys were not seen yet


def events_a_pane(question: Question, files: Sequence[DataFile]) -> float | None:
    """About how many events of one key a pane holds, by those of one file; None where panes make no sense."""
    reach, query = question.reach, question.query
    if reach.slide is None or not files:
        return None
    largest = max(files, key=lambda file: file.rows)
    table = SilverTable(read_some(largest, (TIME, *query.keys)).drop_null())
    size, length = len(table.time), gcd(reach.within, reach.slide)
    if not size:
        return None
    key = numbered([table.column(name) for name in query.keys])
    key = np.zeros(size, np.int32) if key is None else key
    pane = table.time // length
    pairs = len(np.unique((pane - pane.min()) * (int(key.max()) + 1) + key))
    span, distinct = int(table.time.max() - table.time.min()) + 1, len(np.unique(key))
    if span >= length or distinct > MANY * len(np.unique(key[: size // 2 + 1])):
        return size / pairs
    return size / distinct * length / span
