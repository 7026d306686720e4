"""Minute bars: prices of a minute, a company and minute each row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field, mostly
from pipeline.sources.local_time import in_utc
from pipeline.sources.parsing import (
    cells,
    date_time,
    derived,
    first_wrong,
    number,
    one_event,
    whole,
    wrong_width,
    wrongs,
)
from pipeline.sources.sectors import UNKNOWN_SECTOR, with_sector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ZONE = "America/New_York"
HEADER = "ticker,yyyymmddhhmm,open,high,low,close,volume"
MOST = 1e6

TICKER = Field("ticker", "text", "the company's symbol")
MINUTE = Field("minute", "date and time", "when the minute begins in New York, yyyyMMddHHmm")
OPEN = Field("open", "number", "the first price", "$", minimum=0, maximum=MOST)
HIGH = Field("high", "number", "the highest price", "$", minimum=0, maximum=MOST)
LOW = Field("low", "number", "the lowest price", "$", minimum=0, maximum=MOST)
CLOSE = Field("close", "number", "the last price", "$", minimum=0, maximum=MOST)
VOLUME = Field("volume", "whole number", "how many shares changed hands", minimum=0)


class MinuteBars:
    """`ticker,yyyyMMddHHmm,open,high,low,close,volume`, with or without this header."""

    name = "minute bars"
    about = "A company's prices of one minute each row; times are New York's"
    fields: tuple[Field, ...] = (TICKER, MINUTE, OPEN, HIGH, LOW, CLOSE, VOLUME)

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By the header, or by a minute of twelve digits in the second of seven columns."""
        looks_right = re.compile(r"[A-Za-z0-9.-]*,[0-9]{12}(,[^,]*){5}").fullmatch
        return bool(lines) and (self.is_header(lines[0]) or mostly(lines, looks_right))

    def is_header(self, line: str) -> bool:
        """The names, in small or capital letters."""
        return line.lower() == HEADER

    def events(self, rows: DataFrame) -> DataFrame:
        """A bar each; its price is the minute's last."""
        cell = [F.get("cells", F.lit(column)) for column in range(len(self.fields))]
        prices = {field.name: number(cell[2 + index]) for index, field in enumerate((OPEN, HIGH, LOW, CLOSE))}
        typed = rows.withColumn("cells", cells(",")).withColumns(
            {
                "company": F.upper(cell[0]),
                "clock": date_time(cell[1], "yyyyMMddHHmm"),
                **prices,
                "volume": whole(cell[6], "bigint"),
            }
        )
        time = in_utc(F.col("clock"), ZONE)
        timed = with_sector(typed.withColumns({"first": time.first, "second": time.second}))
        low, high = F.col("low"), F.col("high")
        outside = [(F.col(name) < low) | (F.col(name) > high) for name in ("open", "close")]
        reason = first_wrong(
            (
                wrong_width(F.col("cells"), len(self.fields)),
                *wrongs(TICKER, cell[0], cell[0]),
                *wrongs(MINUTE, cell[1], F.col("clock")),
                *(
                    wrong
                    for index, name in enumerate(prices)
                    for wrong in wrongs(self.fields[2 + index], cell[2 + index], F.col(name))
                ),
                *wrongs(VOLUME, cell[6], F.col("volume")),
                (low > high, "low: above high"),
                (outside[0], "open: not between low and high"),
                (outside[1], "close: not between low and high"),
                (F.col("first").isNull(), "minute: no such time in New York"),
            )
        )
        return one_event(
            timed.withColumn("reason", reason),
            time=F.col("first"),
            ambiguous_time=F.col("second").isNotNull(),
            derived=derived(F.when(F.col("sector").isNull(), "sector")),
            company=F.col("company"),
            sector=F.coalesce("sector", F.lit(UNKNOWN_SECTOR)),
            price=F.col("close"),
            volume=F.col("volume"),
            exchange=F.lit(None).cast("string"),
            condition=F.lit(None).cast("string"),
            suspicious=F.lit(None).cast("boolean"),
            open=F.col("open"),
            high=high,
            low=low,
        )


MINUTE_BARS = MinuteBars()
