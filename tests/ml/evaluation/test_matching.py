"""The papers' protocol on real vessels, and its pieces by hand."""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.matching import FAMILIES, add_arguments, best_threshold, make_pairs, run
from ml.imaging.samples import packaged_image
from ml.types import no_progress


def test_pairs_cover_every_family_with_true_maps() -> None:
    image = np.ascontiguousarray(packaged_image("retina.jpg")[400:600, 400:640])
    pairs = list(make_pairs(image, 1))
    assert {pair.family for pair in pairs} == set(FAMILIES)
    for pair in pairs:
        again = cv2.warpPerspective(image, pair.H_b_from_a, (240, 200))
        inner = (slice(60, 140), slice(60, 180))
        assert np.abs(again[inner].astype(float) - pair.b[inner]).mean() < 8


def test_the_best_threshold_by_hand() -> None:
    distance = np.array([0.1, 0.2, 0.3, 0.9], np.float32)
    right = np.array([True, True, True, False])
    threshold = best_threshold(distance, right)
    assert 0.3 < threshold < 0.31
    assert best_threshold(np.zeros(0), np.zeros(0, bool)) == 0.0


def _args(folder: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([str(folder), *more])


def test_a_run_scores_each_family(tmp_path: Path) -> None:
    vessels = cv2.resize(packaged_image("retina.jpg"), (240, 240), interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(tmp_path / "a.png"), vessels[:, :, ::-1])
    result = run(_args(tmp_path, "--descriptors", "orb", "--keypoints", "100"), no_progress)
    assert result["images"] == 1
    scores = result["scores"]["orb"]
    for family in (*FAMILIES, "all"):
        assert set(scores[family]) >= {"nn_precision", "nnt_precision", "nnt_score"}
        assert 0 <= scores[family]["nnt_score"] <= scores[family]["nn_precision"] <= 1
    assert scores["translation"]["nn_precision"] > 0.7


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="found no image"):
        run(_args(tmp_path), no_progress)
