"""Results as people read them: a page of tables, and a chart for each comparison, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import FITTED, LEAST, ONCE

Result = Mapping[str, Any]

SHORT = """\
The fastest program on the hardest x, and by how many times the others are slower: on the same x, or on the last that
they finished within their budget.
"""

LOOKS = ("pane", "cogra", "greta", "aseq", "sase")  # the same in all charts

RATIOS = """\
Jobs on Spark, against plain Spark on the same rows: below 1 × is faster than it, but where cores or windows differ.
"""

GROWTH = f"""\
How time grows with x alone, by program and semantics. Each program has its own x, and its own events where x is not
their number, so that it takes at least {LEAST * 1e3:g} ms, below which the costs of a run itself count. The
exponent is fitted to the {FITTED} hardest points at most; it may be off by a tenth or two, since caches hold less of
what is large.

Theory counts steps; `x log x` has an exponent slightly above 1. *Additions* are those of numbers of x bits or so: of n
bits, one takes n / 64 steps, which makes the exponent up to 1 larger. *1* is no growth. *1, then x*: first most is what
windows share, to build trends or to look them up; then it is what is added for each window. Over lengths it is below
theory, since an event costs something by itself, however long the pattern.
"""

INTRODUCTION = """\
# Benchmarks

What follows was measured; nothing is extrapolated: exponents are fitted to what was measured, and say nothing of what
lies beyond. `make bench` measures all of it again, and writes this page, its charts and
[benchmarks.json](benchmarks.json); a line under each table has the command that made it.
"""

METHOD = """\
## How it was measured

- Each point runs in a process of its own, {rounds} times (`growth-…`: twice), in turns with what it is compared with;
  one that takes more than {once:g} seconds, with the sorting of its events or the start of Flink or Spark, once. The
  table has the median; [benchmarks.json](benchmarks.json) has the spread and the number of rounds.
- All programs of a comparison gave the same answer, or the run would have failed.
- *> 15 s* did not finish in that time; *·* was not tried, as it did not finish on less, or has other x (`growth-…`);
  *refused* is a question that a program does not take at that size.
- Time is that of the engine on events in memory, one core, with compiled code that is loaded. With one window, it is
  the latency of COGRA's figures; events divided by it are the throughput. It has neither the reading of events nor
  their sorting, which `with sorting` adds.
- *Stored* is what an engine keeps at once, as the papers count it: aggregates, events, pointers. The megabytes are what
  its process took beyond the events; of Flink, the heap in use.
- Flink CEP has one core too, and gets events in order, with the conditions on single events evaluated; its time has the
  end of its job in it, some 0.2 s. Self-joins are Spark SQL on one core, and have some tenths of a second of Spark's in
  them.

What differs from the papers:

- The streams are generated (`benchmarks/streams.py`), so that anyone can rerun them: COGRA's and A-Seq's papers have
  recorded ones. Rates and values are those of the generator.
- COGRA's paper does not say how many partitions its streams have, on which all depends under any-match: 2^n trends of n
  events. Each experiment says how many it takes. The more partitions, the later two-step engines stop, and the later
  those that are quadratic in a partition's events fall behind; sizes go beyond the paper's until both are seen.
- All engines but Flink and Spark are this project's own, compiled alike, and share its numbers: counts are exact
  integers of as many bits as they need, so that beyond 64 bits an addition costs more than in the papers, and the
  growth of any-match is somewhat above that of the additions that theory counts. Engines may run the same code where
  their ideas agree: `pane` takes COGRA's form where nothing is cheaper.
- A-Seq's paper has a trace of trades, and doubles the window in its Figure 14 (a); here events are random letters, in
  the same windows as before. SASE's paper gives its comparison with TelegraphCQ as throughput relative to the lightest
  load; here are seconds, of Spark SQL in its place, in windows that do not overlap. Its Figure 10, three ways to test
  a second attribute, is left out, since the product has one. Nishimura's has no figures.
- Flink CEP is not in COGRA's Figure 10, which begins with 33 events of each company, so with 2^33 matches of each, nor
  where windows move with every event: it gives a match once, not in each window that it is in. For
  skip-till-next-match its Kleene closures are `greedy()` and `until` the next type: without, they would skip what fits.
