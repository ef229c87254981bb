"""Measures in separate processes: all are run, and each failure is reported."""

from __future__ import annotations

import pytest

from tests.bench import __main__ as bench


@pytest.mark.parametrize(("codes", "expected"), [((0, 0), 0), ((2, 0), 1), ((0, -9), 1)])
def test_a_measure_that_fails_or_is_killed_is_reported_and_the_others_run(
    codes: tuple[int, int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, ran = list(codes), []

    def apart(*words: str) -> int:
        ran.append(words)
        return left.pop(0)

    monkeypatch.setattr(bench, "_run_in_process", apart)
    assert bench.run_separately(("mixed --servers", "frames")) == expected
    assert ran == [("mixed", "--servers"), ("frames",)]
