"""What a step took: its own memory, not that of the steps before it."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.memory import CLEAR, STATUS, Peak

MB = 2**20


@pytest.mark.skipif(not (STATUS.exists() and CLEAR.exists()), reason="only Linux forgets a peak")
def test_a_peak_is_of_its_own_step() -> None:
    first = Peak()
    assert np.ones(64 * MB, np.int8).sum() == 64 * MB
    assert 60 * MB < first.added < 100 * MB
    second = Peak()
    assert np.ones(8 * MB, np.int8).sum() == 8 * MB
    assert second.added < 30 * MB