- One traversal for all windows saves less in `overlap-any` than elsewhere: its counts have hundreds of bits, and an
  event still has a number for each window that it is in, so that additions cost more than the index that is shared.
- A program is given seconds, where the papers wait for hours. Ratios at the sizes that it reaches are measured; those
  beyond would be larger, and are not given.
- Absolute times are of this machine.
"""


def page(results: Mapping[str, Result]) -> str:
    """The page of all results."""
    rounds = max((one["rounds"] for one in results.values() if "rounds" in one), default=1)
    parts = [INTRODUCTION]
    compared = [name for name, one in results.items() if one.get("points") and not one.get("growth")]
    if compared:
        lines = [_outcome(name, results[name]) for name in compared]
        parts += ["## In short\n", SHORT, table(("experiment", "hardest", "fastest", "others"), lines) + "\n"]
    if ratios := [(name, one) for name, one in _figures(results) if one["unit"] == "×" and name not in compared]:
        lines = [(name, one["case"], short(one["median"]), one["target"] or "") for name, one in ratios]
        parts += [RATIOS, table(("experiment", "seconds of", "×", "target"), lines) + "\n"]
    missed = [f"- {name}: {figure_line(one)}" for name, one in _figures(results) if one["met"] is False]
    held = sum(one["met"] is True for _, one in _figures(results))
    if held or missed:
        parts.append(f"## Targets\n\n{held} of {held + len(missed)} were met{'; missed:' if missed else '.'}\n")
    if missed:
        parts.append("\n".join(missed) + "\n")
    grown = growth_table(results)
    if grown:
        parts += ["## Growth\n", GROWTH, grown]
    parts.append(METHOD.format(rounds=rounds, once=ONCE))
    for name, result in results.items():
        parts.append(f"## {name}\n\n{section(name, result)}")
    return "\n".join(parts)


def _outcome(name: str, result: Result) -> tuple[str, ...]:
    """Who is fastest on the hardest x, and by how much each other program is slower on the hardest that it did."""
    points = {(one["program"], one["x"]): one for one in result["points"]}
    hardest = list(dict.fromkeys(one["x"] for one in result["points"]))[-1]
    about, x = f"[{name}](#{name}): {result['title']}", f"{varied(hardest)} {result['x']}"
    done = {program: [one for one in points.values() if one["program"] == program and not one["lost"]]
            for program in result["programs"]}  # fmt: skip
    best = min((one for one in points.values() if one["x"] == hardest and not one["lost"]), default=None,
               key=lambda one: one["seconds"])  # fmt: skip
    if best is None:
        return about, x, "none", ""
    others = []
    for program in result["programs"]:
        if program == best["program"]:
            continue
        if not done[program]:
            others.append(f"{program} none")
            continue
        last = done[program][-1]
        ratio = last["seconds"] / points[best["program"], last["x"]]["seconds"]
        stops = f" at {varied(last['x'])}, its last" if last["x"] != hardest else ""
        others.append(f"{program} {short(ratio)} ×{stops}")
    return about, x, f"{best['program']}, {_time(best)}", "; ".join(others)


def section(name: str, result: Result) -> str:
    """What was measured of one experiment."""
    said = [result[name] for name in ("title", "source") if name in result]
    lines = [" ".join(f"{text[0].upper()}{text[1:]}." for text in said), ""]
    if "points" in result:
        lines += [f"![time by {result['x']}](benchmarks/{name}.svg)", "", f"```\n{result['query'].strip()}\n```", ""]
        lines += ["Time:", "", comparison_table(result, _time), ""]
        lines += ["Stored (and megabytes):", "", comparison_table(result, _memory), ""]
        if any(point.get("links") for point in result["points"]):
            lines += ["Steps along links:", "", comparison_table(result, lambda one: _count(one.get("links"))), ""]
    if result.get("figures"):
        lines += [table(("case", "median", "from", "to", "unit", "target", ""), map(_figure, result["figures"])), ""]
    took = f" (took {result['took'] / 60:.1f} minutes)" if "took" in result else ""
    lines.append(f"`{result['command']}`{took}, {result['at']}, {result['machine']}")
    return "\n".join(lines) + "\n"


def comparison_table(result: Result, cell: Callable[[Mapping[str, Any]], str]) -> str:
    """A line for each x, a column for each program."""
    found = {(one["program"], one["x"]): one for one in result["points"]}
    xs = list(dict.fromkeys(one["x"] for one in result["points"]))
    lines = [
        [varied(x)]
        + [
            ("·" if (program, x) not in found else lost(found[program, x], result) or cell(found[program, x]))
            for program in result["programs"]
        ]
        for x in xs
    ]
    return table((result["x"], *result["programs"]), lines)


def lost(point: Mapping[str, Any], result: Result) -> str | None:
    """That a program did not finish, and why."""
    if not point["lost"]:
        return None
    if "memory" in point["lost"]:
        return "out of memory"
    return f"> {result['seconds']:g} s" if "seconds" in point["lost"] else "refused"


def growth_table(results: Mapping[str, Result]) -> str:
    """What was fitted, beside what theory says."""
    lines = [
        (f"[{name}](#{name})", result["x"], one["program"], one["theory"], one["fitted"], _range(one["over"]))
        for name, result in results.items()
        for one in result.get("growth", ())
    ]
    return table(("experiment", "x", "program", "theory", "fitted", "for x"), lines) + "\n" if lines else ""


def _range(xs: Sequence[float]) -> str:
    return f"{varied(xs[0])} to {varied(xs[-1])}" if xs else ""


def figure_line(figure: Mapping[str, Any]) -> str:
    """A figure in words."""
    return f"{figure['case']}: {short(figure['median'])} {figure['unit']}, wanted {figure['target']}"


def _figures(results: Mapping[str, Result]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, figure) for name, result in results.items() for figure in result.get("figures", ())]


def _figure(figure: Mapping[str, Any]) -> tuple[str, ...]:
    verdict = {True: "met", False: "missed", None: ""}[figure["met"]]
    numbers = map(short, (figure["median"], figure["low"], figure["high"]))
    return figure["case"], *numbers, figure["unit"], figure["target"] or "", verdict


def _time(point: Mapping[str, Any]) -> str:
    taken = point["seconds"]
    return f"{short(taken)} s" if taken >= 1 else f"{short(taken * 1e3)} ms"


def _memory(point: Mapping[str, Any]) -> str:
    if point["memory"] is None:
        return _count(point["stored"])
    megabytes = point["memory"] / 2**20
    return f"{_count(point['stored'])} ({short(megabytes) if megabytes >= 1 else '< 1'})".strip()


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def varied(x: float) -> str:
    """As it is varied.

    >>> varied(2.5), varied(100000.0)
    ('2.5', '100,000')
    """
    return f"{x:,g}" if x < 1e6 else f"{x:,.0f}"


def short(number: float) -> str:
    """Three digits, and never fewer than there are before the point.

    >>> short(1234.5), short(0.12345)
    ('1,234', '0.123')
    """
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def table(header: Sequence[str], lines: Any) -> str:
    """A table in Markdown, aligned, so that it reads well as text too."""
    rows = [tuple(header), *map(tuple, lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def chart(result: Result, file: Path) -> None:
    """Draw time by x."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "trendmill"  # the same chart is the same file
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    looks = [*LOOKS, *(one for one in result["programs"] if one not in LOOKS)]
    for program in result["programs"]:
        number = looks.index(program)
        points = sorted((one for one in result["points"] if one["program"] == program), key=lambda one: one["x"])
        finished = [one for one in points if not one["lost"]]
        colour = f"C{number}"
        axes.plot(
            [one["x"] for one in finished], [one["seconds"] for one in finished],
            color=colour, marker="osDv^<>P"[number % 8], markersize=4, linewidth=1.3, label=program,
        )  # fmt: skip
        stopped = [one["x"] for one in points if one["lost"]]
        axes.scatter(
            stopped, [result["seconds"]] * len(stopped), marker="^", s=60, facecolors="none", edgecolors=colour
        )
    logarithmic = min(one["x"] for one in result["points"]) > 0
    axes.set(
        xlabel=result["x"], ylabel="seconds (△ did not finish)", yscale="log", xscale="log" if logarithmic else "linear"
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(file, metadata={"Date": None})


def write(results: Mapping[str, Result], text: Path, charts: Path) -> None:
    """Write the page and its charts."""
    charts.mkdir(parents=True, exist_ok=True)
    text.write_text(page(results), "utf-8")
    for name, result in results.items():
        if result.get("points"):
            chart(result, charts / f"{name}.svg")
