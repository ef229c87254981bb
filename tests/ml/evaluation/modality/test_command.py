"""Evaluation of the proposed modality."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.evaluation.modality.command import describe, fit_logistic, run
from ml.types import no_progress
from tests.ml.imaging.test_modality import scope, tissue


def options(folder: Path, **changes: object) -> argparse.Namespace:
    defaults: dict[str, object] = {
        "histology": [folder / "h1", folder / "h2"],
        "endoscopy": [folder / "e1", folder / "e2"],
        "images": 5,
        "card": None,
    }
    return argparse.Namespace(**(defaults | changes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, draw in (("h1", tissue), ("h2/below", tissue), ("e1", scope), ("e2", scope)):
        (tmp_path / name).mkdir(parents=True)
        for number in range(2):
            picture = draw(100 + 20 * number, 160)
            Image.fromarray(picture).save(tmp_path / name / f"{number}.png")
    return tmp_path


def test_each_source_is_scored_by_a_model_of_the_others(folder: Path) -> None:
    card = folder / "card.md"
    card.write_text("<!-- figures: modality -->\n<!-- end figures -->\n")
    report = run(options(folder, card=card), no_progress)
    assert [row["images"] for row in report["sources"]] == [2, 2, 2, 2]
    assert [row["errors"] for row in report["sources"]] == [0, 0, 0, 0]
    assert [row["is_endoscopy"] for row in report["sources"]] == [False, False, True, True]
    assert report["weights"][0] > 0 and len(report["weights"]) == 3
    assert "| all |" in card.read_text()
    assert str(report["bias"]) in describe(report)


def test_one_source_of_a_modality_raises_an_error(folder: Path) -> None:
    with pytest.raises(BadInputError):
        run(options(folder, endoscopy=[folder / "e1"]), no_progress)


def test_a_folder_without_images_raises_an_error_with_its_name(folder: Path) -> None:
    (folder / "none").mkdir()
    with pytest.raises(BadInputError, match="none"):
        run(options(folder, endoscopy=[folder / "e1", folder / "none"]), no_progress)


def test_sources_have_equal_weight_at_any_size() -> None:
    rng = np.random.default_rng(0)
    few, many = rng.normal(-1, 1, (20, 1)), rng.normal(1, 1, (20, 1))
    single = fit_logistic(np.r_[few, many], np.repeat([False, True], 20), np.repeat([0.0, 1.0], 20))
    repeated = fit_logistic(
        np.r_[few, np.tile(many, (9, 1))],
        np.repeat([False, True], [20, 180]),
        np.repeat([0.0, 1.0], [20, 180]),
    )
    assert repeated == pytest.approx(single)
