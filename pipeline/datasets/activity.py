"""Activity: heart rates of people who rest, work or exercise."""

from __future__ import annotations

from datetime import date

from pipeline.datasets.declaration import EVERY_DAY, Column, Dataset
from pipeline.sources.heart_rate import HEART_RATE
from pipeline.sources.pamap2 import PAMAP2

ACTIVITY = Dataset(
    name="activity",
    about="Heart rates of people, with what they are doing",
    formats=(HEART_RATE, PAMAP2),
    columns=(
        Column("type", "string", "whether the activity moves the body", required=True, values=("passive", "active")),
        Column("activity", "string", "what the person is doing", required=True),
        Column("patient", "string", "who it is, in the study", required=True, sensitive=True),
        Column("rate", "double", "heart beats a minute; null between two measurements", minimum=20, maximum=250),
        Column("respiration", "double", "breaths a minute", minimum=0, maximum=100),
        Column("stress", "boolean", "whether the person is under stress, by the study's plan"),
    ),
    types=("type",),
    keys=("patient", "time"),
    zone="UTC",
    calendar=EVERY_DAY,
    first_day=date(2022, 1, 1),
    expected_by=30,
    lag=31,  # a study's recordings are handed over when it ends
    retention=30,
)
