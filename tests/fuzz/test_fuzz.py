"""A small form of ``make fuzz``: two damaged files of every format, and the generator itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.run import Outcome, damaged_file, outcomes, tally
from tests.fuzz.samples import samples

COUNT, SEED = 24, 12


@pytest.mark.slow
@pytest.mark.endurance
def test_every_damaged_file_ends_with_a_named_reason() -> None:
    items = list(outcomes(COUNT, seed=SEED, workers=2))
    assert len(items) == COUNT
    assert [outcome for outcome in items if outcome.is_finding] == []
    assert {outcome.kind for outcome in items} >= {"accepted", "corrupt-file"}
    assert all(outcome.message for outcome in items if outcome.kind != "accepted")


def test_the_same_seed_damages_the_same_way(tmp_path: Path) -> None:
    honest = {"a": bytes(range(256)) * 8, "b": b"x" * 100}
    first = [damaged_file(honest, seed=1, number=n) for n in range(50)]
    assert first == [damaged_file(honest, seed=1, number=n) for n in range(50)]
    assert first != [damaged_file(honest, seed=2, number=n) for n in range(50)]
    assert {name for name, _ in first} == {"a", "b"}
    changed = sum(data != honest[name] for name, data in first)
    assert changed > 40  # a swap of equal bytes changes nothing


def test_every_format_has_a_sample(tmp_path: Path) -> None:
    made = samples(tmp_path)
    assert {"svs", "bigtiff", "ome-tiff", "jpeg", "png", "mp4", "webm", "zip-mrxs"} <= set(made)
    assert all(made.values())


def test_an_internal_end_is_a_finding_and_counted() -> None:
    result = [Outcome(0, "png", "internal", "KeyError"), Outcome(1, "png", "accepted", "")]
    assert [outcome.is_finding for outcome in result] == [True, False]
    assert tally(result).splitlines()[-1].split() == ["all", "1", "1"]
