"""The demo video: exact truth, the same every time."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ml.imaging.samples.packaged import packaged_image
from ml.imaging.samples.video import make_sample_video
from ml.imaging.videos.video import iter_frames, probe_video
from ml.types import ArrayF32, ImageU8


def _detail(rgb: ImageU8) -> ArrayF32:
    """Green without light's slow changes, spots clipped."""
    green = cv2.GaussianBlur(rgb[..., 1].astype(np.float32), (0, 0), 1.5)
    return np.clip(green - cv2.GaussianBlur(green, (0, 0), 8), -12, 12)


def test_the_videos_truth_maps_frames_onto_the_retina(tmp_path: Path) -> None:
    made = make_sample_video(
        tmp_path / "v.mp4", frames=12, size_px=240, truth_path=tmp_path / "truth.npz"
    )
    assert probe_video(made.path).browser_playable
    assert made.H_retina_from_frame.shape == (12, 3, 3)
    retina = packaged_image("retina.jpg")
    inside = cv2.erode(made.mask, np.ones((31, 31), np.uint8)) > 0
    for index, _, rgb in iter_frames(made.path):
        if made.blurred[index]:
            continue
        H = made.H_retina_from_frame[index]
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        shifted = H @ np.array([[1, 0, 10], [0, 1, 10], [0, 0, 1.0]])
        likeness = []
        for guess in (H, shifted):
            seen = cv2.warpPerspective(retina, guess, (240, 240), flags=flags)
            pair = _detail(seen)[inside], _detail(rgb)[inside]
            likeness.append(np.corrcoef(*pair)[0, 1])
        assert likeness[0] > 0.4
        assert likeness[0] > likeness[1] + 0.2
    stored = np.load(tmp_path / "truth.npz")
    assert np.array_equal(stored["H_retina_from_frame"], made.H_retina_from_frame)


def test_neighbouring_frames_of_the_sweep_overlap(tmp_path: Path) -> None:
    made = make_sample_video(tmp_path / "v.mp4", frames=100, size_px=64)
    assert 3 <= made.blurred.sum() <= 8
    centre = np.array([31.5, 31.5, 1])
    at = made.H_retina_from_frame @ centre
    at = at[:, :2] / at[:, 2:]
    steps = np.linalg.norm(np.diff(np.vstack([at, at[:1]]), axis=0), axis=1)
    assert steps.max() < 45  # closed: the last frame is near the first


def test_the_same_seed_gives_the_same_video(tmp_path: Path) -> None:
    a = make_sample_video(tmp_path / "a.mp4", frames=6, size_px=96)
    b = make_sample_video(tmp_path / "b.mp4", frames=6, size_px=96)
    assert a.path.read_bytes() == b.path.read_bytes()
