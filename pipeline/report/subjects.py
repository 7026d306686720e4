"""What has a page: each query file, right or wrong, and each gold table whose query is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.errors import TrendsError
from pipeline.publish.publications import Publication
from pipeline.questions import Question, find, query_files, table_name
from pipeline.tables import ENGINE_RUNS, gold_history, silver

HISTORY = "_history"


@dataclass(frozen=True)
class Subject:
    """A query, by the name of its gold table."""

    name: str
    file: Path | None = None  # None: there is a table, and no query any more
    text: str = ""
    question: Question | None = None
    error: str | None = None  # why there is no question
    dataset: Dataset | None = None

    @property
    def page(self) -> str:
        """Its page, below the site."""
        return query_page(self.name)

    @property
    def title(self) -> str:
        """As a person writes it."""
        return self.file.stem if self.file else self.name.replace("_", "-")

    def shows(self, column: str, type: str) -> bool:
        """Whether a column of the gold table may be shown as it is.

        Where nobody says what a column is any more, text is shown only if the dataset has such a column.
        """
        if self.question is not None:
            known = {one.name: one.sensitive for one in gold_history(self.question.table).columns}
            if column in known:
                return not known[column]
        if type != "string":
            return not (self.dataset and column in self.dataset.sensitive)
        return self.dataset is not None and column in {c.name for c in silver(self.dataset).columns if not c.sensitive}


def query_page(name: str) -> str:
    """The page of a query below the site, by the name of its gold table."""
    return f"queries/{name}.html"


def subjects(config: Config, folder: Path, publications: Iterable[Publication]) -> list[Subject]:
    """All there are, by dataset and file; tables without a query come last."""
    datasets = {one.query: DATASETS.get(one.dataset) for one in publications}
    found: dict[str, Subject] = {}
    for subject in _of_files(folder):
        other = found.get(subject.name)
        if other is None:
            found[subject.name] = subject
            continue
        wrong = f"{subject.file}: the answers of {other.file} go to gold.{subject.name} already"
        name = f"{subject.name}_{len(found)}"
        error = f"{wrong}\nhint: rename one of the files"
        found[name] = Subject(name, subject.file, subject.text, None, error, subject.dataset)
    for name in _tables(config):
        if name not in found:
            found[name] = Subject(name, dataset=datasets.get(name))
    return list(found.values())


def _of_files(folder: Path) -> Iterator[Subject]:
    for dataset in DATASETS.values():
        for file in query_files(folder, [dataset.name]):
            name, text = table_name(file.name), ""
            try:
                text = file.read_text(encoding="utf-8-sig")
                question = find(str(file), folder)
            except (TrendsError, OSError, UnicodeDecodeError) as error:
                yield Subject(name, file, text, None, str(error), dataset)
            else:
                yield Subject(name, file, text, question, None, question.dataset)


def _tables(config: Config) -> Iterator[str]:
    root = config.lake_folder
    names = sorted(path.parent.name for path in (root / "gold").glob("*/_delta_log")) if root else []
    for name in names:
        is_history = name.endswith(HISTORY) and name.removesuffix(HISTORY) in names
        if name != ENGINE_RUNS.name and not is_history:
            yield name
