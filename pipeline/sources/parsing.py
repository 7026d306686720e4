"""What the formats share on Spark: a row's text becomes values, and the first thing wrong becomes its reason.

A value of any size may be in a row, and Spark ends a run where arithmetic or a cast overflows: so until the reason is
known, a format casts with try_cast and calculates with doubles alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What an event keeps of the row it came from.
ROW = ("file", "file_hash", "line", "copy", "raw", "landing_date")
# A comma outside quotes: one with an even number of quotes after it.
COMMA = r',(?=(?:[^"]*"[^"]*")*[^"]*$)'

Wrong: TypeAlias = "tuple[Column, str]"  # when, and what to call it


def cells(separator: str) -> Column:
    """The row cut at a separator that no value can contain."""
    return F.split("raw", separator, -1)


def quoted_cells() -> Column:
    """The row cut at its commas; a value in quotes may contain some."""
    raw = F.col("raw")
    unquoted = F.transform(
        F.split(raw, COMMA, -1), lambda cell: F.regexp_replace(F.regexp_replace(cell, '^\\s*"|"\\s*$', ""), '""', '"')
    )
    return F.when(raw.contains('"'), unquoted).otherwise(F.split(raw, ",", -1))


def whole(text: Column, type: str = "int") -> Column:
    """A whole number, or null."""
    return text.try_cast(type)


def number(text: Column) -> Column:
    """A finite number, or null. Java also takes 1d, 0x1p3, NaN and Infinity for numbers."""
    value = text.try_cast("double")
    plain = (F.right(text, F.lit(1)) <= "9") & ~text.contains("x") & ~text.contains("X")
    return F.when(plain & (F.abs(value) < float("inf")), value)


def date_time(text: Column, pattern: str = "yyyy-MM-dd HH:mm:ss") -> Column:
    """A clock time, as a timestamp that calls itself UTC, or null."""
    return F.try_to_timestamp(text, F.lit(pattern))


def wrong_width(cells: Column, width: int) -> Wrong:
    """Fewer or more columns than there should be."""
    return F.size(cells) != width, "wrong number of columns"


def wrongs(field: Field, text: Column, value: Column) -> Iterator[Wrong]:
    """What can be wrong with a field, in the order in which it is looked for."""
    if field.required:
        yield text == "", f"{field.name}: missing"
    if field.type != "text":
        yield (text != "") & value.isNull(), f"{field.name}: not a {field.type}"
    if field.minimum is not None:
        yield value < field.minimum, f"{field.name}: out of range"
    if field.maximum is not None:
        yield value > field.maximum, f"{field.name}: out of range"
    if field.values:
        yield (text != "") & ~text.isin(*field.values), f"{field.name}: not one of its known values"


def first_wrong(found: Iterable[Wrong]) -> Column:
    """The reason to set a row aside, or null."""
    reason = F.when(F.col("problem").isNotNull(), F.col("problem"))
    for condition, name in found:
        reason = reason.when(condition, F.lit(name))
    # Always so, but no constant to Spark, which would else move a filter on the reason down to the scan and work out
    # every field twice or more.
    return F.when(F.spark_partition_id() >= 0, reason)


def derived(*names: Column | str) -> Column:
    """The names of the columns that were derived; a name that is null was not."""
    return F.nullif(F.concat_ws(",", *(F.lit(name) if isinstance(name, str) else name for name in names)), F.lit(""))


def one_event(rows: DataFrame, **columns: Column) -> DataFrame:
    """Rows that have a `reason` or become one event each."""
    # Looked at only where the row is good, since arithmetic on any number may overflow, which would end the run.
    good = F.col("reason").isNull()
    return rows.select(
        *ROW, F.lit(0).alias("part"), "reason", *(F.when(good, columns[name]).alias(name) for name in columns)
    )


def several_events(rows: DataFrame, events: Column) -> DataFrame:
    """Rows that have a `reason` or become an array of `events` each."""
    good = F.when(F.col("reason").isNull(), events)
    return rows.select(*ROW, "reason", F.posexplode_outer(good).alias("part", "event")).select(
        *ROW, F.coalesce("part", F.lit(0)).alias("part"), "reason", "event.*"
    )
