"""Epipolar scores: geometry by hand, the layout of the sequence, honest refusals."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError
from ml.evaluation.epipolar import (
    add_arguments,
    fundamental_from_poses,
    pose_auc,
    read_sequence,
    run,
)
from ml.keypoints import symmetric_epipolar_px
from ml.types import no_progress

CAMERA = np.array([[500, 0, 320], [0, 500, 240], [0, 0, 1.0]])


def test_projections_of_one_point_lie_on_each_others_lines() -> None:
    rng = np.random.default_rng(0)
    scene = np.c_[rng.uniform(-1, 1, (30, 2)), rng.uniform(3, 5, 30), np.ones(30)]
    pose_a, pose_b = np.eye(4), np.eye(4)
    c, s = np.cos(0.1), np.sin(0.1)
    pose_b[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
    pose_b[:3, 3] = (0.3, -0.1, 0.2)
    views = []
    for pose in (pose_a, pose_b):
        seen = (np.linalg.inv(pose) @ scene.T)[:3].T @ CAMERA.T
        views.append(seen[:, :2] / seen[:, 2:])
    fundamental = fundamental_from_poses(CAMERA, pose_a, pose_b)
    assert symmetric_epipolar_px(fundamental, *views).max() < 1e-6
    off = views[1] + [0, 5]
    assert symmetric_epipolar_px(fundamental, views[0], off).min() > 1


def test_one_camera_position_has_no_epipolar_geometry() -> None:
    with pytest.raises(BadInputError, match="two camera positions apart"):
        fundamental_from_poses(CAMERA, np.eye(4), np.eye(4))


def test_auc_by_hand() -> None:
    assert pose_auc([0.0, 0.0], 10) == pytest.approx(1.0)
    assert pose_auc([90.0, 90.0], 10) == 0.0
    # recall rises linearly to 1/2 at 5 degrees and stays: 0.5 * 5 / 2 + 0.5 * 5
    assert pose_auc([5.0, 90.0], 10) == pytest.approx(0.375)


def _write(folder: Path, poses: int) -> None:
    (folder / "visible_view_indexes").write_text("10\n11\n")
    (folder / "camera_intrinsics_per_view").write_text("500\n500\n320\n240\n")
    lines = []
    for i in range(poses):
        lines += [f"poses[{i}]:", f"  position:\n  x: {i}\n  y: 0.5\n  z: 0"]
        lines += ["  orientation:\n  x: 0\n  y: 0\n  z: 0\n  w: 1"]
    (folder / "motion.yaml").write_text("header:\n  seq: 0\n" + "\n".join(lines))


def test_the_layout_is_read(tmp_path: Path) -> None:
    _write(tmp_path, 2)
    sequence = read_sequence(tmp_path)
    assert [p.name for p in sequence.frames] == ["00000010.jpg", "00000011.jpg"]
    np.testing.assert_allclose(sequence.camera, CAMERA)
    np.testing.assert_allclose(sequence.world_from_camera[1][:3, 3], [1, 0.5, 0])
    assert sequence.mask is None


def test_missing_or_short_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="visible_view_indexes"):
        read_sequence(tmp_path)
    _write(tmp_path, 1)
    with pytest.raises(CorruptFileError, match="a pose for each of 2 views"):
        read_sequence(tmp_path)


@pytest.mark.slow
def test_neighbouring_frames_obey_the_poses(tessera_data: Path) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    folder = str(tessera_data / "endoscopy/sinus-4584")
    args = parser.parse_args([folder, "--descriptors", "akaze", "--gaps", "1", "--pairs", "2"])
    scores = run(args, no_progress)["scores"]["akaze"]["1"]
    assert scores["matches"] > 100
    assert scores["under_3px"] > 0.8
