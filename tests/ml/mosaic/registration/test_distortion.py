"""A known distortion is found and taken off; where there is none, nothing is."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.evaluation.mosaic.truth import score_against_truth
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct.alignment import DirectView
from ml.mosaic.frames.sources import ArraySource
from ml.mosaic.frames.undistort import UndistortedSource
from ml.mosaic.manifest import read_manifest
from ml.mosaic.registration.distortion import estimate_distortion, proven_k1, undistorted_view
from ml.types import no_progress

SIDE_PX = 200
MIDDLE = (SIDE_PX - 1) / 2


def distorted_sweep(k1: float, count: int) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    """A camera of focal length 100 px over real vessels, and H_scene_from_corrected_frame."""
    scene = cv2.resize(packaged_image("retina.jpg"), None, fx=0.5, fy=0.5, interpolation=3)
    camera = np.array([[SIDE_PX / 2, 0, MIDDLE], [0, SIDE_PX / 2, MIDDLE], [0, 0, 1.0]])
    y, x = np.mgrid[:SIDE_PX, :SIDE_PX].astype(np.float64)
    shown = np.stack([x.ravel(), y.ravel()], axis=1)[:, None]
    criteria = (cv2.TERM_CRITERIA_COUNT, 100, 1e-9)
    terms = np.array([k1, 0, 0, 0])
    straight = cv2.undistortPointsIter(shown, camera, terms, None, camera, criteria)[:, 0]
    disc = (np.hypot(x - MIDDLE, y - MIDDLE) < 0.48 * SIDE_PX)[..., None]
    rng, frames, truth = np.random.default_rng(0), [], {}
    for i in range(count):
        c, s = np.cos(0.01 * i), np.sin(0.01 * i)
        at = (360 + 150 * np.cos(0.04 * i), 350 + 150 * np.sin(0.04 * i))
        middle = np.array([[1, 0, -MIDDLE], [0, 1, -MIDDLE], [0, 0, 1.0]])
        truth[i] = np.array([[c, -s, at[0]], [s, c, at[1]], [0, 0, 1]]) @ middle
        spots = (straight @ truth[i][:2, :2].T + truth[i][:2, 2]).astype(np.float32)
        seen = cv2.remap(scene, *spots.T.reshape(2, SIDE_PX, SIDE_PX), cv2.INTER_CUBIC)
        noisy = (seen + rng.normal(0, 1.5, seen.shape)) * disc
        frames.append(np.clip(noisy, 0, 255).astype(np.uint8))
    return frames, truth


def _estimated(frames: list[np.ndarray]) -> tuple[float, ...]:
    source = ArraySource(frames, 1)
    return estimate_distortion(source, config=MosaicConfig(), mask=None, progress=no_progress)


@pytest.mark.slow
@pytest.mark.parametrize("k1", [-0.2, 0.12])
def test_a_known_coefficient_is_found(k1: float) -> None:
    frames, _ = distorted_sweep(k1, 75)
    focal, _, cx, _, result, *rest = _estimated(frames)
    assert (focal, cx, rest) == (SIDE_PX / 2, MIDDLE, [0, 0, 0])
    assert result == pytest.approx(k1, abs=0.03)


@pytest.mark.slow
def test_frames_without_distortion_are_not_changed() -> None:
    assert _estimated(distorted_sweep(0.0, 75)[0]) == ()
    assert _estimated(distorted_sweep(-0.2, 12)[0]) == (), "too little to go by"
    assert proven_k1([], []) is None


@pytest.mark.endurance
def test_correcting_distortion_reduces_the_error(tmp_path: Path) -> None:
    frames, truth = distorted_sweep(-0.2, 60)
    errors = []
    for estimates in (False, True):
        config = MosaicConfig(
            estimate_distortion=estimates, motion_model="similarity", local_fit=False
        )
        mosaic = build_mosaic(frames, tmp_path / str(estimates), config=config)
        assert bool(mosaic.distortion) == estimates
        assert read_manifest(mosaic.manifest.parent).distortion == mosaic.distortion
        assert mosaic.registered_count == 60
        errors.append(score_against_truth(mosaic, truth, size_px=(SIDE_PX, SIDE_PX)).mean_px)
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 1.5


def test_a_view_is_corrected_as_its_frame_is() -> None:
    image = cv2.GaussianBlur(np.random.default_rng(0).random((80, 100), np.float32), (0, 0), 3)
    own = undistorted_view(DirectView((image,), (image > 0,)), -0.3)
    distortion = (50.0, 50.0, 49.5, 39.5, -0.3, 0.0, 0.0, 0.0)
    rgb = np.repeat((image * 255).astype(np.uint8)[..., None], 3, axis=2)
    (frame,) = UndistortedSource(ArraySource([rgb], 1), distortion).frames()
    assert frame.rgb is not None
    inside = (slice(15, 65), slice(15, 85))
    np.testing.assert_allclose(own.images[0][inside] * 255, frame.rgb[..., 0][inside], atol=2)


def test_a_given_mask_is_corrected_with_the_frames() -> None:
    mask = np.zeros((100, 100), np.uint8)
    mask[10:90, 10:90] = 255
    source = UndistortedSource(ArraySource([mask], 1), (50.0, 50.0, 49.5, 49.5, 0.3, 0.0, 0.0, 0.0))
    corrected = source.undistorted_mask(mask)
    assert corrected.dtype == np.uint8
    # by hand: 40 px off the middle is 0.8, and 0.8 = r (1 + 0.3 r^2) at r = 0.6969, 34.8 px
    assert corrected[50, 16] == 255
    assert corrected[50, 13] == 0
