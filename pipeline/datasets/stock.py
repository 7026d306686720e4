"""Stock: trades and minute bars of companies, on New York's exchanges."""

from __future__ import annotations

from datetime import date

from pipeline.datasets.declaration import WEEKDAYS, Column, Dataset
from pipeline.sources.minute_bars import MINUTE_BARS
from pipeline.sources.trade_ticks import TRADE_TICKS

STOCK = Dataset(
    name="stock",
    about="Trades, and prices by the minute, of companies on the exchanges of the United States",
    formats=(TRADE_TICKS, MINUTE_BARS),
    columns=(
        Column("company", "string", "ticker symbol", required=True),
        Column("sector", "string", "what the company does; Unknown where no table says so", required=True),
        Column("price", "double", "dollars a share: of the trade, or at the bar's close", required=True, minimum=0),
        Column("volume", "bigint", "shares traded", required=True, minimum=0),
        Column("exchange", "string", "where the trade took place, a letter; trades only"),
        Column("condition", "string", "sale conditions, a hexadecimal number; trades only"),
        Column("suspicious", "boolean", "whether the publisher doubts the trade; trades only"),
        Column("open", "double", "dollars a share at the minute's start; bars only", minimum=0),
        Column("high", "double", "dollars a share, the minute's highest; bars only", minimum=0),
        Column("low", "double", "dollars a share, the minute's lowest; bars only", minimum=0),
    ),
    types=("company", "sector"),
    zone="America/New_York",
    calendar=WEEKDAYS,
    first_day=date(2013, 10, 1),
    expected_by=30,
    lag=0,
    retention=30,
)
