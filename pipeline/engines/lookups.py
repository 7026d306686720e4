"""What events ask of the earlier ones, and what is compared for it, as kernels read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.engines.edges import as_rows
from pipeline.engines.index_forms import Form, index_forms
from pipeline.engines.index_keys import Row, make_row
from pipeline.engines.kernels.fenwick import Keys
from pipeline.engines.stream import Stream
from pipeline.events import Array
from pipeline.query.checked import Query


class Lookup(NamedTuple):
    """What is asked of the events of a state."""

    source: int
    form: Form
    target: int | None  # None: any state may ask; divide and conquer is for one alone

    @property
    def conquers(self) -> bool:
        """Whether it is answered by divide and conquer."""
        return self.target is not None


# With the states that ask.
Lookups = dict[Lookup, list[int]]


def make_lookups(query: Query) -> Lookups:
    """The lookups of all edges of a query that indexes can answer."""
    lookups: Lookups = {}
    for (source, target), form in index_forms(query).items():
        assert form is not None
        for one in form.lookups():
            lookup = Lookup(source, one, target if len(one.ordered) == 2 else None)
            lookups.setdefault(lookup, []).append(target)
    return lookups


def make_keys(lookups: Lookups, stream: Stream) -> tuple[Keys, list[Row]]:
    """What lookups compare; and the same form by form."""
    forms = list(dict.fromkeys(lookup.form for lookup in lookups))
    rows = [make_row(form, stream) for form in forms]
    fields = [(forms.index(one.form), one.source, -1 if one.target is None else one.target) for one in lookups]
    columns: dict[int, Array] = {id(column): column for row in rows for column in row[:4] if column is not None}
    places = {None: -1} | {key: place for place, key in enumerate(columns)}
    fields_of = [[places[None if column is None else id(column)] for column in row[:4]] for row in rows]
    keys = Keys(
        lookup=np.array(fields, np.int64).reshape(-1, 3),
        field=np.array(fields_of, np.int64).reshape(-1, 4),
        column=as_rows(list(columns.values()), len(stream), np.int32),
        segment=np.concatenate([np.zeros(0, np.int32), *(row.segment for row in rows)]),
        segment_begin=np.cumsum([0, *(len(row.segment) for row in rows)]),
        distinct=np.array([row.segment[-1] for row in rows], np.int64),
    )
    return keys, rows


def by_state(lookups: Lookups, states: int) -> tuple[Array, Array, Array, Array]:
    """Per state the lookups of its predecessors, then those that its events are stored for, both as lists."""
    stored = [(number, lookup) for number, lookup in enumerate(lookups) if not lookup.conquers]
    into = [(target, number) for number, lookup in stored for target in lookups[lookup]]
    out = [(lookup.source, number) for number, lookup in stored]
    return *_listed(into, states), *_listed(out, states)


def _listed(pairs: list[tuple[int, int]], count: int) -> tuple[Array, Array]:
    """Numbers by their keys: where each key's begin, and the numbers."""
    ordered = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return np.searchsorted(ordered[:, 0], np.arange(count + 1)), np.ascontiguousarray(ordered[:, 1])
