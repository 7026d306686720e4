"""Suites as files: plain Great Expectations JSON, one a table, and one a layer for what all its tables share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import TrendsError

FOLDER = Path(__file__).parents[2] / "expectations"
SEVERITIES = ("critical", "warning")
NAME = re.compile(r"[a-z][a-z0-9_]*")
ROWS = ("file", "line")  # what names a row of bronze and silver


class SuiteError(TrendsError):
    """A mistake in a file of `expectations/`."""


@dataclass(frozen=True)
class Check:
    """One expectation of a suite, and how its failures are shown."""

    table_name: str
    short_name: str
    configuration: Mapping[str, Any]  # as Great Expectations reads it
    shows: tuple[str, ...]  # the columns whose values are shown of a failing row
    file: Path

    @property
    def name(self) -> str:
        """What it is called in results, and to waive it: silver.stock.price_positive."""
        return f"{self.table_name}.{self.short_name}"

    @property
    def severity(self) -> str:
        """Critical stops the interval, warning is published and shown."""
        return str(self.configuration["severity"])

    @property
    def parameters(self) -> frozenset[str]:
        """The names in the `$PARAMETER` expressions of its arguments."""
        expressions = [
            value["$PARAMETER"]
            for value in self.configuration["kwargs"].values()
            if isinstance(value, dict) and "$PARAMETER" in value
        ]
        return frozenset(name for text in expressions for name in re.findall(r"[A-Za-z_]\w*", text))


@dataclass(frozen=True)
class Suite:
    """Everything that must hold for a table."""

    table_name: str
    checks: tuple[Check, ...]
    computed: tuple[Mapping[str, Any], ...]  # the function's name and options of each computed column
    rows: tuple[str, ...]  # the columns that name a row

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of all checks."""
        return frozenset(name for check in self.checks for name in check.parameters)


def load(table_name: str, folder: Path = FOLDER) -> Suite:
    """The suite of a table: of its layer (`silver.json`) and its own (`silver.stock.json`), where there are such."""
    layer = table_name.partition(".")[0]
    paths = [path for path in (folder / f"{layer}.json", folder / f"{table_name}.json") if path.is_file()]
    if not paths:
        raise SuiteError(
            f"{table_name}: no suite says what must hold\nhint: write {folder.name}/{table_name}.json, "
            f"see {folder.name}/README.md"
        )
    checks: dict[str, Check] = {}
    computed: list[Mapping[str, Any]] = []
    rows = ROWS
    for path in paths:
        content = _read(path)
        meta = content.get("meta", {})
        computed += meta.get("computed", [])
        rows = tuple(meta.get("rows", rows))
        for number, configuration in enumerate(content["expectations"], 1):
            check = _check(table_name, configuration, path, number)
            if check.short_name in checks:
                first = checks[check.short_name].file.name
                raise SuiteError(
                    f"{path.name}: the check {check.short_name} is in {first} already\nhint: give it another name"
                )
            checks[check.short_name] = check
    if not checks:
        raise SuiteError(f"{paths[-1].name}: the suite is empty\nhint: one expectation at least is needed")
    return Suite(table_name, tuple(checks.values()), tuple(computed), rows)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise SuiteError(
            f"{path.name}:{error.lineno}:{error.colno}: {error.msg}\nhint: the file must be JSON, without comments"
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get("expectations"), list):
        raise SuiteError(f'{path.name}: no suite\nhint: {{"name": …, "expectations": […]}}')
    return content


def _check(table_name: str, configuration: Any, path: Path, number: int) -> Check:
    meta = configuration.get("meta", {}) if isinstance(configuration, dict) else {}
    name = meta.get("check")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise SuiteError(
            f'{path.name}: expectation {number} has no name\nhint: "meta": {{"check": "price_positive"}}: '
            "small letters, digits and _"
        )
    if configuration.get("severity") not in SEVERITIES:
        raise SuiteError(f'{path.name}: {name}: severity is missing or unknown\nhint: "critical" or "warning"')
    if not isinstance(configuration.get("kwargs"), dict) or "type" not in configuration:
        raise SuiteError(
            f'{path.name}: {name}: no expectation\nhint: "type": "expect_…" and "kwargs": {{…}} are needed'
        )
    return Check(table_name, name, configuration, tuple(meta.get("shows", ())), path)
