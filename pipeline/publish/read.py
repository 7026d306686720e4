"""Gold for people: a pandas frame without a JVM, and views in which SQL can compute with counts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.approximate import Approximate
from pipeline.arrow_tables import open_table
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.query import tree
from pipeline.questions import Question, table_name
from pipeline.tables import INTERVAL_DATE, LOG10, item_name, quoted, silver

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import SparkSession

NUMBER = "_number"  # beside a count or sum in a view
ROUNDED = re.compile(r"-?\d\.\d{4}e\d+")  # as numbers beyond the exact ones are written
WINDOW = ["window_start", "window_end"]


# ------------------------------------------------------------------------------------------------------------- notebook


def read_gold(
    name: str, lake: str | None = None, version: int | None = None, history: bool = False
) -> pandas.DataFrame:
    """A query's answers, by window and group: `read_gold("down-trends-by-sector")`.

    Counts and sums of integers are Python's integers, of any size, and beyond the exact ones `Approximate` numbers,
    which compare with them: sorting sorts by size. `lake` is TRENDS_LAKE unless it is given; `version` is one of the
    gold table's. With `history`, every revision that was ever published is there.
    """
    import pandas

    sys.set_int_max_str_digits(0)  # counts have any number of digits, and a notebook shows them
    config = Config(lake=lake) if lake else Config.from_environment()
    name = table_name(name.removeprefix("gold."))
    if history and version is not None:
        raise TrendsError(f"gold.{name}: a version, or history\nhint: history has the rows of every version")
    table = open_table(config, f"gold.{name}", version)
    names = table.schema.names
    frame = table.read().to_pandas()
    # What is never null and comes before `exact` names a row.
    before = list(table.schema)[: names.index("exact")]
    keys = [field.name for field in before if not field.nullable and field.name not in WINDOW]
    order = [*WINDOW, *(key for key in keys if key != INTERVAL_DATE.name), "revision"]
    if history:
        superseded = open_table(config, f"gold.{name}_history").read().to_pandas()
        # Those of gold come first: a row that history has before its time is still there.
        frame = pandas.concat([frame, superseded]).drop_duplicates(order)
    for column in names:
        if column + LOG10 in names:
            frame[column] = pandas.Series(map(_number, frame[column]), frame.index, dtype=object)
    return frame.sort_values(order, ignore_index=True)


def _number(text: str | None) -> Any:
    """A count or sum: an integer, a float, or a number beyond both.

    >>> _number("12"), _number("-0.5"), str(_number("2.0035e19728"))
    (12, -0.5, '2.0035e19728')
    """
    if text is None:
        return None
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return Approximate.parse(text) if ROUNDED.fullmatch(text) else float(text)


# ------------------------------------------------------------------------------------------------------------------ SQL


def register_views(spark: SparkSession, config: Config, questions: Iterable[Question]) -> None:
    """Make a view `gold_<query>` of each: gold, and beside each count or sum a number to compute with.

    `count_number` is a DECIMAL(38, 0), null where `count` has more digits; of a sum of doubles it is a double. By size,
    whatever that is: `ORDER BY count_log10, length(count), count`.
    """
    for question in questions:
        rows = delta.read(spark, config, question.table)
        rows.selectExpr("*", *_numbers(question)).createOrReplaceTempView(f"gold_{question.name}")


def _numbers(question: Question) -> Iterator[str]:
    types = {column.name: column.type for column in silver(question.dataset).columns}
    for item in question.query.tree.returns:
        value, text = item.value, quoted(item_name(item))
        if not isinstance(value, tree.Aggregate) or value.function not in ("COUNT", "SUM"):
            continue
        number = f"CASE WHEN {text} RLIKE '^-?[0-9]{{1,38}}$' THEN CAST({text} AS DECIMAL(38, 0)) END"
        if value.function == "SUM" and types[value.attribute or ""] == "double":
            number = f"nullif(abs(CAST({text} AS DOUBLE)), double('infinity')) * sign(CAST({text} AS DOUBLE))"
        yield f"{number} AS {quoted(item_name(item) + NUMBER)}"
