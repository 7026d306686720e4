"""What the product claims beyond the papers: numbers of any size, windows that overlap, an index instead of a scan."""

from __future__ import annotations

from functools import partial

from benchmarks.harness import Claim, Experiment, Target
from benchmarks.points import Ask
from benchmarks.queries import ANY, CONTIGUOUS, FALLING, NEXT, Q3, ask, seconds, sequence
from benchmarks.variants import SEPARATE
from pipeline.query.tree import Semantics

MILLION = 1_000_000
MANY = 10 * MILLION
WITHIN = 600_000  # seconds, which is events, of windows that overlap
SMALL = Target("≤", 200)  # MB, whatever the events


def _bits(bits: float) -> Ask:
    """Beyond 65,536 bits, counts are floats with an exponent of their own."""
    return Ask(ask("SEQ(A+, B)", seconds(MANY)), "as_then_bs", {"size": MANY, "bits": round(bits)})


def _falling(semantics: Semantics, size: float) -> Ask:
    return Ask(ask("Stock S+", seconds(size), None, FALLING, semantics), "prices", {"size": size})


def _tumbling(semantics: Semantics, size: float) -> Ask:
    return Ask(ask("Stock S+", "10000 s", None, FALLING, semantics), "prices", {"size": size})


def _letters(size: int, overlap: float) -> Ask:
    query = ask(sequence(3), seconds(WITHIN), seconds(WITHIN / overlap))
    return Ask(query, "random_letters", {"size": size, "types": 3})


def _overlap(semantics: Semantics, size: int, overlap: float) -> Ask:
    query = ask("Stock S+", "6000 s", seconds(6000 / overlap), FALLING, semantics)
    return Ask(query, "prices", {"size": size})


def _q3(size: float) -> Ask:
    return Ask(Q3.read_text("utf-8"), "sectors", {"size": size})


def _groups(where: str, groups: float, semantics: Semantics = ANY) -> Ask:
    query = ask("Stock S+", seconds(MANY), None, f"[company]{where}", semantics)
    return Ask(query.replace("RETURN", "RETURN company,").replace(" WITHIN", " GROUP-BY company WITHIN"), "trades",
               {"size": MANY, "companies": groups})  # fmt: skip


def _length(length: float) -> Ask:
    return Ask(ask(sequence(round(length)), "100000 s"), "random_letters", {"size": MILLION, "types": 10})


def _both(x: float, rate: float) -> list[Claim]:
    return [Claim(program, x, Target("≥", rate)) for program in ("pane", "cogra")]


def _small(x: float, *programs: str) -> list[Claim]:
    return [Claim(program, x, SMALL, of="memory") for program in programs]


