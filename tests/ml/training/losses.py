"""Expected first losses of tiny trainings, to notice changes of their arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOLERANCE = 1e-3
"""Processors sum in other orders: the first steps agree far better than this."""


def assert_first_losses(out: Path, expected: list[float], *, rel: float = TOLERANCE) -> None:
    """The first losses in the log of a run in ``out`` are ``expected``."""
    data = json.loads((out / "log.json").read_text())["history"]["loss"]
    assert data[: len(expected)] == pytest.approx(expected, rel=rel)
