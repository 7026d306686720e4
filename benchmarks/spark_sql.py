"""The relational way, as TelegraphCQ had it in SASE's paper: a sequence is a join of the stream with itself."""

from __future__ import annotations

import tempfile
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.points import Ask, Budget, Measured, make_events
from pipeline.aggregate.partials import log10
from pipeline.config import Config
from pipeline.events import Events, Numbers
from pipeline.query.check import check
from pipeline.query.checked import Query
from pipeline.spark import session

JOINS = "spark sql, joins"


def joins(ask: Ask, budget: Budget) -> Measured:
    """Count the rows of the join, on one core; windows are of so many events, and do not overlap."""
    begun = time.perf_counter()
    query = check(ask.query)
    events = make_events(ask)
    with tempfile.TemporaryDirectory(prefix="trendmill-joins-") as folder:
        pq.write_table(_table(query, events), f"{folder}/events.parquet")
        spark = session(Config(f"{folder}/lake", f"{folder}/landing", "local[1]"))
        spark.read.parquet(f"{folder}/events.parquet").createOrReplaceTempView("events")
        spark.sql("SELECT count(*) FROM events").collect()
        stop = threading.Timer(budget.seconds, spark.sparkContext.cancelAllJobs)
        stop.start()
        started = time.perf_counter()
        try:
            matches = int(spark.sql(join(query)).collect()[0][0])
        except Exception as error:
            if "cancelled" not in str(error):
                raise
            return Measured(len(events), lost=f"did not finish in {budget.seconds:g} seconds")
        finally:
            stop.cancel()
        taken = time.perf_counter() - started
        spark.stop()
    return Measured(
        len(events), seconds=taken, fit_seconds=started - begun, rows=1, total=f"{matches:x}", log10=log10(matches)
    )


def join(query: Query) -> str:
    """The query as SQL: a table a state, equal in window and keys, in order of position.

    >>> print(join(check("RETURN COUNT(*) PATTERN SEQ(A, B) WHERE [k] WITHIN 9 events SLIDE 9 events")))
    SELECT count(*) FROM events e0
    JOIN events e1 ON e1.frame = e0.frame AND e1.k = e0.k AND e1.position > e0.position
    WHERE e0.type = 'A' AND e1.type = 'B'
    """
    states = query.automaton.states
    lines = ["SELECT count(*) FROM events e0"]
    for now in range(1, len(states)):
        equal = [f"e{now}.{name} = e{now - 1}.{name}" for name in ("frame", *query.keys)]
        lines.append(f"JOIN events e{now} ON {' AND '.join(equal)} AND e{now}.position > e{now - 1}.position")
    types = [f"e{now}.type = '{state.types[0]}'" for now, state in enumerate(states)]
    return "\n".join([*lines, f"WHERE {' AND '.join(types)}"])


def _table(query: Query, events: Events) -> pa.Table:
    position = pa.array(range(len(events)))
    [types] = events.types
    names = pa.DictionaryArray.from_arrays(pa.array(types.codes), pa.array(types.words)).cast(pa.string())
    keys = {key: column.values for key in query.keys if isinstance(column := events.attributes[key], Numbers)}
    frame = pa.array([at // int(query.tree.within.size) for at in range(len(events))])
    return pa.table({"position": position, "frame": frame, "type": names, **keys})
