"""FLA and PRC: two steps; build every match forward along shared links, then aggregate them.

Nishimura, Kawashima: complex event processing with link aggregation and pattern cache (in Japanese): forward link
aggregation (FLA) and partial result caching (PRC), for sequences of single events.

- Each state has an active instance stack; an event's link leads to the earliest later event on the next stack (RIS),
  and with it to all above that one.
- The stacks are filled up to the end of the oldest first event's window; all matches there that are not built yet are
  built forward from the first events. First events that have the same link are one cluster, and follow it once.
- FLA then empties the last stack and drops the oldest first event with all that only it led to. So the next round
  follows the links between the events that remain once more.
- PRC empties all stacks but the first, and caches the partial matches that it came by, in the order of their first
  events. The next round joins them with what is new. They go when their first event does.

Work is counted by the steps that the search makes onto an event. The paper says only that the second round of its
example takes FLA 11 link traversals and PRC 5: these are the steps onto a first event too (without them: 9 and 3), and
not those that a cached partial match makes onto a new event, which are cache hits here.

The paper speaks of skip-till-next-match, but its links enumerate what is skip-till-any-match here. Where it takes
events as totally ordered, events of equal time are never adjacent here. Beyond the paper: a condition between
neighbours is tested as the link is followed (first events under one share no link); a round without a new last event
is not searched.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.engines.aggregates import Found
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Refusal, Row, Trend, overlap_refusal
from pipeline.engines.kernels import links, rounds, sase
from pipeline.engines.kernels.status import GROW, LIMIT
from pipeline.engines.measures import integers
from pipeline.engines.scan import MATCH_BUFFER, ROW_BUFFER, Optimisations, Scan
from pipeline.engines.stream import Stream
from pipeline.engines.windows import NEVER, most_within
from pipeline.errors import DidNotFinishError
from pipeline.events import Array
from pipeline.memory import available_memory
from pipeline.query.automaton import FREE
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

FIRST_CACHE = 4096  # entries; it grows as needed


class Links:
    """What FLA and PRC share: all but the cache."""

    source = "Nishimura, Kawashima: link aggregation and pattern cache"
    can = "skip-till-any-match; sequences of single events; conditions on single events and neighbours"
    caches: bool

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query."""
        if query.semantics is not Semantics.ANY:
            return Refusal("SEMANTICS", f"it knows skip-till-any-match only, not {query.semantics.value}")
        automaton, final = query.automaton, len(query.automaton.states) - 1
        steps = {(state, state + 1): FREE for state in range(final)}
        if (automaton.first, automaton.last, automaton.follow) != ({0: FREE}, {final: FREE}, steps):
            reason = "negation" if automaton.negations else "repeated, optional or alternative parts"
            return Refusal("PATTERN", f"it knows sequences of single events only, no {reason}")
        if query.machine.other:
            joined = query.machine.other[0].condition
            return Refusal("WHERE", f"{joined} joins events that are not neighbours, which no link does")
        return overlap_refusal(query)

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        search = Search(query, stream, limits, cost, caches=self.caches, matches=False)
        found = Found(query, search.scan.measures)
        for _ in search.results():
            search.take_rows(found)
        return found.rows(stream.window)

    def trends(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> Iterator[Trend]:
        """Every trend that counts in some window, once, streamed."""
        search = Search(query, stream, limits, cost, caches=self.caches, matches=True)
        for _ in search.results():
            search.work.register[sase.ROWS] = 0
            yield from search.take_trends()


class Fla(Links):
    """Forward link aggregation."""

    name = "fla"
    idea = "two steps: links to the next stack, shared by first events; build every trend, then aggregate"
    caches = False


class Prc(Links):
    """Partial result caching."""

    name = "prc"
    idea = "as fla; partial trends are cached, so that no link is followed twice"
    caches = True


class Search:
    """One run: a scan, then the kernel builds matches round by round until it is done or a limit is reached."""

    def __init__(
        self, query: Query, stream: Stream, limits: Limits, cost: Cost, *, caches: bool, matches: bool
    ) -> None:
        self.limits, self.cost = limits, cost
        self.scan = Scan(Optimisations(), query, stream, limits)
        self.plan, self.code = self.scan.plan()
        self.layout = self._layout(caches)
        self.work = self._work(matches)
        cost.events += len(stream)

    def results(self) -> Iterator[None]:
        """Run, pausing where rows or trends are to be taken away."""
        pauses = run(
            links.build,
            lambda: (self.plan, self.layout, self.work, self.code),
            self.limits,
            self._so_far,
            steps=len(self.plan.event),
        )
        for status in pauses:
            self._so_far()
            if status == LIMIT:
                raise DidNotFinishError(f"did not finish: {self._so_far()} (--max-trends)")
            if status == GROW:
                self._grow()
            yield

    def _so_far(self) -> str:
        register, cost = self.work.register, self.cost
        cost.trends, cost.links = int(register[sase.TRENDS]), int(register[rounds.LINKS])
        cost.cache_hits, cost.peak_stored = int(register[rounds.HITS]), int(register[rounds.PEAK])
        at, firsts = int(register[rounds.FIRST]), int(self.plan.stack[1])
        return f"{cost.trends:,} trends built, at {at:,} of {firsts:,} events that may be a trend's first"

    def take_rows(self, found: Found) -> None:
        """Take the finished rows away."""
        work, count = self.work, int(self.work.register[sase.ROWS])
        work.register[sase.ROWS] = 0
        sums = iter(range(work.row_sum.shape[1]))
        columns = [
            integers(work.row_sum[:count, next(sums)]) if kind == sase.SUM else work.row[:count, at].tolist()
            for at, kind in enumerate(self.scan.measures.kinds)
        ]
        trends = work.row_count[:count].tolist()
        found.add(work.row_window[:count], work.row_group[:count], [trends, *columns], work.row_ended[:count])

    def take_trends(self) -> Iterator[Trend]:
        """The trends built since the last time."""
        register, states = self.work.register, len(self.plan.stack) - 1
        instances = self.work.match[: register[sase.FIRST_FREE]].reshape(-1, states)
        register[sase.FIRST_FREE] = 0
        for events in self.scan.stream.row[self.plan.event[instances]].tolist():
            yield tuple(enumerate(events))

    # ------------------------------------------------------------------------------------------------------- arrays

    def _layout(self, caches: bool) -> rounds.Layout:
        plan, stream = self.plan, self.scan.stream
        stacks = [plan.event[begin:end] for begin, end in zip(plan.stack, plan.stack[1:], strict=False)]
        parts = np.arange(len(stream.part_group) + 1)
        bound = [np.searchsorted(plan.part[stack], parts) + at for stack, at in zip(stacks, plan.stack, strict=False)]
        links = [
            np.searchsorted(later, stream.tie_end[stack]) + at
            for stack, later, at in zip(stacks, stacks[1:], plan.stack[1:], strict=False)
        ]
        moments, one_of = np.unique(plan.start[stacks[-1]], return_index=True)
        ends = stacks[-1][one_of]
        groups = np.arange(int(stream.part_group.max(initial=-1)) + 1)
        return rounds.Layout(
            bound=np.stack(bound, axis=1),
            link=np.concatenate([*links, np.zeros(len(stacks[-1]), np.int64)]),
            clusters=len(stacks) == 1 or bool(plan.program[0] < 0),
            caches=caches,
            moments=plan.place[ends],
            moment=np.searchsorted(moments, plan.start),
            moment_end=np.searchsorted(plan.group[ends], groups, side="right"),
            starts=most_within(plan.part[stacks[0]], plan.place[stacks[0]], plan.within),
            ends=most_within(plan.part[stacks[-1]], plan.place[stacks[-1]], plan.within),
        )

    def _work(self, matches: bool) -> rounds.Work:
        plan, states = self.plan, len(self.plan.stack) - 1
        cells = self.layout.starts + self.layout.ends + 1

        def empty(*shape: int) -> Array:
            return np.zeros(shape, np.int64)

        def measures(count: int) -> tuple[Array, Array]:
            return empty(count, len(plan.measure)), empty(count, *plan.limb.shape[:2])

        run, run_sum = measures(states + 1)
        sase.reset(plan, run[0], run_sum[0])
        cell, cell_sum = measures(cells)
        row, row_sum = measures(ROW_BUFFER)
        register = empty(64)
        register[rounds.PART] = register[rounds.DEPTH] = register[rounds.FREED] = -1
        register[sase.MAX_TRENDS] = NEVER if self.limits.trends is None else self.limits.trends
        cache = FIRST_CACHE if self.layout.caches else 0
        return rounds.Work(
            register=register,
            low=empty(states),
            loaded=empty(states),
            path=empty(states),
            cursor=empty(states),
            run=run,
            run_sum=run_sum,
            cell_count=empty(cells),
            cell=cell,
            cell_sum=cell_sum,
            head=empty(self.layout.starts),
            cache_next=empty(cache),
            cache_length=empty(cache),
            cache_path=empty(cache, states),
            row_group=empty(ROW_BUFFER),
            row_window=empty(ROW_BUFFER),
            row_count=empty(ROW_BUFFER),
            row_ended=empty(ROW_BUFFER),
            row=row,
            row_sum=row_sum,
            match=empty(max(MATCH_BUFFER, states) if matches else 0),
        )

    def _grow(self) -> None:
        """Room for twice as many cached partial matches."""
        work = self.work
        size, states = work.cache_path.shape
        needed = 8 * size * (states + 2)
        if needed > available_memory():
            raise DidNotFinishError(
                f"did not finish: {self._so_far()}; {size:,} partial trends are cached, and {needed / 1e9:.1f} GB "
                "for more of them are not free\nhint: --engine fla, which caches none, or a shorter WITHIN"
            )
        self.work = work._replace(
            cache_next=_doubled(work.cache_next),
            cache_length=_doubled(work.cache_length),
            cache_path=_doubled(work.cache_path),
        )


def _doubled(array: Array) -> Array:
    return np.concatenate([array, np.zeros_like(array)])
