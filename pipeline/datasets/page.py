"""docs/datasets.md, written from the declarations: `python -m pipeline.datasets.page > docs/datasets.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Column, Dataset
from pipeline.sources.formats import Field, Format

INTRODUCTION = """\
# Datasets

What each dataset is, the columns of its events in `silver.<dataset>`, and the raw formats that its landing files may
have. Every silver table also has `event_id`, `time` (UTC), `event_date`, `derived` (the columns of the row that were
derived, not measured), `ambiguous_time`, `late`, `file`, `line` and `landing_date`.

This page is written from the declarations in `pipeline/datasets/` and `pipeline/sources/`."""


def page(datasets: Iterable[Dataset]) -> str:
    """The page about some datasets."""
    parts = [INTRODUCTION, *(part for dataset in datasets for part in _dataset(dataset))]
    return "\n\n".join(parts) + "\n"


def _dataset(dataset: Dataset) -> Iterator[str]:
    keys = (
        f"rows with the same {' and '.join(dataset.keys)}" if dataset.keys else "none: equal rows are different events"
    )
    yield f"## {dataset.name}"
    yield f"{dataset.about}."
    yield "\n".join(
        (
            f"- types: {', '.join(dataset.types)}, and `{dataset.name}` itself",
            f"- duplicates: {keys}",
            f"- landing days: {dataset.calendar.about} from {dataset.first_day} on, complete {dataset.expected_by} "
            f"hours after the day begins ({dataset.zone})",
            f"- late: more than {dataset.lag} days before the landing day",
            f"- kept: old versions of its tables, for {dataset.retention} days",
        )
    )
    yield _table(("column", "type", "is"), (_column(column) for column in dataset.columns))
    for known in dataset.formats:
        yield f"### {known.name}"
        yield f"{known.about}."
        yield _format(known)


def _column(column: Column) -> tuple[str, ...]:
    notes = [column.about, "masked in reports"] if column.sensitive else [column.about]
    return f"`{column.name}`", column.type, "; ".join((*notes, *_limits(column)))


def _format(known: Format) -> str:
    return _table(("field", "type", "is"), ((f"`{f.name}`", f.type, "; ".join(_field(f))) for f in known.fields))


def _field(field: Field) -> Iterator[str]:
    yield f"{field.about}, in {field.unit}" if field.unit else field.about
    if not field.required:
        yield "may be empty"
    yield from _limits(field)


def _limits(limited: Column | Field) -> Iterator[str]:
    if limited.minimum is not None and limited.maximum is not None:
        yield f"{limited.minimum:,.10g} to {limited.maximum:,.10g}"
    elif limited.minimum is not None:
        yield f"at least {limited.minimum:,.10g}"
    elif limited.maximum is not None:
        yield f"at most {limited.maximum:,.10g}"
    if limited.values:
        yield f"one of {', '.join(limited.values)}"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    print(page(DATASETS.values()), end="")
