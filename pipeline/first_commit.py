"""The first version of a table in a folder, as Delta's protocol has it: a file, for which Spark takes a second.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md: a table is made by a commit of its metadata and protocol.
deltalake can make tables too, but leaves one with constraints at a version of the protocol that has none.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from pathlib import Path
from time import time

from pipeline.tables import Table

# Spark SQL's types, as the protocol names them.
TYPES = {name: name for name in ("string", "double", "boolean", "date", "timestamp")} | {
    "bigint": "long",
    "int": "integer",
}
LOG = "_delta_log"
FIRST = f"{0:020}.json"
# What a writer must know of any table; the version that has just that, and the one that knows constraints too.
BASIC, BASIC_VERSION, CONSTRAINTS_VERSION = ("appendOnly", "invariants"), 2, 3
FEATURES_VERSION = 7  # from which on features are named one by one


def is_plain(table: Table) -> bool:
    """Whether its names and types mean the same everywhere; what other tables may have is for Spark to say."""
    return all(re.fullmatch(r"[A-Za-z0-9_]+", column.name) and column.type in TYPES for column in table.columns)


def write(folder: Path, table: Table) -> None:
    """Make the table, unless something is there, or another run makes it in the same moment."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        return
    log = folder / LOG
    log.mkdir(exist_ok=True)
    making = log / f".{FIRST}.{uuid.uuid4().hex}.tmp"
    making.write_text("".join(f"{json.dumps(action)}\n" for action in _actions(table)), "utf-8")
    try:
        os.link(making, log / FIRST)  # all of it, and never over another's
    except FileExistsError:
        pass
    finally:
        making.unlink(missing_ok=True)


def _actions(table: Table) -> list[dict[str, object]]:
    now = int(time() * 1000)
    fields = [
        {
            "name": column.name,
            "type": TYPES[column.type],
            "nullable": not column.required,
            "metadata": {"comment": column.about},
        }
        for column in table.columns
    ]
    return [
        {"commitInfo": {"timestamp": now, "operation": "CREATE TABLE", "operationParameters": {}}},
        {"protocol": {"minReaderVersion": 1, **_writer(table)}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "description": table.about,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(table.partition),
                "configuration": table.properties,
                "createdTime": now,
            }
        },
    ]


def _writer(table: Table) -> dict[str, object]:
    """What a writer must know, no more than the table needs."""
    if not table.change_feed:
        return {"minWriterVersion": CONSTRAINTS_VERSION if table.constraints else BASIC_VERSION}
    features = [*BASIC, "changeDataFeed", *(["checkConstraints"] if table.constraints else [])]
    return {"minWriterVersion": FEATURES_VERSION, "writerFeatures": features}
