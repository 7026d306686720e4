"""The shipped queries, each run on its dataset's sample: what is asked, then the first rows of the answer.

As `trends run` does it, but in one process, which starts once. Usage: .venv/bin/python queries/demo.py
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import takewhile
from pathlib import Path

from pipeline.cli import main as trends

QUERIES = Path(__file__).parent
TYPES = {"stock": "company,sector"}  # the columns that hold the events' types, where that is not `type`
SHOWN = 8  # lines of an answer


def main() -> int:
    """Run them; the exit code of the first that fails."""
    # The E-Cube workloads are 36 queries of one kind: one with negation, one over sectors, one that mixes both levels.
    some = [next(QUERIES.glob(f"stock/e-cube/q{number}-*.query")) for number in ("01", "16", "27")]
    for query in [*sorted(QUERIES.glob("*/*.query")), *some]:
        if code := _run(query):
            return code
    return 0


def _run(query: Path) -> int:
    below = query.relative_to(QUERIES)
    dataset = below.parts[0]
    print(f"\n== {below}")
    for line in takewhile(lambda line: line.startswith("--"), query.read_text("utf-8").splitlines()):
        print(line.removeprefix("--").removeprefix(" "))
    print(flush=True)
    answer = StringIO()
    with redirect_stdout(answer):
        types = TYPES.get(dataset, "type")
        code = trends(["run", str(query), "--events", str(QUERIES / dataset / "sample.csv"), "--types", types])
    lines = answer.getvalue().splitlines()
    for line in lines[:SHOWN]:
        print(f"  {line}")
    if len(lines) > SHOWN:
        print(f"  … and {len(lines) - SHOWN} more lines")
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
