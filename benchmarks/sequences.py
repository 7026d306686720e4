"""Sequences of single events: the experiments of A-Seq, SASE and Nishimura.

- A-Seq (SIGMOD 2014), section 6.2: an event a millisecond of ten types, where the paper has a trace of trades.
- SASE (SIGMOD 2006), section 5: twenty types, two attributes, windows counted in events. Its Figure 10 compares ways
  to test a second attribute of which the product has one. TelegraphCQ is a stream processor of its time; the
  relational way that it stands for is a self-join, here of Spark SQL. That and Flink CEP have windows that do not
  overlap: where windows move with every event, they would give a match once, not in each window that it is in.
- Nishimura, Kawashima: no figures; steps along links and time on the same streams.
"""

from __future__ import annotations

from functools import partial

from benchmarks import flink
from benchmarks.harness import Experiment
from benchmarks.points import Ask
from benchmarks.queries import ask, moving, sequence
from benchmarks.spark_sql import JOINS
from benchmarks.variants import WITHOUT

TRADES = 120_000
TYPES = 10
BATCHES = 6  # of W events, over which SASE's paper averages
ASEQ, SASE = "Qi, Cao, Ray, Rundensteiner: A-Seq (SIGMOD 2014)", "Wu, Diao, Rizvi: SASE (SIGMOD 2006)"
NISHIMURA = "Nishimura, Kawashima: link aggregation and pattern cache"


def _trades(pattern: str, milliseconds: float) -> Ask:
    # An event a second instead of a millisecond.
    return Ask(moving(pattern, f"{round(milliseconds)} s"), "random_letters", {"size": TRADES, "types": TYPES})


def _negated(types: float) -> Ask:
    return _trades(("SEQ(A, B, C)", "SEQ(A, B, !D, C)", "SEQ(A, !E, B, !D, C)")[round(types)], 1000)


def _letters(query: str, window: float, first: float, second: int = 1) -> Ask:
    shape = {"size": BATCHES * round(window), "types": 20, "first": round(first), "second": second}
    return Ask(query, "attributed_letters", shape)


def _domain(values: float) -> Ask:
    return _letters(moving(sequence(3), "10000 events", "[attr1]"), 10_000, values)


def _window(events: float) -> Ask:
    return _letters(moving(sequence(3), f"{round(events)} events", "[attr1]"), events, 10_000)


def _joined(length: int, first: float, keys: str = "[attr1]", second: int = 1) -> Ask:
    return _letters(ask(sequence(length), "10000 events", where=keys), 10_000, first, second)


def _links(window: float) -> Ask:
    return Ask(moving("SEQ(A, B, D)", f"{round(window)} events"), "random_letters", {"size": 20_000, "types": TYPES})


EXPERIMENTS = [
    Experiment(
        "aseq-12", "length of a sequence, windows of 1,000 events", f"Figures 12 and 14 (a) of {ASEQ}", "length",
        [2, 3, 4, 5, 6, 8, 10], ("sase", "aseq", "cogra", "pane"), lambda x: _trades(sequence(round(x)), 1000),
    ),
    Experiment(
        "aseq-13", "window of a sequence of three", f"Figure 13 of {ASEQ}", "events",
        [100, 200, 400, 600, 800, 1000], ("sase", "aseq", "cogra", "pane"), partial(_trades, "SEQ(A, B, C)"),
    ),
    Experiment(
        "aseq-14", "negated types in a sequence of three, windows of 1,000 events", f"Figure 14 (b) of {ASEQ}",
        "negated types", [0, 1, 2], ("sase", "aseq", "pane"), _negated,
    ),
    Experiment(
        "sase-8", "values of the attribute that is equal in a sequence of three; parts of SASE turned off",
        f"Figure 8 and section 5.3 of {SASE}", "values", [10_000, 5_000, 1_000, 500, 100],
        ("sase", *WITHOUT.values(), "aseq", "pane"), _domain,
    ),
    Experiment(
        "sase-9", "window of a sequence of three, 10,000 values; parts of SASE turned off", f"Figure 9 of {SASE}",
        "events", [10_000, 20_000, 50_000, 100_000], ("sase", *WITHOUT.values(), "aseq", "pane"), _window,
    ),
    Experiment(
        "sase-11", "length of a sequence, 100 values, against Flink CEP and self-joins", f"Figure 11 of {SASE}",
        "length", [2, 3, 4, 5, 6], (flink.NAME, JOINS, "sase", "aseq", "pane"), lambda x: _joined(round(x), 100),
    ),
    Experiment(
        "sase-12", "values of the equal attribute, against Flink CEP and self-joins", f"Figure 12 of {SASE}", "values",
        [10_000, 1_000, 100, 10], (flink.NAME, JOINS, "sase", "aseq", "pane"), partial(_joined, 3),
    ),
    Experiment(
        "sase-12-two", "values of the first of two equal attributes, against Flink CEP and self-joins",
        f"Figure 12 of {SASE}", "values", [10_000, 1_000, 100, 10], (flink.NAME, JOINS, "sase", "aseq", "pane"),
        lambda x: _joined(3, x, "[attr1, attr2]", 20),
    ),
    Experiment(
        "nishimura", "window of a sequence of three: steps along links", NISHIMURA, "events",
        [9, 50, 100, 200, 500], ("sase", "fla", "prc", "pane"), _links,
    ),
]  # fmt: skip
