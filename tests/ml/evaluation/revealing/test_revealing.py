"""Measuring what pixels reveal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.revealing import text as text_module
from ml.evaluation.revealing.command import person_figures, text_figures
from ml.evaluation.revealing.persons import OTHERS, measure_persons
from ml.evaluation.revealing.text import (
    CONTRASTS,
    HEIGHTS_PX,
    chosen_line,
    measure_text,
    with_line,
)
from ml.imaging.revealing.letters import text_boxes
from ml.types import no_progress
from tests.ml.imaging.revealing.support import tissue


def test_a_drawn_line_has_its_contrast_and_its_place() -> None:
    ground = np.full((300, 600, 3), 100, np.uint8)
    for seed in range(20):
        line = chosen_line(ground, 20, (60, 120), np.random.default_rng(seed))
        if line is not None:
            assert 58 <= abs(float(line[2].mean()) - 100) <= 121
    made = with_line(ground, 20, (100, 120), np.random.default_rng(2))
    assert made is not None
    assert any(box.overlap(made[1]) > 0.3 for box in text_boxes(made[0]))
    assert with_line(ground[:5, :5], 20, (60, 120), np.random.default_rng(0)) is None


def test_persons_are_measured_on_a_small_folder(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    stills = tmp_path / "endoscopy/laparoscopy-stills"
    stills.mkdir(parents=True)
    for frame in range(8):
        cv2.imwrite(str(stills / f"00001-1-frame-{frame}.jpg"), tissue(seed=frame)[..., ::-1])
    result = measure_persons(tmp_path, progress=no_progress)
    assert result["faces"]["without"] == {"pictures": 8, "flagged": 0}
    assert result["faces"]["small_portraits"]["flagged"] == 0
    first = result["outside"][0]
    assert (first["flagged"], "rocket" in first["found_of_put_in"]) == (0, True)
    assert f"{len(OTHERS)} pictures of other things" in person_figures(result)


def test_the_table_has_a_row_for_each_height() -> None:
    drawn = [
        {"height_px": height, "contrast": name, "lines": 4, "found": 3}
        for height in HEIGHTS_PX
        for name in CONTRASTS
    ]
    text: dict[str, Any] = {
        "drawn": drawn,
        "without_text": {"glas": {"pictures": 9, "flagged": 1}},
        "real": {"gi": {"pictures": 2, "flagged": 2}},
        "standing": [],
    }
    told = text_figures(text)
    assert told.count("3 of 4") == 15
    assert "flagged: 1 of 9 (glas 1 of 9)" in told


def test_a_folder_without_pictures_to_write_into_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=f"{tmp_path.name}: expected pictures without text"):
        measure_text(tmp_path, seed=1, progress=no_progress)


def test_pictures_that_no_line_fits_into_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_module, "_TRIES", 3)
    folder = tmp_path / "histology/stain"
    folder.mkdir(parents=True)
    cv2.imwrite(str(folder / "a.jpg"), np.full((5, 5, 3), 200, np.uint8))
    with pytest.raises(BadInputError, match="no line of 8 px fits into any of 1 pictures"):
        measure_text(tmp_path, seed=1, progress=no_progress)


def test_a_video_without_frames_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="fetoscopy: expected frames, found none"):
        text_module._standing(tmp_path, 1)
