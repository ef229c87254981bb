"""Camera motions of a calibrated sequence."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.training.common.run import TrainingRun
from ml.training.vit.command import train_vit
from ml.training.vit.pairs import draw_pair
from ml.training.vit.poses import PoseMotions, pose_motions
from tests.ml.training.vit.test_command import TINY, data, saved  # noqa: F401 - a fixture
from tests.ml.training.vit.test_pairs import still


@pytest.fixture
def sequence(data):  # noqa: F811
    """Three cameras a step of 0.5 apart that see points 4 away."""
    folder = data / "sequence"
    folder.mkdir(exist_ok=True)
    (folder / "visible_view_indexes").write_text("0\n1\n2\n")
    (folder / "camera_intrinsics_per_view").write_text("60\n60\n30\n20\n")
    lines = []
    for i in range(3):
        lines += [f"poses[{i}]:", f"  position:\n  x: {i * 0.5}\n  y: 0\n  z: 0"]
        lines += ["  orientation:\n  x: 0\n  y: 0\n  z: 0\n  w: 1"]
        cv2.imwrite(str(folder / f"{i:08d}.jpg"), np.full((40, 60, 3), 90, np.uint8))
    (folder / "motion.yaml").write_text("\n".join(lines))
    head = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nend_header\n"
    (folder / "structure.ply").write_text(head + "0.1 0.2 4\n-0.3 0.1 4\n")
    (folder / "view_indexes_per_point").write_text("-1\n0\n1\n-1\n1\n2\n")
    return folder


def test_shifts_are_in_units_of_the_depth(sequence):
    found = pose_motions(sequence)
    assert len(found.T_b_from_a) == 6 and found.focal == 1.0
    shifts = sorted(round(float(x), 6) for x in found.T_b_from_a[:, 0, 3])
    assert shifts == [-0.25, -0.125, -0.125, 0.125, 0.125, 0.25]
    assert np.array_equal(found.T_b_from_a[:, :3, :3], np.tile(np.eye(3), (6, 1, 1)))


def test_a_sequence_without_points_has_no_scale(sequence):
    (sequence / "structure.ply").unlink()
    with pytest.raises(BadInputError, match="expected frames that see scene points, found none"):
        pose_motions(sequence)


def test_a_crop_moves_by_the_shift_times_the_focal_length():
    matrix = np.eye(4)
    matrix[0, 3] = 0.05
    poses = PoseMotions(matrix[None], focal=1.0)
    flat = still((96, 96))
    pair = draw_pair(np.random.default_rng(0), flat, crop_px=48, relief=0.0, poses=poses)
    seen = pair.view.visible
    x = np.broadcast_to(np.arange(48), (48, 48))
    moved = pair.view.xy_t[:, :, 0] - x
    assert moved[seen].mean() == pytest.approx(0.05 * 96, abs=0.02)


def test_a_network_learns_by_the_motions_of_a_sequence(data, sequence, tmp_path):  # noqa: F811
    plain, posed = (
        dataclasses.replace(TINY, epochs=1, warmup_steps=0, poses=poses)
        for poses in ("", sequence.name)
    )
    for name, config in (("plain", plain), ("posed", posed)):
        train_vit(TrainingRun(config, tmp_path / name), data=data)
    one, other = (saved(tmp_path / name) for name in ("plain", "posed"))
    assert any(not np.array_equal(one[key], other[key]) for key in one)
