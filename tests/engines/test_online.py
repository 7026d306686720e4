"""The online engines beyond the oracle's small streams: compiled, integers of any size, exact sums, refusals."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from pipeline.engines import compiled, measures
from pipeline.engines.choice import ENGINES, choose
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.kernels import limbs, numbers
from pipeline.engines.kernels.status import DONE
from pipeline.errors import DidNotFinishError
from pipeline.events import Clock, Events, Numbers, Texts, TimeStyle
from pipeline.query.check import check
from pipeline.run import fit_events, run_rows
from tests.engines.test_against_oracle import ANY_MATCH, EVERYTHING, agrees, many
from tests.oracle import Event
from tests.oracle_query import Query
from tests.product import as_columns, product_rows
from tests.strategies import PREFIXES, Shape, cases, stream

BY_NAME = {engine.name: engine for engine in ENGINES}


@pytest.mark.parametrize("plain_steps", [1, 40], ids=["compiled", "plain, then compiled"])
@pytest.mark.parametrize(("engine", "shape"), [("cogra", EVERYTHING), ("aseq", PREFIXES), ("greta", ANY_MATCH)])
def test_compiled_code_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, plain_steps: int, engine: str, shape: Shape
) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)

    @many
    @given(cases(shape))
    def compare(case: tuple[Query, list[Event]]) -> None:
        agrees(*case, engine)

    compare()


@pytest.mark.parametrize(
    ("engine", "shape"),
    [("cogra", EVERYTHING), ("aseq", PREFIXES), ("greta", ANY_MATCH), ("sase", EVERYTHING)],
)
def test_digits_that_overflow_all_the_time(monkeypatch: pytest.MonkeyPatch, engine: str, shape: Shape) -> None:
    """With digits of two bits, small counts and sums carry, and outgrow their digits, as large ones do."""
    for module in (limbs, measures, numbers):
        monkeypatch.setattr(module, "BITS", 2)
        monkeypatch.setattr(module, "MASK", 3)
    monkeypatch.setattr(numbers, "BASE", 4.0)
    monkeypatch.setattr(numbers, "LIMIT", 32)

    @many
    @given(cases(shape))
    def compare(case: tuple[Query, list[Event]]) -> None:
        agrees(*case, engine)

    compare()


def one_type(values: list[int] | list[float]) -> Events:
    """Events of type A at times 0, 1, 2 …, with these values of x."""
    size = len(values)
    kind = float if any(isinstance(value, float) for value in values) else object
    numbers = np.array(values, kind)
    if kind is object and all(abs(int(value)) < 2**63 for value in values):
        numbers = numbers.astype(np.int64)
    return Events(
        time=np.arange(size),
        clock=Clock(1, TimeStyle.INTEGER),
        types=(Texts(np.zeros(size, np.int32), ("A",)),),
        attributes={"x": Numbers(numbers, np.zeros(size, bool))},
        known=("x",),
        open_schema=False,
    )


def aggregate(engine: str, returns: str, events: Events, pattern: str = "A+") -> dict[str, object]:
    query = check(f"RETURN {returns} PATTERN {pattern} WITHIN 1 week SLIDE 1 week")
    (row,) = run_rows(query, choose(query, engine), fit_events(query, events, "events"), Limits(), Cost())
    return row


@pytest.mark.parametrize("engine", ["pane", "cogra", "greta"])
@pytest.mark.parametrize("size", [1, 28, 29, 30, 31, 57, 58, 59, 60, 61, 62, 63, 64, 65, 127, 128, 1024, 1100])
def test_counts_of_any_size(engine: str, size: int) -> None:
    row = aggregate(engine, "COUNT(*), COUNT(A)", one_type([0] * size))
    assert row["COUNT(*)"] == 2**size - 1
    assert row["COUNT(A)"] == size * 2 ** (size - 1)


def test_a_count_of_65_537_bits_is_exact() -> None:
    query = check("RETURN COUNT(*) PATTERN A+ WITHIN 1 week SLIDE 1 week")
    fitted = fit_events(query, one_type([0] * 65537), "events")
    (row,) = Cogra().run(query, fitted.stream, Limits(), Cost())
    assert row.values == (2**65537 - 1,)
    assert run_rows(query, Cogra(), fitted, Limits(), Cost())[0] == {
        "window_start": 0,
        "window_end": 604800,
        "COUNT(*)": "4.0071e19728",  # 2 ** 65537
        "exact": False,
    }


@pytest.mark.parametrize("engine", ["pane", "cogra", "greta"])
@pytest.mark.parametrize(
    "values",
    [
        [3, -5, 7],
        [2**62, 2**62, -(2**63), 1],
        [2**100, -(2**70), 5],
        [0.1, 0.2, -0.3],
        [1e300, -1e-300, 2.5],
        [-1.5] * 70,
        [-(2**40) + n for n in range(90)],
    ],
)
def test_sums_are_exact(engine: str, values: list[int] | list[float]) -> None:
    """Each of n events is in half of the 2^n subsets, so that SUM is the values' sum times 2^(n-1), AVG their mean."""
    row = aggregate(engine, "SUM(A.x), AVG(A.x), MIN(A.x), MAX(A.x)", one_type(values))
    total = sum(map(Fraction, values))
    expected = total * 2 ** (len(values) - 1)
    assert row["SUM(A.x)"] == (int(expected) if isinstance(values[0], int) else float(expected))
    assert row["AVG(A.x)"] == float(total / len(values))
    assert (row["MIN(A.x)"], row["MAX(A.x)"]) == (min(values), max(values))


