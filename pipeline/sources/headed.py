"""CSV with a header whose names changed over the years: each field is found under any of its names."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def names_of(header: str) -> list[str]:
    """A header's names without quotes, spaces and capitals.

    >>> names_of('VendorID, "tpep_pickup_datetime"')
    ['vendorid', 'tpep_pickup_datetime']
    """
    return [name.strip().lower() for name in next(csv.reader([header], skipinitialspace=True), [])]


def find(names: Sequence[str], known: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Where each known field is, under which of its names it may be; fields that are not there are left out."""
    found = {field: [names.index(name) for name in aliases if name in names] for field, aliases in known.items()}
    return {field: columns[0] for field, columns in found.items() if columns}


def header_of(rows: DataFrame) -> str:
    """The one header of some bronze rows."""
    first = rows.select("header").first()
    return (first["header"] or "") if first else ""


def texts(columns: Mapping[str, int]) -> dict[str, Column]:
    """The trimmed text of each field, from the row's `cells`."""
    return {field: F.trim(F.get("cells", F.lit(column))) for field, column in columns.items()}
