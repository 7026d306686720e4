"""SASE: two steps; build every trend from active instance stacks, then aggregate them.

Wu, Diao, Rizvi: High-Performance Complex Event Processing over Streams (SIGMOD 2006); Kleene closure and the three
semantics as COGRA (SIGMOD 2019) describes SASE: pointers to the events before, one current trend, depth first.

- Sequence scan: each state has an active instance stack (AIS); an instance keeps a pointer to the most recent
  instance on each stack before it (RIP). Stacks are partitioned by the equivalence tests (PAIS).
- Simple predicates and windows are pushed into the scan, all other predicates and the window into the construction.
- Negation looks negated events up by index; trailing negation is decided once the window is known.

Where the paper takes events as totally ordered, events of equal time are never adjacent here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from itertools import repeat

from pipeline.engines.compiled import Loop, run
from pipeline.engines.contract import Cost, Limits, Refusal, Row, Trend, Value, overlap_refusal
from pipeline.engines.kernels import sase as kernel
from pipeline.engines.kernels.status import LIMIT
from pipeline.engines.measures import integers
from pipeline.engines.scan import Optimisations, Scan
from pipeline.engines.stream import Stream
from pipeline.errors import DidNotFinishError
from pipeline.events import Array
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics


class Sase(Optimisations):
    """The engine, with its optimisations on or off."""

    name = "sase"
    source = "Wu, Diao, Rizvi: SASE (SIGMOD 2006)"
    idea = "two steps: active instance stacks; build every trend, then aggregate"
    can = "everything; time exponential in the number of events"

    def without(self, *optimisations: str) -> Sase:
        """This engine with some of its optimisations turned off."""
        return replace(self, **dict.fromkeys(optimisations, False))

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query: far too many windows, or an optimisation off that its semantics need."""
        conditions = query.machine.local or query.machine.adjacent
        if not self.predicates and query.semantics is Semantics.NEXT and conditions:
            reason = "skip-till-next-match decides by its conditions which event is next, so they cannot be put off"
            return Refusal("SEMANTICS", reason)
        return overlap_refusal(query)

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        search = _Search(self, query, stream, limits, cost, matches=False)
        rows: list[Row] = []
        for _ in search.results():
            rows += search.take_rows()
        return rows

    def trends(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> Iterator[Trend]:
        """Every trend that counts in some window, once, streamed."""
        search = _Search(self, query, stream, limits, cost, matches=True)
        for _ in search.results():
            search.take_rows()
            yield from search.take_trends()


OPTIMISATIONS = tuple(option.name for option in fields(Sase))


class _Search:
    """One run: a scan, then the kernel builds trends until it is done or a limit is reached."""

    def __init__(
        self, engine: Sase, query: Query, stream: Stream, limits: Limits, cost: Cost, *, matches: bool
    ) -> None:
        self.query, self.limits, self.cost = query, limits, cost
        self.scan = Scan(engine, query, stream, limits)
        self.ask = self.scan.ask
        cost.events += len(stream)
        self.plan, self.code = self.scan.plan()
        self.work = self.scan.work(self.plan, matches=matches)
        if self.ask is not None:
            self.ask.bound = self._bound
        cost.peak_stored = max(cost.peak_stored, len(self.plan.event) + len(self.plan.low) + len(self.work.path))

    def results(self) -> Iterator[None]:
        """Run, pausing where rows or trends are to be taken away."""
        if self.query.semantics is Semantics.NEXT:
            for _ in self._run(kernel.extend):
                pass
            self.plan = self.scan.extended(self.plan, self.work.extension)
        for status in self._run(kernel.build):
            self.cost.trends = int(self.work.register[kernel.TRENDS])
            if status == LIMIT:
                raise DidNotFinishError(f"did not finish: {self._so_far()} (--max-trends)")
            yield

    def _run(self, loop: Loop) -> Iterator[int]:
        window = self.scan.stream.window
        windows = window.within // window.slide + 1 if window.slide else 1
        return run(
            loop,
            lambda: (self.plan, self.work, self.code, self.ask),
            self.limits,
            self._so_far,
            steps=len(self.plan.event) * windows,
            in_python=self.ask is not None,
        )

    def _so_far(self) -> str:
        self.cost.trends = int(self.work.register[kernel.TRENDS])
        at = int(self.work.register[kernel.ROOT])
        return (
            f"{self.cost.trends:,} trends built, at {at:,} of {len(self.plan.root):,} events that may be a trend's last"
        )

    def _bound(self, path: Array) -> Iterator[tuple[int, int]]:
        """The current trend in time order: (state, event)."""
        instances = path[::-1]
        return zip(self.plan.state[instances].tolist(), self.plan.event[instances].tolist(), strict=True)

    def take_rows(self) -> list[Row]:
        """The rows finished so far; they are forgotten here."""
        work = self.work
        count = int(work.register[kernel.ROWS])
        work.register[kernel.ROWS] = 0
        sums = iter(range(work.row_sum.shape[1]))
        measured = [
            integers(work.row_sum[:count, next(sums)]) if kind == kernel.SUM else work.row[:count, at].tolist()
            for at, kind in enumerate(self.scan.measures.kinds)
        ]
        trends = work.row_count[:count].tolist()
        values = [self.scan.measures.values(aggregate, trends, measured) for aggregate in self.query.aggregates]
        windows = (bounds.tolist() for bounds in self.scan.stream.window.bounds(work.row_window[:count]))
        groups = work.row_group[:count].tolist()
        by_row: Iterable[tuple[Value, ...]] = zip(*values, strict=True) if values else repeat(())
        return list(map(Row._make, zip(*windows, groups, by_row, strict=False)))

    def take_trends(self) -> Iterator[Trend]:
        """The trends built since the last time."""
        work, at = self.work, 0
        for length in work.match_length[: int(work.register[kernel.MATCHED])].tolist():
            bound = self._bound(work.match[at : at + length][::-1])
            yield tuple((state, int(self.scan.stream.row[event])) for state, event in bound)
            at += length
        work.register[kernel.MATCHED] = work.register[kernel.FIRST_FREE] = 0
