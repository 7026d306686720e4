"""FLA and PRC beyond their rows: the paper's example step by step, the trends themselves, the cache, giving up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import compiled, nishimura
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.kernels import links, rounds, sase
from pipeline.engines.kernels.status import DONE
from pipeline.engines.nishimura import Fla, Links, Prc, Search
from pipeline.engines.sase import Sase
from pipeline.errors import DidNotFinishError
from pipeline.query.check import check
from pipeline.run import Fitted, fit_events, run_rows
from tests.engines.test_against_oracle import agrees, many
from tests.oracle import Event
from tests.oracle_query import Query
from tests.product import as_columns, product_rows
from tests.strategies import EVERYTHING, LINKED_SEQUENCES, cases, stream, streams

GOLDEN = Path(__file__).parent / "golden" / "nishimura.txt"
EXAMPLE = "a1 c2 b3 a4 d5 b6 d7 a8 d9 b10 d11 d12 b13"
ENGINES = (Fla(), Prc())
both = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def fit(query: str, events: list[Event]) -> Fitted:
    return fit_events(check(query), as_columns(events), "events")


def cost_of(engine: Links, query: str, events: list[Event]) -> Cost:
    cost = Cost()
    run_rows(check(query), engine, fit(query, events), Limits(), cost)
    return cost


# ---- The paper's example ----


class Trace:
    """Looks at a search after every step, and writes its rounds down as the golden file does."""

    def __init__(self, engine: Links, query: str, events: list[Event]) -> None:
        checked = check(query)
        self.search = Search(checked, fit(query, events).stream, Limits(), Cost(), caches=engine.caches, matches=True)
        self.engine, self.names = engine, [f"{event.type.lower()}{event.time}" for event in events]
        self.labels = [state.label for state in checked.automaton.states]
        self.work, self.layout = self.search.work, self.search.layout
        self.rounds: list[dict[str, str]] = []
        while self._step() != DONE:
            pass

    def _step(self) -> int:
        register = self.work.register
        stage, trends, depth, followed = (
            int(register[at]) for at in (rounds.STAGE, sase.TRENDS, rounds.DEPTH, rounds.LINKS)
        )
        status = links.build(self.search.plan, self.layout, self.work, self.search.code, 1)
        now = register[rounds.STAGE]
        if stage == rounds.OPEN and now == rounds.SEARCH:
            self.clusters: list[str] = []
            self.built: dict[bool, list[tuple[int, ...]]] = {True: [], False: []}
            self.followed = followed
            self.rounds.append({"stacks": self._stacks(), "links": self._links()})
        if stage == rounds.SEARCH and register[sase.TRENDS] > trends:
            self.built[bool(register[rounds.BASE] > 0)].append(tuple(self.work.path.tolist()))
        if depth < 0 and register[rounds.DEPTH] == 0:
            members = range(register[rounds.CLUSTER], register[rounds.CLUSTER_END])
            self.clusters += [self._text(members)] if len(members) > 1 else []
        if stage == rounds.SEARCH and now == rounds.CLOSE:
            caches = self.engine.caches
            self.rounds[-1] |= {"clusters": ", ".join(self.clusters) or "none"}
            self.rounds[-1] |= {"from cache": self._matches(self.built[True])} if caches else {}
            self.rounds[-1] |= {"matches": self._matches(self.built[False])}
            self.rounds[-1] |= {"cache": self._cache()} if caches else {}
            self.rounds[-1] |= {"traversals": str(register[rounds.LINKS] - self.followed)}
        if stage == rounds.LEAVE and len(self.rounds) and "stacks then" not in self.rounds[-1]:
            self.rounds[-1] |= {"stacks then": self._stacks()}
            self.rounds[-1] |= {"cache then": self._cache()} if self.engine.caches else {}
        return status

    def _text(self, instances: Iterable[int]) -> str:
        events = [self.search.plan.event[instance] for instance in instances]
        return " ".join(self.names[self.search.scan.stream.row[event]] for event in events)

    def _on_stack(self, state: int) -> range:
        return range(self.work.low[state], self.work.loaded[state])

    def _stacks(self) -> str:
        texts = [self._text(self._on_stack(state)) or "none" for state in range(len(self.labels))]
        return ", ".join(f"{label}: {text}" for label, text in zip(self.labels, texts, strict=True))

    def _links(self) -> str:
        found = []
        for state in range(len(self.labels) - 1):
            for instance in self._on_stack(state):
                target = max(self.layout.link[instance], self.work.low[state + 1])
                if target < self.work.loaded[state + 1]:
                    found.append(f"{self._text([instance])} → {self._text([target])}")
        return ", ".join(found)

    def _matches(self, matches: list[tuple[int, ...]]) -> str:
        ordered = sorted(matches, key=lambda match: (match[-1], *match))
        return ", ".join(map(self._text, ordered)) or "none"

    def _cache(self) -> str:
        found = []
        for first in self._on_stack(0):
            entry, mine = self.work.head[first % self.layout.starts], []
            while entry >= 0:
                mine.append(self._text(self.work.cache_path[entry, : self.work.cache_length[entry]]))
                entry = self.work.cache_next[entry]
            found += mine[::-1]
        return ", ".join(found) or "none"


def golden_rounds() -> dict[str, dict[str, str]]:
    text = "\n".join(line for line in GOLDEN.read_text("utf-8").splitlines() if not line.startswith("#"))
    blocks = [block.strip().splitlines() for block in text.strip().split("\n\n")]
    return {head: {line[2:13].strip(): line[14:] for line in lines} for head, *lines in blocks}


@pytest.mark.parametrize("unit", ["events", "seconds"])
@both
def test_the_papers_example(engine: Links, unit: str) -> None:
    trace = Trace(engine, f"RETURN COUNT(*) PATTERN SEQ(A, B, D) WITHIN 9 {unit}", stream(EXAMPLE))
    expected = golden_rounds()
    assert len(trace.rounds) == sum(head.startswith(engine.name) for head in expected) == 2
    for number, found in enumerate(trace.rounds, 1):
        wanted = expected[f"{engine.name}, round {number}"]
        assert {name: found.get(name) for name in wanted} == wanted


def test_the_papers_comparison() -> None:
    """The traversals up to the end of the first round (d9), and in all: the second round takes 11 against 5."""
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, D) WITHIN 9 events"
    before = [cost_of(engine, query, stream(EXAMPLE)[:9]) for engine in ENGINES]
    after = [cost_of(engine, query, stream(EXAMPLE)) for engine in ENGINES]
    assert [b.links - a.links for a, b in zip(before, after, strict=True)] == [11, 5]
    assert [(cost.trends, cost.cache_hits) for cost in after] == [(13, 0), (13, 2)]


# ---- Rows and trends ----


@pytest.mark.parametrize(
    ("query", "events", "rows"),
    [
        # Without SLIDE there is a row where a trend ends, not where one merely could: not at b3.
        ("SEQ(A, B) WHERE A.x < B.x WITHIN 9 s", "a1{x=1} b2{x=2} b3{x=0} b4{x=5}", [(-7, 2, 1), (-5, 4, 2)]),
        # Where another partition's trend ends, those of this one count too, until they leave.
        ("SEQ(A, B) WHERE [g] WITHIN 4 s", "a1{g=1} a2{g=2} b3{g=1} b4{g=2}", [(-1, 3, 1), (0, 4, 2)]),
        ("SEQ(A, B) WHERE [g] WITHIN 3 s", "a1{g=1} a2{g=2} b3{g=1} b4{g=2}", [(0, 3, 1), (1, 4, 1)]),
        # Windows of events begin at position 0.
        ("SEQ(A, B) WITHIN 4 events SLIDE 1 events", "a1 b2", [(0, 4, 1)]),
        ("SEQ(A, B) WITHIN 4 s SLIDE 1 s", "a1 b2", [(-1, 3, 1), (0, 4, 1), (1, 5, 1)]),
        # Long after one window comes another.
        ("SEQ(A, B) WITHIN 4 s SLIDE 2 s", "a1 b2 a1000001 b1000001 b1000003", [(0, 4, 1), (1000000, 1000004, 1)]),
        ("A WITHIN 2 s SLIDE 1 s", "a1 a1 b2 a3", [(0, 2, 2), (1, 3, 2), (2, 4, 1), (3, 5, 1)]),
    ],
)
@both
def test_rows(engine: Links, query: str, events: str, rows: list[tuple[int, int, int]]) -> None:
    found = product_rows(f"RETURN COUNT(*) PATTERN {query}", stream(events), engine)
    assert [tuple(row.values()) for row in found] == rows


@pytest.mark.parametrize("plain_steps", [1, 40], ids=["compiled", "plain, then compiled"])
@both
def test_compiled_code_gives_the_same(monkeypatch: pytest.MonkeyPatch, plain_steps: int, engine: Links) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)

    @many
    @given(cases(LINKED_SEQUENCES))
    def compare(case: tuple[Query, list[Event]]) -> None:
        agrees(*case, engine.name)

    compare()


@both
def test_what_is_not_refused_is_right(engine: Links) -> None:
    @many
    @given(st.one_of(cases(replace(EVERYTHING, depth=2)), cases(replace(EVERYTHING, depth=0))))
    def compare(case: tuple[Query, list[Event]]) -> None:
        agrees(*case, engine.name)

    compare()


@both
def test_no_sequence_is_refused(engine: Links) -> None:
    @many
    @given(cases(replace(LINKED_SEQUENCES, conditions=("local",))))
    def compare(case: tuple[Query, list[Event]]) -> None:
        assert engine.refuses(check(str(case[0]))) is None

    compare()


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("PATTERN A WITHIN 5 s", None),
        ("PATTERN A{3} WITHIN 5 s SLIDE 1 s", None),
        ("PATTERN SEQ(A, ANY(B, C) X, A) WITHIN 5 events SLIDE 2 events", None),
        ("PATTERN SEQ(A, B) WHERE [k] AND A.x < B.x AND B.x > 1 GROUP BY g WITHIN 5 s", None),
        ("PATTERN SEQ(A, B) SEMANTICS contiguous WITHIN 5 s", "SEMANTICS"),
        ("PATTERN SEQ(A, B+) WITHIN 5 s", "PATTERN"),
        ("PATTERN SEQ(A, B?, C) WITHIN 5 s", "PATTERN"),
        ("PATTERN OR(A, B) WITHIN 5 s", "PATTERN"),
        ("PATTERN SEQ(A, !B, C) WITHIN 5 s", "PATTERN"),
        ("PATTERN SEQ(A, B, !C) WITHIN 5 s", "PATTERN"),
        ("PATTERN SEQ(A, B, C) WHERE A.x < C.x WITHIN 5 s", "WHERE"),
        ("PATTERN SEQ(A, B) WITHIN 1000 days SLIDE 1 ms", "WITHIN"),
    ],
)
@both
def test_refuses(engine: Links, query: str, clause: str | None) -> None:
    refusal = engine.refuses(check(f"RETURN COUNT(*) {query}"))
    assert (refusal and refusal.clause) == clause


@pytest.mark.parametrize("plain_steps", [20_000, 1], ids=["plain", "compiled"])
@both
def test_trends_are_sases(monkeypatch: pytest.MonkeyPatch, engine: Links, plain_steps: int) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)
    monkeypatch.setattr(nishimura, "MATCH_BUFFER", 1)
    monkeypatch.setattr(nishimura, "ROW_BUFFER", 1)
    monkeypatch.setattr(nishimura, "FIRST_CACHE", 1)

    @many
    @given(cases(LINKED_SEQUENCES))
    def compare(case: tuple[Query, list[Event]]) -> None:
        query = check(str(case[0]))
        if engine.refuses(query) is None:
            data = fit(str(case[0]), case[1]).stream
            mine, others = Cost(), Cost()
            trends = Counter(engine.trends(query, data, Limits(), mine))
            assert trends == Counter(Sase().trends(query, data, Limits(), others))
            assert mine.trends == trends.total()

    compare()


# ---- Links and cache ----

LETTERS = streams(("A", "B", "C", "D"), most=20)


@given(LETTERS, st.integers(1, 12))
def test_prc_follows_no_more_links(events: list[Event], within: int) -> None:
    query = f"RETURN COUNT(*) PATTERN SEQ(A, B, C) WITHIN {within} s"
    fla, prc = (cost_of(engine, query, events) for engine in ENGINES)
    assert prc.trends == fla.trends
    assert prc.links <= fla.links
    assert fla.cache_hits == 0


def test_first_events_share_their_link() -> None:
    """Three first events step onto themselves, then together onto b, c and each d."""
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, C, D) WITHIN 1 day"
    events = stream("a1 a2 a3 b4 c5 d6 d7")
    assert [cost_of(engine, query, events).links for engine in ENGINES] == [7, 7]
    alone = "RETURN COUNT(*) PATTERN SEQ(A, B, C, D) WHERE A.x <= B.x WITHIN 1 day"
    events = stream("a1{x=1} a2{x=1} a3{x=9} b4{x=2} c5 d6 d7")
    cost = cost_of(Fla(), alone, events)
    assert (cost.trends, cost.links) == (4, 2 * 5 + 2)


def test_cached_partial_matches_go_with_their_first_event() -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, C, D) WITHIN 8 s"
    events = [Event(time, "ABCD"[time % 4]) for time in range(4000)]
    search = Search(check(query), fit(query, events).stream, Limits(), Cost(), caches=True, matches=False)
    for _ in search.results():
        search.work.register[sase.ROWS] = 0
    assert search.work.register[rounds.CACHED] == 0
    assert search.cost.cache_hits > 0
    assert search.work.register[rounds.UNUSED] < 20  # entries are used again
    assert search.cost.peak_stored < 40


def test_the_cache_grows_and_gives_up_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nishimura, "FIRST_CACHE", 1)
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, C) WITHIN 1 day"
    events = [Event(time, "AB"[time % 2]) for time in range(100)] + [Event(100, "C")]
    assert cost_of(Prc(), query, events).trends == 50 * 51 // 2
    monkeypatch.setattr(nishimura, "available_memory", lambda: 10_000)
    with pytest.raises(DidNotFinishError, match=r"partial trends are cached.*\n.*--engine fla"):
        cost_of(Prc(), query, events)
    assert cost_of(Fla(), query, events).trends == 50 * 51 // 2


# ---- Giving up ----


@both
@given(st.integers(1, 14))
def test_gives_up_beyond_max_trends(engine: Links, limit: int) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, D) WITHIN 9 events"
    data = fit(query, stream(EXAMPLE))
    if limit >= 13:
        assert len(run_rows(check(query), engine, data, Limits(trends=limit), Cost())) == 5
        return
    with pytest.raises(DidNotFinishError, match="--max-trends"):
        run_rows(check(query), engine, data, Limits(trends=limit), Cost())


@both
def test_gives_up_after_timeout(engine: Links) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, C, B, C) WITHIN 1 day"
    events = [Event(time, "ABC"[time % 3]) for time in range(3000)]
    cost = Cost()
    with pytest.raises(DidNotFinishError, match="--timeout"):
        run_rows(check(query), engine, fit(query, events), Limits(seconds=0.5), cost)
    assert cost.trends > 0
    assert cost.links > 0
