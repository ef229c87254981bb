"""Scores of identifying text, faces and frames outside the body."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.phi.command import person_figures, text_figures
from ml.evaluation.phi.persons import OTHERS, measure_persons
from ml.evaluation.phi.text import WRITINGS, measure_text
from ml.evaluation.phi.writing import SIZE_PX, Writing, overlay
from ml.types import no_progress
from tests.ml.imaging.phi_detection.support import tissue


def test_a_line_is_drawn_with_the_requested_contrast() -> None:
    ground = np.full((300, 600, 3), 100, np.uint8)
    image = overlay(ground, "12/03/1961", Writing(24, (60, 70)), np.random.default_rng(1))
    assert image.shape == (*SIZE_PX[::-1], 3)
    assert 55 <= int(image.max()) - 100 <= 85
    assert abs(int(np.median(image)) - 100) <= 2


def test_each_case_counts_pictures_with_and_without_identifying_text(tmp_path: Path) -> None:
    folder = tmp_path / "histology/stain"
    folder.mkdir(parents=True)
    cv2.imwrite(str(folder / "a.jpg"), tissue())
    scores = measure_text(
        tmp_path, seed=1, lines=2, progress=no_progress, holds=lambda image: image.mean() > 200
    )
    rows = {row["case"]: row for row in scores["cases"]}
    assert len(rows) == len(WRITINGS) + 4
    label = rows["label of a slide"]
    assert (label["identifying"], label["identifying_held"], label["other_held"]) == (2, 2, 2)
    clean = rows["pictures without text"]
    assert (clean["identifying"], clean["other"], clean["other_held"]) == (0, 1, 0)
    assert "| label of a slide | 2 of 2 | 2 of 2 |" in text_figures(scores)


@pytest.mark.slow
def test_person_detection_is_measured_on_a_small_folder(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    stills = tmp_path / "endoscopy/laparoscopy-stills"
    stills.mkdir(parents=True)
    for frame in range(8):
        cv2.imwrite(str(stills / f"00001-1-frame-{frame}.jpg"), tissue(seed=frame)[..., ::-1])
    summary = measure_persons(tmp_path, progress=no_progress)
    assert summary["faces"]["without"] == {"pictures": 8, "flagged": 0}
    assert summary["faces"]["small_portraits"]["flagged"] == 0
    first = summary["outside"][0]
    assert (first["flagged"], "rocket" in first["found_of_put_in"]) == (0, True)
    assert f"{len(OTHERS)} pictures of other things" in person_figures(summary)


def test_a_folder_without_images_raises_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=f"{tmp_path.name}: expected pictures without text"):
        measure_text(tmp_path, seed=1, progress=no_progress)
