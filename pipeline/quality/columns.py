"""Computed columns: what a check needs to know of a row that is not in it, as named functions frame → frame.

A suite names them with their options. A computed column is true where a row is right, false where it is wrong, and null
where the check has nothing to say. Facts between rows are found in narrow aggregates over hashes; what is wrong is
sent to every task. The rows themselves are never shuffled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.errors import nearest
from pipeline.quality.subject import Subject
from pipeline.quality.suites import Suite, SuiteError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FEW = 10_000  # so many wrong keys are sent to every task
STRETCHES = 1_000_000  # a day's files are cut into about so many stretches of lines to see whether times go back
KEY, MARK = "__key", "__mark"


def with_expression(frame: DataFrame, subject: Subject, *, column: str, sql: str) -> DataFrame:
    """A column by a Spark SQL expression over the row: `low <= high`."""
    from pyspark.sql import functions as F

    return frame.withColumn(column, F.expr(sql))


def with_quarantined_share(frame: DataFrame, subject: Subject) -> DataFrame:
    """`quarantined_share`: the part of the day's rows that were set aside, the same in each row."""
    from pyspark.sql import functions as F

    return frame.withColumn("quarantined_share", F.lit(subject.quarantined_share))


def with_unique_id(frame: DataFrame, subject: Subject, *, id: str = "event_id") -> DataFrame:
    """`id_is_unique`: false for all rows of an id that several rows have.

    Hashes of 64 bits are compared: in a day of 20 million rows two different ids agree with a chance of 1 in 100 000.
    """
    from pyspark.sql import functions as F

    key = F.xxhash64(id)
    repeated = frame.groupBy(key.alias(KEY)).agg(F.count("*").alias(MARK)).where(F.col(MARK) > 1)
    return _with_marks(frame, key, repeated, lambda mark: F.when(F.col(id).isNotNull(), mark.isNull()), "id_is_unique")


def with_partner(
    frame: DataFrame, subject: Subject, *, column: str, keys: Sequence[str], of: str, partner: str
) -> DataFrame:
    """Whether each row that is `of` has a `partner` with the same keys in the frame; null in all other rows."""
    from pyspark.sql import functions as F

    key, asks, answers = F.xxhash64(*keys), F.expr(of), F.expr(partner)
    alone = (
        frame.where(asks | answers)
        .groupBy(key.alias(KEY))
        .agg(F.max(asks).alias(MARK), F.max(answers).alias("__answered"))
        .where(F.col(MARK) & ~F.col("__answered"))
        .drop("__answered")
    )
    return _with_marks(frame, key, alone, lambda mark: F.when(asks, mark.isNull()), column)


def with_time_order(frame: DataFrame, subject: Subject, *, formats: Mapping[str, Sequence[str]]) -> DataFrame:
    """`time_in_order`: false where an earlier line of the file has a later time.

    `formats` are those that promise sorted files, each with the columns within which it does (none: the whole file).
    Derived times promise nothing. On days of more than a million rows, neighbouring lines are taken together in
    stretches (20 lines on a day of 20 million), and a row that is out of order only within its stretch is not seen.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    promised = [(file, formats[format]) for file, format in subject.formats.items() if format in formats]
    if not promised:
        return frame.withColumn("time_in_order", F.lit(None).cast("boolean"))
    by = sorted({name for _, names in promised for name in names})
    # A column within which this file promises nothing is one value for all its rows.
    within = [
        F.when(F.col("file").isin([file for file, names in promised if name in names]), F.col(name).cast("string"))
        for name in by
    ]
    is_derived = F.coalesce(F.array_contains(F.split("derived", " *, *"), "time"), F.lit(False))
    asks = F.col("file").isin([file for file, _ in promised]) & F.col("line").isNotNull() & ~is_derived
    length = max(1, subject.source_rows // STRETCHES)
    stretch = F.floor(F.col("line") / F.lit(length))
    series = F.xxhash64("file", *within)
    earlier = Window.partitionBy("__series").orderBy("__stretch").rowsBetween(Window.unboundedPreceding, -1)
    back = (
        frame.where(asks)
        .groupBy(series.alias("__series"), stretch.alias("__stretch"))
        .agg(F.min("time").alias("__first"), F.max("time").alias("__last"))
        .withColumn(MARK, F.max("__last").over(earlier))
        .where(F.col("__first") < F.col(MARK))
        .select(F.xxhash64("__series", "__stretch").alias(KEY), MARK)
    )
    return _with_marks(
        frame,
        F.xxhash64(series, stretch),
        back,
        lambda mark: F.when(asks, F.coalesce(F.col("time") >= mark, F.lit(True))),
        "time_in_order",
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (with_expression, with_quarantined_share, with_unique_id, with_partner, with_time_order)
}


def with_computed(frame: DataFrame, subject: Subject, suite: Suite) -> DataFrame:
    """The frame with every computed column of a suite, in the suite's order."""
    for options in suite.computed:
        name, others = options.get("function", ""), {key: value for key, value in options.items() if key != "function"}
        if name not in FUNCTIONS:
            known = nearest(name, FUNCTIONS) or ", ".join(FUNCTIONS)
            raise SuiteError(f"{suite.table_name}: computed columns: no function {name!r}\nhint: {known}")
        try:
            frame = frame.transform(FUNCTIONS[name], subject, **others)
        except TypeError as error:
            raise SuiteError(
                f"{suite.table_name}: computed columns: {error}\nhint: its options are in expectations/README.md"
            ) from None
    return frame


def _with_marks(
    frame: DataFrame, key: Column, marked: DataFrame, right: Callable[[Column], Column], column: str
) -> DataFrame:
    """The frame with `right` of the mark of each row's key, null where its key has none; most days no key has one."""
    from pyspark.sql import functions as F

    asked = F.lit(True)
    few = marked.limit(FEW + 1).collect()
    if len(few) > FEW:
        # Too many for every task to hold: keys are drawn by their hash, and the rows of all others have no answer. The
        # share of wrong rows, which is what `mostly` is about, stays as it is.
        drawn = 2 * math.ceil(marked.count() / FEW)
        asked = F.pmod(key, F.lit(drawn)) == 0
        few = marked.where(F.pmod(F.col(KEY), F.lit(drawn)) == 0).limit(FEW).collect()
    if not few:
        return frame.withColumn(column, right(F.lit(None).cast(marked.schema[MARK].dataType)))
    few_marks = F.broadcast(frame.sparkSession.createDataFrame(few, marked.schema))
    joined = frame.withColumn(KEY, key).join(few_marks, KEY, "left")
    return joined.withColumn(column, F.when(asked, right(F.col(MARK)))).drop(KEY, MARK)
