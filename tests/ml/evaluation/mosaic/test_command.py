"""Scores of a mosaic, by hand."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.evaluation.mosaic.command import add_arguments, run
from ml.evaluation.mosaic.targets import target_lines
from ml.evaluation.mosaic.truth import (
    placed_maps,
    read_reference,
    read_truth,
    reference_agreement,
    run_agreement,
    score_against_truth,
    view_points,
)
from ml.mosaic.result import FrameResult, MosaicResult
from ml.types import no_progress
from tests.ml.mosaic.conftest import mosaic_result, ncc_by_distance


def _shift(x: float) -> np.ndarray:
    return np.array([[1, 0, x], [0, 1, 0], [0, 0, 1.0]])


def _result(shifts: list[float]) -> MosaicResult:
    frames = tuple(FrameResult(i, i, _shift(x), "registered") for i, x in enumerate(shifts))
    return mosaic_result(*frames)


def test_corner_errors_equal_hand_worked_values() -> None:
    truth = {0: _shift(100), 1: _shift(110), 2: _shift(120)}
    score = score_against_truth(_result([5, 15, 28]), truth, size_px=(50, 50))
    assert score.n == 3
    np.testing.assert_allclose([score.mean_px, score.max_px, score.drift_px], [1, 3, 3])
    assert score.median_px == 0


def test_a_missing_anchor_raises_an_error() -> None:
    with pytest.raises(BadInputError, match="anchor frame 0"):
        score_against_truth(_result([0, 1]), {1: _shift(0)}, size_px=(9, 9))


def test_agreement_with_a_reference_equals_hand_worked_values() -> None:
    reference = {1: _shift(10), 2: _shift(12)}
    scores = reference_agreement(_result([0, 10, 20]), reference, size_px=(9, 9), distances=(1, 2))
    assert scores == {"1": 1.0, "2": 2.0}


def test_runs_in_different_planes_are_compared_by_their_motions() -> None:
    maps = placed_maps(_result([3.0 * i for i in range(21)]))
    other = placed_maps(_result([100 + 3.1 * i for i in range(21)]))
    scores = run_agreement(maps, other, np.array([[0.0, 0.0], [8.0, 8.0]]))
    assert (scores["1"], scores["5"], scores["20"]) == (0.1, 0.5, 2.0)
    assert np.isnan(scores["60"])
    view = np.zeros((9, 40), bool)
    view[2:7, :30] = True
    assert np.isnan(run_agreement(maps, other, np.array([[0.0, 0.0]]), inside=view)["5"])
    agreement = run_agreement(maps, other, view_points(view), inside=view)
    assert agreement["5"] == 0.5  # moved by 15 px, half of the points are still in the view
    assert np.isnan(agreement["20"])


def test_points_of_the_view_are_inside_its_mask() -> None:
    view = np.zeros((9, 9), bool)
    view[3:, 2] = True
    assert view_points(view).tolist() == [[2.0, y] for y in range(3, 9)]


def test_ncc_rewards_the_true_motion() -> None:
    rng = np.random.default_rng(0)
    scene = cv2.GaussianBlur(rng.integers(0, 255, (120, 300, 3), np.uint8), (0, 0), 3)
    frames = [np.ascontiguousarray(scene[:, 8 * i : 8 * i + 120]) for i in range(14)]
    right = _result([8.0 * i for i in range(14)])
    still = replace(
        right, frames=tuple(replace(f, H_mosaic_from_frame=_shift(0)) for f in right.frames)
    )
    assert ncc_by_distance(frames, right, distances=(1,))["1"] > 0.9
    assert ncc_by_distance(frames, still, distances=(1,))["1"] < 0.5


def test_a_damaged_truth_raises_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CorruptFileError, match="index"):
        read_truth(path)
    with pytest.raises(BadInputError, match=r"none\.csv"):
        read_truth(tmp_path / "none.csv")


def test_a_cell_that_is_no_number_raises_an_error_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    heads = ",".join(f"h{i}{j}" for i in range(3) for j in range(3))
    path.write_text(f"index,{heads}\n0,1,0,0,0,1,0,0,0,1\n1,1,0,x,0,1,0,0,0,1\n")
    with pytest.raises(CorruptFileError, match=r"truth\.csv, line 3: h02: .* number, got 'x'"):
        read_truth(path)
    path.write_text(f"index,{heads}\nfirst,1,0,0,0,1,0,0,0,1\n")
    with pytest.raises(CorruptFileError, match=r"truth\.csv, line 2: index: .* got 'first'"):
        read_truth(path)
    path.write_text(f"frame,{heads}\n0,1,0,0\n")
    with pytest.raises(CorruptFileError, match=r"truth\.csv, line 2: h10: .* got nothing"):
        read_reference(path, _result([0, 10]))
    path.write_text("index,h22\n0,1\n")
    with pytest.raises(CorruptFileError, match="h22"):
        read_truth(path)
    path.write_bytes(b"index,h22\n\xff,1\n")
    with pytest.raises(CorruptFileError, match=r"truth\.csv: not UTF-8"):
        read_truth(path)


def test_a_broken_archive_of_truths_raises_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "truth.npz").write_bytes(b"PK\x03\x04broken")
    with pytest.raises(CorruptFileError, match="H_retina_from_frame"):
        read_truth(tmp_path / "truth.npz")


def test_the_mask_of_a_folder_limits_the_scored_area(tmp_path: Path) -> None:
    folder = tmp_path / "set" / "frames"
    folder.mkdir(parents=True)
    scene = cv2.GaussianBlur(
        np.random.default_rng(1).integers(0, 255, (100, 260, 3), np.uint8), (0, 0), 2
    )
    for i in range(6):
        cv2.imwrite(str(folder / f"{i}.png"), scene[:, 6 * i : 6 * i + 100])
    cv2.imwrite(str(folder.parent / "mask.png"), np.full((40, 100), 255, np.uint8))
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(ShapeError, match="mask"):
        run(parser.parse_args([str(folder)]), no_progress)
    cv2.imwrite(str(folder / "mask.png"), np.full((100, 100), 255, np.uint8))
    scores = run(parser.parse_args([str(folder)]), no_progress)
    assert scores["frames"] == 6
    assert scores["ncc"]["tessera"]["1"] > 0.8


def test_each_target_is_reported_as_met_or_not_met_with_its_result() -> None:
    ncc = {"tessera": {"1": 0.7, "5": 0.5}, "SIFT pairs": {"1": 0.71, "5": 0.52, "20": None}}
    similar, apart = target_lines(ncc, {"1": 0.21, "5": 0.6, "60": float("nan")})
    assert "0.700 at 1, met with 0.700; 0.510 at 5, not met with 0.500" in similar
    assert apart.endswith("px: 0.200 at 1, not met with 0.210; 0.600 at 5, met with 0.600")
    assert target_lines({"tessera": {"1": 0.7}}, {}) == []