@pytest.mark.parametrize("engine", ["pane", "cogra", "greta"])
def test_random_sums_far_beyond_floats(engine: str) -> None:
    values = [random.Random(7).uniform(-1000, 1000) for _ in range(1200)]
    row = aggregate(engine, "COUNT(*), AVG(A.x), SUM(A.x)", one_type(values))
    assert row["COUNT(*)"] == 2**1200 - 1
    assert row["AVG(A.x)"] == float(sum(map(Fraction, values)) / 1200)
    assert isinstance(row["SUM(A.x)"], str)  # beyond 1e308


@pytest.mark.parametrize("engine", ["pane", "cogra", "greta"])
def test_least_and_greatest_while_integers_grow(engine: str) -> None:
    """In the second window neither is the least or greatest value of the stream, and the count outgrows its digits."""
    values = [1, 9] * 5 + [5, 4, 6] * 60
    query = check("RETURN COUNT(*), MIN(A.x), MAX(A.x) PATTERN A+ WITHIN 200 s SLIDE 200 s")
    events = one_type(values)
    fitted = fit_events(query, replace(events, time=events.time + 190), "events")
    rows = run_rows(query, choose(query, engine), fitted, Limits(), Cost())
    assert [(row["COUNT(*)"], row["MIN(A.x)"], row["MAX(A.x)"]) for row in rows] == [
        (2**10 - 1, 1, 9),
        (2**180 - 1, 4, 6),
    ]


TABLES = [  # COGRA's tables 6, 7 and 8: pattern, semantics, condition, trends
    ("skip-till-any-match", "", 43),
    ("skip-till-any-match", "WHERE B.x < NEXT(A).x", 33),
    ("skip-till-next-match", "", 8),
    ("contiguous", "", 2),
]


@pytest.mark.parametrize("engine", BY_NAME)
@pytest.mark.parametrize(("semantics", "where", "count"), TABLES)
def test_cogras_tables(engine: str, semantics: str, where: str, count: int) -> None:
    """b2 may come before every a, b6 not before a7."""
    events = stream("a1{x=1} b2{x=0} a3{x=1} a4{x=1} c5 b6{x=2} a7{x=1} b8{x=0}")
    text = f"RETURN COUNT(*) PATTERN (SEQ(A+, B))+ SEMANTICS {semantics} {where} WITHIN 10 s SLIDE 10 s"
    if BY_NAME[engine].refuses(check(text)) is None:
        assert product_rows(text, events, engine)[0]["COUNT(*)"] == count


