"""Refinement and completion of matches by alignment."""

from __future__ import annotations

import cv2
import numpy as np

from ml.geometry import transform_points
from ml.keypoints.verification.completion import (
    complete_matches,
    far_from,
    refine_matches,
    smooth_pair,
)
from ml.keypoints.verification.two_view_model import TwoViewModel, find_two_view_model
from ml.keypoints.views import WorkingView, working_view
from ml.types import Matches


def _pair(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> tuple[WorkingView, WorkingView, TwoViewModel, np.ndarray, np.ndarray]:
    warped, truth = warped_vessels
    xy = np.random.default_rng(0).uniform((90, 90), (390, 270), (200, 2)).astype("f4")
    to = transform_points(truth, xy).astype("f4")
    mask = np.full(vessels.shape[:2], 255, np.uint8)
    views = working_view(vessels, mask=mask), working_view(warped, mask=mask)
    offset_a, offset_b = views[0].offset_px, views[1].offset_px
    return (*views, find_two_view_model(xy - offset_a, to - offset_b), xy - offset_a, to - offset_b)


def test_points_are_found_at_their_positions(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    a, b, model, xy, to = _pair(vessels, warped_vessels)
    completed = complete_matches(smooth_pair(a, b), xy, model)
    assert len(completed) > 50
    truth = {tuple(p): q for p, q in zip(xy.tolist(), to, strict=True)}
    error = [
        np.hypot(*(truth[tuple(p)] - q))
        for p, q in zip(completed.xy_a.tolist(), completed.xy_b, strict=True)
    ]
    assert np.quantile(error, 0.95) < 0.5
    assert ((completed.score >= 0) & (completed.score <= 0.5)).all()


def test_points_outside_b_are_not_found(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    a, b, model, xy, _ = _pair(vessels, warped_vessels)
    noise = np.random.default_rng(1).integers(0, 255, b.image.shape, np.uint8)
    other = working_view(cv2.GaussianBlur(noise, (0, 0), 3), mask=b.mask.astype(np.uint8) * 255)
    assert len(complete_matches(smooth_pair(a, other), xy, model)) <= 2


def test_approximate_positions_are_refined(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    a, b, model, xy, to = _pair(vessels, warped_vessels)
    rough = to + np.random.default_rng(2).normal(0, 0.8, to.shape).astype("f4")
    rough_matches = Matches(xy, rough, np.full(len(xy), 0.6, np.float32))
    matches = refine_matches(smooth_pair(a, b), rough_matches, model)
    before, after = (np.median(np.hypot(*(m.xy_b - to).T)) for m in (rough_matches, matches))
    assert after < 0.4 * before
    assert ((matches.score >= 0.3) & (matches.score <= 0.8)).all()
    np.testing.assert_array_equal(matches.xy_a, rough_matches.xy_a)


def test_a_poor_alignment_retains_its_position_and_lowers_its_score(
    vessels: np.ndarray, warped_vessels: tuple[np.ndarray, np.ndarray]
) -> None:
    a, b, model, xy, to = _pair(vessels, warped_vessels)
    wrong = to + np.float32(40.0)
    rough_matches = Matches(xy, wrong, np.full(len(xy), 0.9, np.float32))
    matches = refine_matches(smooth_pair(a, b), rough_matches, model)
    is_unchanged = (matches.xy_b == wrong).all(axis=1)
    assert is_unchanged.sum() > 100
    assert (matches.score[is_unchanged] >= 0.45).all()
    assert np.median(matches.score[is_unchanged]) < 0.8


def test_points_near_others_are_excluded() -> None:
    xy = np.array([[0, 0], [10, 0], [20, 0]], np.float32)
    others = np.array([[10, 1.5]], np.float32)
    assert far_from(xy, others, distance_px=2.0).tolist() == [True, False, True]
    assert far_from(xy, others[:0], distance_px=2.0).all()
    assert far_from(xy[:0], others, distance_px=2.0).shape == (0,)