EXPERIMENTS = [
    Experiment(
        "bits", "bits of the counts, ten million events in one window", "numbers of any size", "bits",
        [60, 120, 1_000, 10_000, 60_000, MANY / 2], ("pane", "cogra"), _bits,
        claims=[*_both(60, 50), *_both(120, 40), *_both(1_000, 40), *_both(10_000, 10), *_both(MANY / 2, 50)],
    ),
    Experiment(
        "events-any", "events of one partition in one window, a comparison between neighbours, any-match",
        "an index instead of a scan", "events", [1_000, 5_000, 10_000, 20_000, 100_000, 300_000, MILLION],
        ("greta", "cogra", "pane"), partial(_falling, ANY),
        claims=[Claim("pane", 20_000, Target("≥", 100), ("greta", 20_000)), Claim("pane", MILLION, Target("≥", 0.1))],
    ),
    Experiment(
        "events-next", "events of one partition, a comparison between neighbours, next-match, windows of 10,000 events",
        "an index instead of a scan", "events",
        [100_000, MILLION, 2 * MILLION, 5 * MILLION, MANY], ("sase", "cogra", "pane"),
        partial(_tumbling, NEXT),
        claims=[Claim("pane", MANY, Target("≥", 20)), *_small(MANY, "cogra", "pane")],
    ),
    Experiment(
        "events-contiguous", "events of one partition, a comparison between neighbours, contiguous, windows of 10,000",
        "an index instead of a scan", "events",
        [100_000, MILLION, 2 * MILLION, 5 * MILLION, MANY], ("sase", "cogra", "pane"),
        partial(_tumbling, CONTIGUOUS),
        claims=[Claim("pane", MANY, Target("≥", 20)), *_small(MANY, "cogra", "pane")],
    ),
    Experiment(
        "overlap", "windows that an event is in, no conditions, a million events", "panes", "WITHIN / SLIDE",
        [1, 6, 60, 600, 6_000], ("cogra", "aseq", "pane"), partial(_letters, MILLION),
        claims=_small(1, "cogra", "aseq", "pane"),
    ),
    Experiment(
        "overlap-many", "windows that an event is in, no conditions, ten million events", "panes", "WITHIN / SLIDE",
        [1, 60, 6_000], ("pane",), partial(_letters, MANY), quick=1,
        claims=[Claim("pane", 1, Target("≤", 2.5), ("pane", 60)), Claim("pane", 6_000, SMALL, of="memory")],
    ),
    Experiment(
        "overlap-any", "windows that an event is in, a comparison, any-match, 200,000 events",
        "one traversal for many windows", "WITHIN / SLIDE", [1, 4, 15, 60, 240], (SEPARATE, "pane"),
        partial(_overlap, ANY, 200_000),
    ),
    Experiment(
        "overlap-scan", "windows that an event is in, a comparison, any-match, 30,000 events",
        "so few events that engines which scan them finish", "WITHIN / SLIDE", [1, 2, 4, 15, 60],
        ("greta", "cogra", SEPARATE, "pane"), partial(_overlap, ANY, 30_000),
    ),
    Experiment(
        "overlap-next", "windows that an event is in, a comparison, next-match, two million events",
        "each event is extended once", "WITHIN / SLIDE", [1, 4, 15, 60, 240], ("cogra", "pane"),
        partial(_overlap, NEXT, 2 * MILLION),
    ),
    Experiment(
        "overlap-contiguous", "windows that an event is in, a comparison, contiguous, two million events",
        "only the last events cross a pane's edge", "WITHIN / SLIDE", [1, 4, 15, 60, 240], ("cogra", "pane"),
        partial(_overlap, CONTIGUOUS, 2 * MILLION),
    ),
    Experiment(
        "q3", "COGRA's q3 as it is shipped: 10 minutes sliding by 10 seconds, 10 prices a second",
        "one traversal for many windows", "events", [10_000, 50_000, 200_000, MILLION // 2, MILLION],
        ("cogra", SEPARATE, "pane"), _q3,
        claims=[
            Claim("pane", 200_000, Target("≥", 5), (SEPARATE, 200_000)), Claim("pane", MILLION, SMALL, of="memory"),
        ],
    ),
    *(
        Experiment(
            f"groups-{name}", f"groups of ten million events, {title}", "many partitions", "groups",
            [1_000, 100_000, MILLION], ("cogra", "pane"), make, quick=1,
            claims=[Claim("pane", 100_000, Target("≥", 5), of="rate with sorting")],
        )
        for name, title, make in (
            ("plain", "no conditions", partial(_groups, "")),
            ("any", "a comparison between neighbours, any-match", partial(_groups, f" AND {FALLING}")),
            ("next", "a comparison, next-match", partial(_groups, f" AND {FALLING}", semantics=NEXT)),
            ("contiguous", "a comparison, contiguous", partial(_groups, f" AND {FALLING}", semantics=CONTIGUOUS)),
        )
    ),
    Experiment(
        "length", "length of a sequence, a million events in windows of 100,000", "the vector of an automaton",
        "length",
        [2, 3, 4, 6, 8, 10], ("aseq", "greta", "cogra", "pane"), _length,
    ),
]  # fmt: skip
