"""``evaluate matching`` end to end on parts of a retina."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, UnknownNameError
from ml.evaluation.matching.command import add_arguments, describe, run
from ml.imaging.samples.packaged import packaged_image
from ml.types import no_progress


def _vessels(number: int) -> np.ndarray:
    """(200, 240, 3) RGB: a part of the packaged retina, another one for each number."""
    x = 300 + 260 * number
    return np.ascontiguousarray(packaged_image("retina.jpg")[400:600, x : x + 240])


def _args(*words: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([str(word) for word in words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        cv2.imwrite(str(tmp_path / f"scene{i}-still.png"), _vessels(i)[:, :, ::-1])
    return tmp_path


@pytest.mark.slow
def test_a_run_scores_every_protocol(folder: Path) -> None:
    words = ["--descriptors", "orb,akaze", "nonsense", "--per-family", 1, "--images", 3]
    words += ["--families", "translation", "rotation", "viewpoint"]
    report = run(
        _args(
            folder,
            *words,
            "--max-keypoints",
            80,
            "--hard-keypoints",
            150,
            "--pairs",
            2,
            "--plots",
            folder / "plots",
            "--pictures",
            folder / "pictures",
        ),
        no_progress,
    )
    assert all((folder / "plots" / name).stat().st_size > 5000 for name in report["plots"])
    assert len(report["plots"]) == 1
    assert len(list((folder / "pictures").iterdir())) == len(report["pictures"]) == 12
    assert report["data"]["images"] == report["data"]["scenes"] == 3
    assert report["data"]["core_pairs"] == 9
    assert "unknown descriptor" in report["skipped"]["nonsense"]
    papers = report["papers"]["akaze"]["families"]
    assert papers["translation"]["nn_precision"] > 0.5
    for row in papers.values():
        assert 0 <= row["nnt_score"] <= row["nn_score"] <= 1
        assert row["exact"] <= row["nn_score"]
    assert report["hard"]["akaze"]["families"]["translation"]["precision"] > 0.95
    assert report["unrelated"]["akaze"]["unrelated"]["pairs"] == 2
    assert report["unrelated"]["akaze"]["unrelated"]["matches"] == 0
    assert set(report["carried"]) == {"orb (best form)", "akaze (best form)"}
    text = describe(report)
    assert "The papers' protocol" in text
    assert "Not scored: nonsense" in text


def test_the_card_is_written_between_its_markers(folder: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.md"
    card.write_text("before\n<!-- figures: matching -->\nold\n<!-- end figures -->\nafter\n")
    words = ["--descriptors", "orb", "--protocols", "papers", "--families", "translation"]
    run(_args(folder, *words, "--images", 1, "--card", card), no_progress)
    text = card.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| orb |" in text
    assert "\nold\n" not in text


def test_bad_options_raise_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown family 'wobble'"):
        run(_args(folder, "--families", "wobble"), no_progress)
    with pytest.raises(UnknownNameError, match="unknown protocol"):
        run(_args(folder, "--protocols", "easy"), no_progress)
    with pytest.raises(BadInputError, match="nonsense"):
        run(_args(folder, "--descriptors", "nonsense"), no_progress)
    with pytest.raises(BadInputError, match="target"):
        run(_args(folder, "--target", "2"), no_progress)
    with pytest.raises(BadInputError, match=r"max_keypoints: .*0"):
        run(_args(folder, "--max-keypoints", 0), no_progress)
    with pytest.raises(BadInputError, match=r"pair_images: .*0"):
        run(_args(folder, "--pair-images", 0), no_progress)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BadInputError, match="no image"):
        run(_args(empty), no_progress)
