"""Questions: the query files over a dataset's tables, each with the gold table that its answers go to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.aggregate.reach import Reach
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.errors import QueryError, TrendsError, nearest
from pipeline.events import Kind
from pipeline.query.check import check
from pipeline.query.checked import Query
from pipeline.tables import ENGINE_RUNS, OPS, Column, Table, bronze, gold, gold_history, quarantine, silver

FOLDER = Path("queries")
SUFFIX = ".query"
NUMBERS = ("double", "bigint", "int")


@dataclass(frozen=True)
class Question:
    """A query over a dataset's events, and the name of its gold table."""

    name: str
    dataset: Dataset
    query: Query

    @cached_property
    def version(self) -> str:
        """Which query it is: the same for texts that mean the same."""
        return hashlib.sha256(str(self.query.tree).encode()).hexdigest()[:12]

    @cached_property
    def reach(self) -> Reach:
        """Its windows in time."""
        return Reach.of(self.query)

    @cached_property
    def table(self) -> Table:
        """Where its answers go."""
        return gold(self.name, f"Answers of {self.query.file}", self.query, silver(self.dataset))


def ask(text: str, file: str) -> Question:
    """The question of a query's text, checked against the columns of its dataset."""
    query = check(text, file)
    dataset = DATASETS.get((query.tree.source or "").lower())
    if dataset is None:
        said = f"there is no dataset {query.tree.source}" if query.tree.source else "FROM is missing"
        raise TrendsError(f"{file}: {said}\nhint: FROM one of {', '.join(DATASETS)}")
    columns = {column.name: column for column in silver(dataset).columns}
    for name, use in query.uses.items():
        if name not in columns:
            close = nearest(name, columns)
            hint = f"did you mean {close}?" if close else f"its columns are {', '.join(columns)}"
            raise QueryError(f"silver.{dataset.name} has no column {name}", text, use.span, file, hint)
        _check_kind(query, columns[name])
    question = Question(table_name(file), dataset, query)
    question.reach, question.table  # noqa: B018 -- say now what is wrong with them
    return question


def find(name: str, folder: Path = FOLDER) -> Question:
    """The question that a user names: a file, or its name with or without the folder (`stock/down-trends`)."""
    path = Path(name)
    if not path.is_file():
        known = {file: _names(file, folder) for file in query_files(folder)}
        found = [file for file, names in known.items() if name.removesuffix(SUFFIX) in names]
        if len(found) != 1:
            close = nearest(name, [file.stem for file in known])
            hint = f"did you mean {close}?" if close else f"a file, or one of {folder}/*/*{SUFFIX}"
            if found:
                hint = f"say which: {', '.join(map(str, found))}"
            raise TrendsError(f"there is no query {name!r}\nhint: {hint}")
        path = found[0]
    try:
        return ask(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError:
        raise TrendsError(f"{path}: this is not a text file in UTF-8") from None


def find_own(file: Path, folder: Path = FOLDER) -> Question:
    """The question of a file in the folder, whose gold table is that of no file before it."""
    question = find(str(file), folder)
    other = next((one for one in query_files(folder) if table_name(one.name) == question.name), file)
    if other != file:
        raise TrendsError(
            f"{file}: the answers of {other} go to {question.table.full_name} already\nhint: rename one of the files"
        )
    return question


def query_files(folder: Path = FOLDER, datasets: Iterable[str] = DATASETS) -> list[Path]:
    """The files of the queries over these datasets, by path."""
    return sorted(file for dataset in datasets for file in (folder / dataset).rglob(f"*{SUFFIX}"))


def lake_tables(folder: Path = FOLDER) -> list[tuple[Table, Dataset | None]]:
    """All tables of the lake, those of the questions in a folder included, with the datasets that they belong to."""
    known: list[tuple[Table, Dataset | None]] = []
    for dataset in DATASETS.values():
        known += [(layer(dataset), dataset) for layer in (bronze, silver, quarantine)]
    known += [(table, None) for table in (*OPS, ENGINE_RUNS)]
    for file in query_files(folder):
        try:
            question = find(str(file))
        except TrendsError:  # which `trends check` shows
            continue
        known += [(table, question.dataset) for table in (question.table, gold_history(question.table))]
    return known


def table_name(file: str) -> str:
    """The name of a query's gold table: the file's, in snake case.

    >>> table_name("queries/stock/down-trends-by-sector.query")
    'down_trends_by_sector'
    """
    name = re.sub(r"\W+", "_", Path(file).name.removesuffix(SUFFIX).lower()).strip("_")
    return name if name[:1].isalpha() else f"query_{name}"


def _names(file: Path, folder: Path) -> set[str]:
    below = file.relative_to(folder).with_suffix("")
    return {str(below), below.name, table_name(file.name)}


def _check_kind(query: Query, column: Column) -> None:
    """Fail where the query needs a number and the column is text, or the other way round."""
    is_number = column.type in NUMBERS or column.name == "time"
    use = query.uses[column.name]
    if (use.kind is Kind.NUMBER and not is_number) or (use.kind is Kind.TEXT and is_number):
        needed = "a number" if use.kind is Kind.NUMBER else "text"
        message = f"{column.name} is {column.type}, where the query needs {needed}"
        raise QueryError(message, query.text, use.span, query.file, "use another column, or compare it otherwise")