@pytest.mark.parametrize(
    ("query", "refusing"),
    [
        ("PATTERN A+ WITHIN 5 s", "fla prc"),
        ("PATTERN SEQ(A, B) WHERE A.x < B.x WITHIN 5 s", "aseq"),
        ("PATTERN SEQ(A, !SEQ(B, C), D) WITHIN 5 s", "aseq fla prc"),
        ("PATTERN SEQ(!B, A, !C) WITHIN 5 s SLIDE 5 s", "fla prc"),
        ("PATTERN A+ SEMANTICS contiguous WITHIN 5 s", "aseq greta fla prc"),
        ("PATTERN SEQ(!B, A) WITHIN 5 s", "pane cogra aseq greta fla prc"),
        ("PATTERN SEQ(A, B, C) WHERE A.x < C.x WITHIN 5 s", "pane cogra aseq greta fla prc"),
        ("PATTERN SEQ(A, !B, C) WHERE A.x = B.x WITHIN 5 s", "pane cogra aseq greta fla prc"),
        ("PATTERN SEQ(A, !SEQ(B, !D, E), C) WITHIN 5 s", "pane cogra aseq greta fla prc"),
        ("PATTERN A WITHIN 1000 days SLIDE 1 ms", "pane cogra aseq greta sase fla prc"),
    ],
)
def test_who_refuses_what(query: str, refusing: str) -> None:
    checked = check(f"RETURN COUNT(*) {query}")
    assert [engine.name for engine in ENGINES if engine.refuses(checked)] == refusing.split()


@pytest.mark.parametrize(
    ("query", "engine"),
    [
        ("PATTERN A+ WITHIN 5 s SLIDE 5 s", "pane"),
        ("PATTERN SEQ(A, B) WITHIN 5 s", "pane"),
        ("PATTERN SEQ(A, B, C) WHERE A.x < B.x WITHIN 5 s", "pane"),
        ("PATTERN SEQ(A, B) WHERE A.x < B.x WITHIN 5 s", "sase"),
        ("PATTERN A+ SEMANTICS contiguous WHERE A.x < NEXT(A).x WITHIN 5 s", "sase"),
        ("PATTERN A+ SEMANTICS contiguous WHERE A.x < NEXT(A).x WITHIN 5 s SLIDE 1 s", "pane"),
        ("PATTERN SEQ(A, B, C) WHERE A.x < C.x WITHIN 5 s SLIDE 5 s", "sase"),
    ],
)
def test_auto_takes_the_cheapest_that_can(query: str, engine: str) -> None:
    assert choose(check(f"RETURN COUNT(*) {query}")).name == engine


def test_gives_up_after_timeout() -> None:
    query = check("RETURN COUNT(*) PATTERN A+ WHERE A.x <= NEXT(A).x WITHIN 1 week SLIDE 1 week")
    fitted = fit_events(query, one_type([1] * 20000), "events")
    with pytest.raises(DidNotFinishError, match="--timeout"):
        run_rows(query, choose(query, "greta"), fitted, Limits(seconds=0.5), Cost())


def test_keeps_one_aggregate_a_state_where_it_can() -> None:
    stored = {}
    for engine in ("cogra", "greta"):
        query = check("RETURN COUNT(*) PATTERN (SEQ(A+, B))+ WITHIN 10 s SLIDE 10 s")
        cost = Cost()
        fitted = fit_events(query, as_columns(stream("a1 b2 a3 a4 c5 b6 a7 b8")), "events")
        run_rows(query, choose(query, engine), fitted, Limits(), cost)
        stored[engine] = cost.peak_stored
    assert stored["cogra"] < stored["greta"] == 7


def test_code_that_is_loaded_runs_however_short_a_loop_is(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def loop(most: int) -> int:
        steps.append(most)
        return DONE

    monkeypatch.setattr(compiled, "_ready", lambda loop, *_: loop)
    list(compiled.run(loop, tuple, Limits(), str, steps=1))
    monkeypatch.setattr(compiled, "_loaded", {loop})
    list(compiled.run(loop, tuple, Limits(), str, steps=1))
    assert steps == [compiled.PLAIN_STEPS, compiled.COMPILED_STEPS]
