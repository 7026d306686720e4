"""Kernels run in Python, or compiled, as each test says: not as the tests before it left them."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.engines import compiled


class Nothing(set[Any]):
    """Holds nothing."""

    def add(self, _: Any) -> None:
        """Forget it."""


@pytest.fixture(autouse=True)
def _nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_loaded", Nothing())
