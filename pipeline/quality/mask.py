"""Sensitive values, replaced before Great Expectations sees them: no result, message or page can then show one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pipeline.tables import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pipeline.datasets.declaration import Dataset

DIGITS = 10  # of the digest: among a million people two are alike with a chance of one half; only readers are misled
RAW = ("raw",)  # a line as it came holds every column


def with_masks(frame: DataFrame, dataset: Dataset, *more: str) -> DataFrame:
    """Each sensitive value as its column's name and a short digest, such as `driver-3fa2c10b9e`; nulls stay nulls.

    Equal values have equal masks on all days, so that rows can be told apart and followed. The digest has no salt: it
    hides a value from a reader, not from somebody who hashes every licence there is and compares. What is not text is
    hidden altogether, and keeps its type, which is checked. `more`: columns that hold the same under other names.
    """
    hidden = {*dataset.sensitive, *RAW, *more} if dataset.sensitive else set()
    masks = {name: mask(frame, name) for name in frame.columns if name in hidden}
    return frame.withColumns(masks) if masks else frame


def masked(name: str, value: Any) -> str | None:
    """The same of a single value of a column.

    >>> masked("driver", "7"), masked("driver", None)
    ('driver-7902699be4', None)
    """
    if not isinstance(value, str):
        return None
    return f"{name}-{hashlib.sha256(value.encode()).hexdigest()[:DIGITS]}"


def mask(frame: DataFrame, name: str) -> Column:
    """A column's masks."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    value, type = F.col(quoted(name)), frame.schema[name].dataType
    if type != StringType():
        return F.lit(None).cast(type)
    return F.concat(F.lit(f"{name}-"), F.substring(F.sha2(value, 256), 1, DIGITS))
