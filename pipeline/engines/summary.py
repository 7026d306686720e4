"""Summaries: what a part of the events does to any aggregates before it, so that parts can be run apart and joined.

`summarise` makes one linear map a partition and pane, `combine` joins the summaries of earlier and of later events, in
any association, and `finish` gives the rows. A partition may be cut anywhere between two different times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.engines.affine import Nodes, affine_refusal, make_affine
from pipeline.engines.aggregates import make_weights, scaled, taken
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.evaluate import take
from pipeline.engines.kernels import summary as kernel
from pipeline.engines.kernels.cells import Cells
from pipeline.engines.kernels.sase import COUNT, SUM
from pipeline.engines.kernels.status import GROW
from pipeline.engines.measures import Measures
from pipeline.engines.online import online_refusal
from pipeline.engines.panes import PaneAggregation, make_panes, pane_length
from pipeline.engines.stream import Stream, make_stream
from pipeline.engines.windows import changes
from pipeline.events import Array, Column, Events, Numbers, Texts
from pipeline.query.checked import Query


@dataclass(frozen=True)
class Summary:
    """Maps of panes; it can be pickled."""

    panes: Events  # as events: when each map's pane begins, and its partition's attributes
    maps: Cells
    measures: Measures  # without events: how the maps' numbers are scaled, and what their ranks stand for


def summary_refusal(query: Query) -> Refusal | None:
    """Why the events of a query cannot be summarised in parts."""
    if query.tree.within.in_events:
        return Refusal("WITHIN", "positions in the whole stream are not known to a part of it")
    return online_refusal(query) or affine_refusal(query)


def summarise(query: Query, events: Events, limits: Limits) -> Summary:
    """One map a partition and pane."""
    stream = make_stream(query, events)
    length = pane_length(stream.window)
    begin = np.flatnonzero(changes(stream.part, stream.time // length))
    measures = Measures.needed(query, stream)
    nodes = Nodes(query, apart=stream.window.slide is None)
    work = make_panes(nodes, measures, limits, maps=len(begin))
    affine = make_affine(nodes, stream, measures, first_cell=work.free, quick=True)
    weights = make_weights(measures)
    begins, register = np.append(begin, len(stream)), np.zeros(3, np.int64)
    pauses = run(
        kernel.summarise,
        lambda: (affine, work.panes, begins, register, work.pool.cells, weights),
        limits,
        lambda: f"{int(register[kernel.ENTRY]):,} of {len(begin):,} panes summarised",
        steps=2 * len(stream),
    )
    for status in pauses:
        if status == GROW:
            work.pool.grow()
    panes = Events(
        time=stream.time[begin] // length * length,
        clock=stream.clock,
        types=(),
        attributes={key: take(stream.columns[key], begin) for key in query.keys},
        known=query.keys,
        open_schema=False,
    )
    maps = taken(work.pool.cells, np.arange(len(begin) * nodes.count))
    return Summary(panes, maps, measures.without_events())


def combine(query: Query, earlier: Summary, later: Summary, limits: Limits) -> Summary:
    """The summary of earlier and of later events; in no partition may both have events of one time."""
    measures = earlier.measures.joined(later.measures)
    panes = _concatenated(earlier.panes, later.panes)
    stream = make_stream(query, panes)
    nodes = Nodes(query, apart=stream.window.slide is None)
    # Sorting is stable: in a partition and pane the earlier map comes first.
    first = np.flatnonzero(changes(stream.part, stream.time))
    twice = np.diff(np.append(first, len(stream))) == 2
    work = make_panes(nodes, measures, limits, maps=len(panes) + int(twice.sum()))
    work.pool.load(0, _adapted(earlier, measures))
    work.pool.load(len(earlier.panes) * nodes.count, _adapted(later, measures))
    pairs = kernel.Pairs(
        earlier=stream.row[first[twice]],
        later=stream.row[first[twice] + 1],
        to=len(panes) + np.arange(int(twice.sum())),
    )
    affine = make_affine(nodes, None, measures, first_cell=work.free, quick=True)
    register = np.zeros(3, np.int64)
    pauses = run(
        kernel.combine,
        lambda: (affine, work.panes, pairs, register, work.pool.cells),
        limits,
        lambda: f"{int(register[kernel.ENTRY]):,} of {len(pairs.to):,} panes joined",
        steps=nodes.count**2 * len(pairs.to),
    )
    for status in pauses:
        if status == GROW:
            work.pool.grow()
            work.panes.grow[:] = 0
    number = stream.row[first]
    number[twice] = pairs.to
    return Summary(_taken(panes, stream.row[first]), taken(work.pool.cells, _cells_of(number, nodes)), measures)


def finish(query: Query, summary: Summary, limits: Limits, cost: Cost) -> tuple[Stream, list[Row]]:
    """The rows of every group and window in which a trend finished, and the stream whose groups they number."""
    stream = make_stream(query, summary.panes)
    nodes = Nodes(query, apart=stream.window.slide is None)
    maps = taken(summary.maps, _cells_of(stream.row, nodes))
    return stream, PaneAggregation(query, stream, limits, cost, Summary(summary.panes, maps, summary.measures)).rows()


def parted(query: Query, summary: Summary, maps: Array) -> Summary:
    """Some of a summary's maps, by their numbers."""
    nodes = Nodes(query, apart=query.tree.slide is None)
    return replace(summary, panes=_taken(summary.panes, maps), maps=taken(summary.maps, _cells_of(maps, nodes)))


def _cells_of(maps: Array, nodes: Nodes) -> Array:
    return (maps[:, None] * nodes.count + np.arange(nodes.count)).ravel()


def _taken(panes: Events, order: Array) -> Events:
    attributes = {name: take(column, order) for name, column in panes.attributes.items()}
    return replace(panes, time=panes.time[order], attributes=attributes)


def _concatenated(one: Events, two: Events) -> Events:
    assert one.clock == two.clock, "parts of one stream have one clock"
    attributes = {name: _appended(column, two.attributes[name]) for name, column in one.attributes.items()}
    return replace(one, time=np.concatenate([one.time, two.time]), attributes=attributes)


def _appended(one: Column, two: Column) -> Column:
    if isinstance(one, Texts) and isinstance(two, Texts):
        words = sorted({*one.words, *two.words})
        codes = [np.searchsorted(words, column.words).astype(np.int32)[column.codes] for column in (one, two)]
        return Texts(np.concatenate(codes), tuple(words))
    assert not isinstance(one, Texts), "parts of one stream have the same columns"
    assert not isinstance(two, Texts)
    return Numbers(np.concatenate([one.values, two.values]), np.concatenate([one.null, two.null]))


def _adapted(summary: Summary, measures: Measures) -> Cells:
    """A summary's maps with their sums scaled, and their ranks numbered, as other measures have them."""
    cells = summary.maps
    counted, ranked, sums = 0, 0, 0
    for kind, ranks in zip(measures.kinds, summary.measures.ranks_in(measures), strict=True):
        if kind in (COUNT, SUM):
            counted += 1
        if kind == SUM:
            bits = summary.measures.sums[sums].exponent - measures.sums[sums].exponent
            cells = scaled(cells, np.arange(counted, len(cells.numbers.size), cells.parts), bits)
            sums += 1
        if ranks is not None:
            rank = cells.rank.copy()
            rank[:, ranked] = ranks[np.minimum(rank[:, ranked], len(ranks) - 1)]
            cells = cells._replace(rank=rank)
            ranked += 1
    return cells
