"""An outline carried along by key points."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.geometry import transform_points
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic.tracking import (
    Track,
    TrackedOutline,
    key_outlines,
    standard_error_px,
    track_outline,
)
from ml.types import ArrayF64, ImageU8, Transform

SIZE = (480, 360)
SQUARE = np.array([[190.0, 130], [290, 130], [290, 220], [190, 220]])


def _poses(count: int) -> list[ArrayF64]:
    """(3, 3) each, frame 0 to frame n: shift, turn and zoom, as a hand has them."""
    poses = []
    for at in range(count):
        turn, zoom = np.deg2rad(0.6 * at), 1 + 0.004 * at
        c, s = zoom * np.cos(turn), zoom * np.sin(turn)
        centre = np.array([240.0, 180])
        shift = centre + np.array([1.5, -0.8]) * at - np.array([[c, -s], [s, c]]) @ centre
        poses.append(np.array([[c, -s, shift[0]], [s, c, shift[1]], [0, 0, 1]]))
    return poses


def _frames(poses: list[ArrayF64]) -> list[ImageU8]:
    picture = packaged_image("retina.jpg")
    to_frame = np.array([[1.0, 0, -350], [0, 1, -350], [0, 0, 1]])
    return [
        np.asarray(cv2.warpPerspective(picture, pose @ to_frame, SIZE), np.uint8) for pose in poses
    ]


@pytest.mark.slow
def test_the_outline_follows_a_known_motion_within_its_stated_error() -> None:
    poses = _poses(12)
    track = track_outline(enumerate(_frames(poses)), SQUARE)
    assert (track.lost, len(track.outlines)) == ("", 12)
    off = [
        float(np.hypot(*(outline.xy - transform_points(poses[outline.index], SQUARE)).T).max())
        for outline in track.outlines
    ]
    assert max(off) < 1.5
    assert track.outlines[0].drift_px == 0
    assert all(0 < outline.drift_px < 2 for outline in track.outlines[1:])


@pytest.mark.slow
def test_tracking_stops_at_a_change_of_scene() -> None:
    frames = _frames(_poses(6))
    rng = np.random.default_rng(0)
    other = [rng.integers(0, 255, frames[0].shape, np.uint8) for _ in range(7)]
    track = track_outline(enumerate(frames + other), SQUARE)
    assert track.lost == "too few key points agree"
    assert [outline.index for outline in track.outlines] == list(range(6))


@pytest.mark.slow
def test_a_blurred_frame_is_skipped() -> None:
    frames = _frames(_poses(8))
    frames[4] = np.full_like(frames[4], 120)
    track = track_outline(enumerate(frames), SQUARE)
    assert track.lost == ""
    assert [outline.index for outline in track.outlines] == [0, 1, 2, 3, 5, 6, 7]


@pytest.mark.slow
def test_an_outline_that_leaves_the_picture_is_lost() -> None:
    poses = [np.array([[1.0, 0, -22.0 * at], [0, 1, 0], [0, 0, 1]]) for at in range(20)]
    track = track_outline(enumerate(_frames(poses)), SQUARE)
    assert track.lost == "it left the picture"
    assert track.outlines[-1].index == 10  # 220 of 190 + 50 px


def test_a_single_frame_has_only_its_outline() -> None:
    track = track_outline(enumerate(_frames(_poses(1))), SQUARE)
    assert (track.lost, len(track.outlines)) == ("", 1)


def test_interpolated_key_outlines_stay_within_the_tolerance() -> None:
    xy = [SQUARE + np.array([at**2 / 10, 3 * at]) for at in range(30)]
    track = Track(tuple(TrackedOutline(at, item, 0.1, 30) for at, item in enumerate(xy)), "")
    keys = list(key_outlines(track, 0.75))
    assert (keys[0].index, keys[-1].index) == (0, 29)
    assert len(keys) < 12
    places = [key.index for key in keys]
    for item in track.outlines:
        for vertex in range(4):
            for axis in range(2):
                between = np.interp(item.index, places, [key.xy[vertex, axis] for key in keys])
                assert abs(between - item.xy[vertex, axis]) <= 0.75


def test_the_standard_error_equals_that_of_repeated_measurements() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 200, (40, 2))
    at = np.array([[10.0, 10], [300, 100]])
    design = np.column_stack([a, np.ones(40)])
    points = np.column_stack([at, np.ones(2)])
    fits, errors_px = [], []
    for _ in range(400):
        b = a + rng.normal(0, 1.0, a.shape)
        matrix = np.linalg.lstsq(design, b, rcond=None)[0]
        fits.append(points @ matrix)
        affine = np.eye(3)
        affine[:2] = matrix.T
        errors_px.append(standard_error_px(a, b, Transform(affine, np.ones(40, np.bool_)), at))
    spread = np.sqrt(((np.array(fits) - at) ** 2).sum(-1).mean())
    assert np.mean(errors_px) == pytest.approx(spread, rel=0.08)
