"""Trade ticks: a file of one company's trades of one day, as QuantConnect's Lean keeps them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field, base_name, mostly
from pipeline.sources.local_time import in_utc, steady_midnight
from pipeline.sources.parsing import cells, derived, first_wrong, one_event, whole, wrong_width, wrongs
from pipeline.sources.sectors import UNKNOWN_SECTOR, with_sector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ZONE = "America/New_York"
FILE_NAME = re.compile(r"[A-Za-z0-9.-]+_[0-9]{8}_trade\b.*")
MOST = 2**31 - 1

TIME = Field("milliseconds", "whole number", "since midnight in New York", "ms", minimum=0, maximum=86_399_999)
PRICE = Field("price", "whole number", "ten thousand times the dollars a share", "$/10000", minimum=1, maximum=MOST)
VOLUME = Field("shares", "whole number", "how many changed hands", minimum=1, maximum=MOST)
EXCHANGE = Field("exchange", "text", "where, a letter of the consolidated tape")
CONDITION = Field("condition", "hexadecimal number", "the sale conditions, a bit each")
SUSPICIOUS = Field("suspicious", "text", "1 where the publisher doubts the trade", values=("0", "1"))


class TradeTicks:
    """`milliseconds,price,shares,exchange,condition,suspicious`; the file is `<company>_<yyyymmdd>_trade…`.

    Equal rows are split executions: several trades, not one that came several times.
    """

    name = "trade ticks"
    about = "One trade a row, in the order of time; company and date are in the file's name (QuantConnect Lean)"
    fields: tuple[Field, ...] = (TIME, PRICE, VOLUME, EXCHANGE, CONDITION, SUSPICIOUS)

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By the name, without which a row has neither company nor date, and by numbers in six columns."""
        looks_right = re.compile(r"-?[0-9]+,-?[0-9]+,-?[0-9]+,[^,]*,[^,]*,[^,]*").fullmatch
        return bool(FILE_NAME.fullmatch(base_name(file_name))) and mostly(lines, looks_right)

    def is_header(self, line: str) -> bool:
        """These files have none."""
        return False

    def events(self, rows: DataFrame) -> DataFrame:
        """A trade each."""
        cell = [F.get("cells", F.lit(column)) for column in range(len(self.fields))]
        typed = (
            rows.withColumn("cells", cells(","))
            # What the name says is taken from it once a file: on every row it would cost more than all else.
            .join(F.broadcast(_of_files(rows)), "file")
            .withColumns({"milliseconds": whole(cell[0]), "price": whole(cell[1]), "volume": whole(cell[2])})
        )
        elapsed = F.col("milliseconds")
        time = in_utc(F.timestamp_millis(F.col("midnight") + elapsed), ZONE)
        steady = F.col("steady_midnight")
        timed = typed.withColumns(
            {
                # On nearly every day a sum does.
                "first": F.when(steady.isNotNull(), F.timestamp_millis(steady + elapsed)).otherwise(time.first),
                "second": F.when(steady.isNull(), time.second),
            }
        )
        condition = F.unhex(cell[4])
        reason = first_wrong(
            (
                wrong_width(F.col("cells"), len(self.fields)),
                (F.col("midnight").isNull(), "file name: not a date"),
                *wrongs(TIME, cell[0], F.col("milliseconds")),
                *wrongs(PRICE, cell[1], F.col("price")),
                *wrongs(VOLUME, cell[2], F.col("volume")),
                *wrongs(EXCHANGE, cell[3], cell[3]),
                *wrongs(CONDITION, cell[4], condition),
                *wrongs(SUSPICIOUS, cell[5], cell[5]),
                (F.col("first").isNull(), "milliseconds: no such time in New York"),
            )
        )
        nothing = F.lit(None).cast("double")
        return one_event(
            timed.withColumn("reason", reason),
            time=F.col("first"),
            ambiguous_time=F.col("second").isNotNull(),
            derived=F.col("derived"),
            company=F.col("company"),
            sector=F.col("sector"),
            price=F.col("price") / 10_000,
            volume=F.col("volume").cast("bigint"),
            exchange=cell[3],
            condition=cell[4],
            suspicious=cell[5] == "1",
            open=nothing,
            high=nothing,
            low=nothing,
        )


def _of_files(rows: DataFrame) -> DataFrame:
    """Company and sector of each file, and when its day begins in milliseconds: by the clock, and if steady in UTC."""
    name = F.regexp_extract("file", "[^/!]+$", 0)
    date = F.try_to_date(F.substring_index(F.substring_index(name, "_", 2), "_", -1), "yyyyMMdd")
    files = rows.select("file").distinct().withColumn("company", F.upper(F.substring_index(name, "_", 1)))
    return with_sector(files).select(
        "file",
        "company",
        F.coalesce("sector", F.lit(UNKNOWN_SECTOR)).alias("sector"),
        derived(F.when(F.col("sector").isNull(), "sector")).alias("derived"),
        (F.unix_date(date).cast("bigint") * 86_400_000).alias("midnight"),
        F.unix_millis(steady_midnight(date, ZONE)).alias("steady_midnight"),
    )


TRADE_TICKS = TradeTicks()
