"""What the lake holds of a question already, from Delta's log, without a JVM: columns that must keep their types."""

from __future__ import annotations

from pipeline.config import Config
from pipeline.questions import Question

# Delta's names of types, by Spark SQL's.
DELTA = {"bigint": "long", "int": "integer"}


def changed_columns(config: Config, question: Question) -> list[str]:
    """The columns of a published table that the query would give another type now, each in words."""
    from deltalake import DeltaTable

    path = question.table.path(config)
    if config.lake_folder is None or not DeltaTable.is_deltatable(path):
        return []
    stored = {field.name: str(getattr(field.type, "type", field.type)) for field in DeltaTable(path).schema().fields}
    return [
        f"{column.name} is {stored[column.name]} in {question.table.full_name}, and would be {kind}"
        for column in question.table.columns
        if (kind := DELTA.get(column.type, column.type)) != stored.get(column.name, kind)
    ]
