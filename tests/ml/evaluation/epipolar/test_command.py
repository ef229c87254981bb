"""Epipolar scores: geometry by hand, the layout of the sequence, bad input."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError
from ml.evaluation.epipolar.command import add_arguments, describe, run
from ml.evaluation.epipolar.dense import RULES, inside_mask
from ml.evaluation.epipolar.scores import (
    EpipolarScore,
    epipolar_rates,
    gap_pairs,
    inlier_share,
    pose_error_deg,
    summary,
    t_test,
)
from ml.imaging.samples.packaged import packaged_image
from ml.keypoints import match_images
from ml.keypoints.verification.estimation import symmetric_epipolar_px
from ml.training.common.sequence import (
    CalibratedSequence,
    fundamental_from_poses,
    read_sequence,
)
from ml.types import Matches, no_progress

CAMERA = np.array([[500, 0, 320], [0, 500, 240], [0, 0, 1.0]])
INDEXES = (10, 11, 12)


def _pose(x: float = 0.0, angle: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    c, s = np.cos(angle), np.sin(angle)
    pose[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
    pose[:3, 3] = (x, -0.1 * x, 0.2 * x)
    return pose


def _matches(a: np.ndarray, b: np.ndarray) -> Matches:
    return Matches(a.astype(np.float32), b.astype(np.float32), np.ones(len(a), np.float32))


def _scene() -> CalibratedSequence:
    rng = np.random.default_rng(0)
    points = np.c_[rng.uniform(-1, 1, (60, 2)), rng.uniform(3, 5, 60)]
    seen = np.array([(p, f) for p in range(60) for f in (0, 1)])
    poses = np.stack([_pose(), _pose(0.3, 0.1)])
    return CalibratedSequence("scene", (Path("a"), Path("b")), CAMERA, poses, None, points, seen)


def test_projections_of_a_point_are_on_their_epipolar_lines() -> None:
    scene = _scene()
    views = [scene.project(np.arange(60), frame) for frame in (0, 1)]
    truth = scene.fundamental(0, 1)
    assert symmetric_epipolar_px(truth, *views).max() < 1e-6
    off = views[1] + [0, 5]
    assert symmetric_epipolar_px(truth, views[0], off).min() > 1


def test_a_sideways_camera_has_level_epipolar_lines() -> None:
    """Eq. 16 by hand: y differs by 3 px, both lines are level, so the sum is 6 and its half 3."""
    truth = fundamental_from_poses(CAMERA, np.eye(4), _pose_sideways())
    a = np.array([[100.0, 50], [200, 80]])
    b = np.array([[80.0, 53], [207, 80.5]])
    np.testing.assert_allclose(symmetric_epipolar_px(truth, a, b), [6, 1], atol=1e-9)
    rates = epipolar_rates(truth, _matches(a, b))
    assert rates == pytest.approx((3.5, 0.5, 0.5, 0.0), abs=1e-5)
    assert np.isnan(epipolar_rates(truth, _matches(a[:0], b[:0]))).all()


def _pose_sideways() -> np.ndarray:
    pose = np.eye(4)
    pose[0, 3] = 1.0
    return pose


def test_one_camera_position_has_no_epipolar_geometry() -> None:
    with pytest.raises(BadInputError, match="two"):
        fundamental_from_poses(CAMERA, np.eye(4), np.eye(4))


def test_exact_matches_give_the_pose_and_all_inliers() -> None:
    scene = _scene()
    exact = _matches(*(scene.project(np.arange(60), frame) for frame in (0, 1)))
    assert pose_error_deg(scene, 0, 1, exact) < 0.1
    assert inlier_share(exact) == 1.0
    assert pose_error_deg(scene, 0, 1, exact, method="magsac") < 0.1
    few = _matches(exact.xy_a[:4], exact.xy_b[:4])
    assert pose_error_deg(scene, 0, 1, few) == 180.0
    assert inlier_share(few) == 0.0
    assert np.isnan(inlier_share(_matches(exact.xy_a[:0], exact.xy_b[:0])))


def test_inliers_are_the_share_of_consistent_matches() -> None:
    """Eq. 19: of 80 matches 60 are exact and 20 far off."""
    scene = _scene()
    a, b = (scene.project(np.arange(60), frame) for frame in (0, 1))
    rng = np.random.default_rng(1)
    a, b = np.r_[a, rng.uniform(0, 400, (20, 2))], np.r_[b, rng.uniform(0, 400, (20, 2))]
    assert inlier_share(_matches(a, b)) == pytest.approx(0.75, abs=0.05)


def _score(first: int, matches: int, error: float) -> EpipolarScore:
    n = float("nan")
    values = (error, 0.5, 0.9, 0.2, 0.1, 1.0, 9, error, 0.1, 0.2) if matches else (n,) * 10
    poses = (5.0, 2.5) if matches else (180.0, 180.0)
    return EpipolarScore(3, first, matches, *values, *poses)  # type: ignore[arg-type]


def test_pairs_without_matches_only_count_as_not_found() -> None:
    table = summary([_score(0, 100, 2.0), _score(1, 50, 4.0), _score(2, 0, 0.0)])
    assert table["partner_found"] == pytest.approx(2 / 3, abs=1e-4)
    assert (table["epipolar_px"], table["epipolar_px_sd"]) == (3.0, 1.0)
    assert table["matches"] == 50
    # recall rises to 1/3 at 5 degrees, jumps to 2/3 there and stays: (5 / 6 + 10 / 3) / 10
    assert table["auc_10deg"] == pytest.approx(0.4167, abs=1e-4)
    # the same at 2.5 degrees: (2.5 / 6 + 7.5 * 2 / 3) / 10
    assert table["magsac_auc_10deg"] == pytest.approx(0.5417, abs=1e-4)


def test_the_t_test_compares_pairs_that_both_matched() -> None:
    ours = [_score(i, 10, 1.0 + 0.1 * i) for i in range(6)]
    worse = [_score(i, 10, 5.0 + 0.3 * i) for i in range(6)]
    assert t_test(ours, worse) < 0.001
    assert t_test(ours, ours) == 1.0
    assert np.isnan(t_test(ours[:2], worse[:2]))


def test_gaps_beyond_the_sequence_raise_an_error() -> None:
    scene = _scene()
    assert gap_pairs(scene, 1, 5) == [(0, 1)]
    with pytest.raises(BadInputError, match=r"gap 2: .*2 frames"):
        gap_pairs(scene, 2, 5)


def _write(folder: Path, poses: int = len(INDEXES)) -> Path:
    (folder / "visible_view_indexes").write_text("".join(f"{i}\n" for i in INDEXES))
    (folder / "camera_intrinsics_per_view").write_text("500\n500\n320\n240\n")
    lines = []
    for i in range(poses):
        lines += [f"poses[{i}]:", f"  position:\n  x: {i}\n  y: 0.5\n  z: 0"]
        lines += ["  orientation:\n  x: 0\n  y: 0\n  z: 0\n  w: 1"]
    (folder / "motion.yaml").write_text("header:\n  seq: 0\n" + "\n".join(lines))
    return folder


def _with_points(folder: Path) -> Path:
    rows = "0.1 0.2 50\n-0.3 0.1 50\n"
    head = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nend_header\n"
    (folder / "structure.ply").write_text(head + rows)
    (folder / "view_indexes_per_point").write_text("-1\n10\n11\n-1\n11\n12\n99\n")
    return folder


def test_the_folder_layout_is_read(tmp_path: Path) -> None:
    sequence = read_sequence(_with_points(_write(tmp_path)))
    assert [p.name for p in sequence.frames] == ["00000010.jpg", "00000011.jpg", "00000012.jpg"]
    np.testing.assert_allclose(sequence.camera, CAMERA)
    np.testing.assert_allclose(sequence.world_from_camera[1][:3, 3], [1, 0.5, 0])
    assert sequence.mask is None
    np.testing.assert_allclose(sequence.points[1], [-0.3, 0.1, 50])
    assert sequence.seen.tolist() == [[0, 0], [0, 1], [1, 1], [1, 2]]


def test_missing_or_short_files_raise_an_error_with_their_name(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="visible_view_indexes"):
        read_sequence(tmp_path)
    _write(tmp_path, 1)
    with pytest.raises(CorruptFileError, match="3 views"):
        read_sequence(tmp_path)
    _with_points(_write(tmp_path))
    (tmp_path / "view_indexes_per_point").write_text("-1\n10\n")
    with pytest.raises(CorruptFileError, match="2 points"):
        read_sequence(tmp_path)
    with pytest.raises(BadInputError, match=r"00000010\.jpg"):
        read_sequence(_with_points(_write(tmp_path))).read(0)


def _film(folder: Path) -> Path:
    """A camera that slides along a wall: every frame is shifted by 10 px, as the poses say."""
    _write(folder)
    wall = packaged_image("retina.jpg")[300:780, 200:900]
    for i, index in enumerate(INDEXES):
        frame = np.ascontiguousarray(wall[:, 10 * i : 10 * i + 640])
        cv2.imwrite(str(folder / f"{index:08d}.jpg"), frame[:, :, ::-1])
    rng = np.random.default_rng(0)  # on the wall, 50 in front of the cameras: 500 / 50 = 10 px
    points = np.c_[rng.uniform(-15, 15, 40), rng.uniform(-15, 15, 40) + 0.5, np.full(40, 50.0)]
    head = "ply\nelement vertex 40\nend_header\n"
    rows = "\n".join(" ".join(f"{v:.6f}" for v in point) for point in points)
    (folder / "structure.ply").write_text(head + rows)
    views = "".join("-1\n" + "".join(f"{i}\n" for i in INDEXES) for _ in range(40))
    (folder / "view_indexes_per_point").write_text(views)
    return folder


def _args(*words: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([str(word) for word in words])


@pytest.mark.slow
def test_a_translating_camera_is_scored_correctly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = []

    def quick(a: np.ndarray, b: np.ndarray, *, descriptor: object, config: object) -> Matches:
        rules.append(config)
        return match_images(a, b, "akaze", max_keypoints=200)

    monkeypatch.setattr("ml.evaluation.epipolar.dense.match_dense", quick)
    film, page = _film(tmp_path), tmp_path / "page.md"
    words = ["--descriptors", "orb", "--gaps", "1", "2", "--max-keypoints", 300, "--pairs", 1]
    words += ["--plots", tmp_path / "out", "--pictures", tmp_path / "out"]
    page.write_text("<!-- figures: poses -->\n<!-- end figures -->\n")
    report = run(_args(film, *words, "--dense", "--page", page), no_progress)
    assert "| method | epipolar error at gap 2, px |" in page.read_text()
    assert all(page.read_text().count(f"| {name} |") == 1 for name in RULES)
    assert rules == [rule for rule in RULES.values() for _ in range(2)]
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"epipolar-by-gap.png", "gap-1-orb.jpg", "gap-2-orb.jpg"}
    score = report["scores"]["orb"]["all"]
    assert score["partner_found"] == 1.0
    assert score["epipolar_px"] < 1.0
    assert score["under_1px"] > 0.9
    dense = report["scores"]["vit (dense)"]["1"]
    assert dense["matches"] == dense["raw_matches"] > 50
    assert dense["under_3px"] > 0.9
    assert "p against orb" in describe(report)


def test_options_out_of_range_raise_an_error(tmp_path: Path) -> None:
    film = _film(tmp_path)
    with pytest.raises(BadInputError, match=r"gaps: .*one"):
        run(_args(film, "--gaps", "one"), no_progress)
    with pytest.raises(BadInputError, match=r"pairs: .*0"):
        run(_args(film, "--pairs", 0), no_progress)


@pytest.mark.endurance
@pytest.mark.slow
def test_matches_of_neighbouring_frames_agree_with_the_poses(tessera_data: Path) -> None:
    folder = tessera_data / "endoscopy/sinus-4584"
    args = _args(folder, "--descriptors", "akaze", "--gaps", 1, "--pairs", 2)
    scores = run(args, no_progress)["scores"]["akaze"]["1"]
    assert scores["matches"] > 100
    assert scores["under_3px"] > 0.8


def test_matches_outside_of_the_mask_are_left_out() -> None:
    matches = _matches(np.array([[1, 1], [5, 1], [1, 5]]), np.array([[1, 1], [1, 1], [7, 7]]))
    mask = np.zeros((9, 9), bool)
    mask[:6, :3] = True
    assert inside_mask(matches, mask).xy_a.tolist() == [[1, 1]]
    assert len(inside_mask(matches, None)) == 3
