"""COGRA's experiments (SIGMOD 2019, section 8 and appendix D), with one window that holds all events.

The paper's data are replaced by seeded streams of their form. It does not say how many partitions its streams have,
on which all depends under skip-till-any-match (2^n trends of n events): each experiment here says how many it takes.
"""

from __future__ import annotations

import math
from functools import partial

from benchmarks import flink
from benchmarks.harness import SECONDS, Claim, Experiment, Target
from benchmarks.points import Ask
from benchmarks.queries import ANY, CONTIGUOUS, NEXT, ask, seconds
from pipeline.query.tree import Semantics

PATIENTS, COMPANIES, DRIVERS = 1_000, 3_000, 1_000
LOW_RATE = 50_000  # events of the last two
MILLION = 1_000_000
Q4 = "SEQ(Activity S, Activity A+, Activity F)"
SLOW_TO_FAST = "[patient] AND S.rate < 60 AND F.rate > 100 AND A.kind = 'passive'"
RIDES = "(SEQ(Pickup P, Trip T+, Dropoff D))+"
PAPER = "Poppe, Lei, Rundensteiner, Maier: COGRA (SIGMOD 2019)"


def _patients(pattern: str, where: str, semantics: Semantics, size: float) -> Ask:
    query = ask(pattern, seconds(size), where=where, semantics=semantics)
    return Ask(query, "measurements", {"size": size, "patients": PATIENTS})


def _stock(size: float, companies: int = COMPANIES, where: str = "[company]") -> Ask:
    return Ask(ask("Stock S+", seconds(size), where=where), "trades", {"size": size, "companies": companies})


def _rides(semantics: Semantics, size: float) -> Ask:
    query = ask(RIDES, seconds(size), where="[driver]", semantics=semantics)
    return Ask(query, "rides", {"size": size, "drivers": DRIVERS})


def _grouped(groups: float) -> Ask:
    return _stock(LOW_RATE, round(groups))


def _selective(percent: float) -> Ask:
    """A condition that so many of all pairs of prices between 0 and 1 satisfy: p > q + d, or p > q − d."""
    share = percent / 100
    by = 1 - math.sqrt(2 * min(share, 1 - share))
    sign = "+" if share <= 0.5 else "-"
    return _stock(LOW_RATE, where=f"[company] AND S.price > NEXT(S).price {sign} {by:.9f}")


def _events(
    name: str,
    source: str,
    what: str,
    make: partial[Ask],
    sizes: list[int],
    *programs: str,
    budget: float = SECONDS,
) -> Experiment:
    return Experiment(
        name, f"events a window, {what}", f"{source} of {PAPER}", "events", sizes, programs, make, seconds=budget
    )


ONLINE = ("aseq", "greta", "cogra", "pane")

EXPERIMENTS = [
    _events(
        "cogra-5", "Figure 5", "any-match, heart rates of 1,000 patients", partial(_patients, Q4, SLOW_TO_FAST, ANY),
        [2_000, 8_000, 10_000, 12_000, 14_000, 16_000, 18_000, 30_000, 50_000, 100_000, 300_000, MILLION],
        flink.NAME, "sase", *ONLINE,
    ),
    _events(
        "cogra-6", "Figure 6", "next-match, heart rates of 1,000 patients",
        partial(_patients, "Activity A+", "[patient] AND A.kind = 'passive'", NEXT),
        [10_000, 20_000, 50_000, 100_000, 200_000, MILLION, 2 * MILLION, 4 * MILLION, 10 * MILLION],
        flink.NAME, "sase", "cogra", "pane",
    ),
    _events(
        "cogra-7", "Figure 7", "contiguous, heart rates of 1,000 patients",
        partial(_patients, Q4, SLOW_TO_FAST, CONTIGUOUS),
        [50_000, 100_000, 200_000, MILLION, 4 * MILLION, 10 * MILLION], flink.NAME, "sase", "cogra", "pane",
    ),
    _events(
        "cogra-8", "Figure 8", "any-match, prices of 3,000 companies, low rates", partial(_stock),
        [10_000, 20_000, 30_000, 40_000, 50_000, 80_000], flink.NAME, "sase", *ONLINE,
    ),
    _events(
        "cogra-9", "Figure 9", "next-match, rides of 1,000 drivers", partial(_rides, NEXT),
        [20_000, 50_000, 200_000, 500_000, MILLION, 4 * MILLION, 10 * MILLION],
        flink.NAME, "sase", "cogra", "pane",
    ),
    _events(
        "cogra-10", "Figure 10", "any-match, prices of 3,000 companies, high rates", partial(_stock),
        [100_000, 300_000, MILLION, 3 * MILLION, 10 * MILLION, 100 * MILLION], *ONLINE, budget=40,
    ),
    _events(
        "cogra-11", "Figure 11", "contiguous, rides of 1,000 drivers", partial(_rides, CONTIGUOUS),
        [20_000, 100_000, 500_000, MILLION, 4 * MILLION, 10 * MILLION], flink.NAME, "sase", "cogra", "pane",
    ),
    Experiment(
        "cogra-12", f"groups of {LOW_RATE:,} prices, any-match", f"Figure 12 of {PAPER}", "groups",
        [10_000, 5_000, 3_000, 2_500, 2_000, 1_000, 100, 5], (flink.NAME, "sase", *ONLINE), _grouped,
    ),
    Experiment(
        "cogra-13", f"selectivity of a condition between neighbours, {LOW_RATE:,} prices of 3,000 companies, any-match",
        f"Figure 13 of {PAPER}", "percent", [10, 30, 50, 70, 90],
        (flink.NAME, "sase", "greta", "cogra", "pane"), _selective,
        claims=[Claim("pane", 90, Target("≥", 1), ("cogra", 90))],
    ),
]  # fmt: skip
