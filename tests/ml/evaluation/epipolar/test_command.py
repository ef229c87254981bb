"""Epipolar scores: geometry by hand, the layout of the sequence, honest refusals."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ml.cli import main
from ml.errors import BadInputError, CorruptFileError
from ml.evaluation.epipolar.command import add_arguments, describe, run
from ml.evaluation.epipolar.dense import dense_matchers, inside_mask
from ml.evaluation.epipolar.noise import truth_noise
from ml.evaluation.epipolar.scores import (
    EpipolarScore,
    FrameCache,
    epipolar_rates,
    gap_pairs,
    inlier_share,
    pose_error_deg,
    summary,
    t_test,
)
from ml.imaging.samples.packaged import packaged_image
from ml.keypoints import match_images, symmetric_epipolar_px
from ml.keypoints.descriptors.vit import WEIGHTS
from ml.keypoints.descriptors.vit_dense import DenseConfig
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


def test_projections_of_one_point_lie_on_each_others_lines() -> None:
    scene = _scene()
    views = [scene.project(np.arange(60), frame) for frame in (0, 1)]
    truth = scene.fundamental(0, 1)
    assert symmetric_epipolar_px(truth, *views).max() < 1e-6
    off = views[1] + [0, 5]
    assert symmetric_epipolar_px(truth, views[0], off).min() > 1
    np.testing.assert_array_equal(scene.seen_in_both(0, 1), np.arange(60))


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
    with pytest.raises(BadInputError, match="two camera positions apart"):
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


def test_inliers_are_the_share_that_agrees() -> None:
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


def test_pairs_without_matches_count_as_not_found_and_nothing_else() -> None:
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


def test_gaps_beyond_the_sequence_are_refused() -> None:
    scene = _scene()
    assert gap_pairs(scene, 1, 5) == [(0, 1)]
    with pytest.raises(BadInputError, match="gap 2: expected 1 to 1, as there are 2 frames"):
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


def test_the_layout_is_read(tmp_path: Path) -> None:
    sequence = read_sequence(_with_points(_write(tmp_path)))
    assert [p.name for p in sequence.frames] == ["00000010.jpg", "00000011.jpg", "00000012.jpg"]
    np.testing.assert_allclose(sequence.camera, CAMERA)
    np.testing.assert_allclose(sequence.world_from_camera[1][:3, 3], [1, 0.5, 0])
    assert sequence.mask is None
    np.testing.assert_allclose(sequence.points[1], [-0.3, 0.1, 50])
    assert sequence.seen.tolist() == [[0, 0], [0, 1], [1, 1], [1, 2]]


def test_missing_or_short_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="visible_view_indexes"):
        read_sequence(tmp_path)
    _write(tmp_path, 1)
    with pytest.raises(CorruptFileError, match="a pose for each of 3 views"):
        read_sequence(tmp_path)
    _with_points(_write(tmp_path))
    (tmp_path / "view_indexes_per_point").write_text("-1\n10\n")
    with pytest.raises(CorruptFileError, match="expected 2 points as in structure"):
        read_sequence(tmp_path)
    with pytest.raises(BadInputError, match=r"00000010\.jpg: expected an image"):
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


def test_a_sliding_camera_is_scored_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def quick(names: list[str]) -> dict[str, object]:
        assert names == ["vit"]
        return {"dense": lambda a, b: match_images(a, b, "akaze", max_keypoints=200)}

    monkeypatch.setattr("ml.evaluation.epipolar.dense.dense_matchers", quick)
    film, other = _film(tmp_path), tmp_path / "elsewhere"
    other.mkdir()
    cv2.imwrite(str(other / "x.png"), np.tile(np.arange(240, dtype=np.uint8), (200, 1)))
    words = ["--descriptors", "orb", "--gaps", "1", "2", "--max-keypoints", 300, "--pairs", 1]
    words += ["--plots", tmp_path / "out", "--pictures", tmp_path / "out"]
    words += ["--others", other, "--other-pairs", 1, "--dense"]
    page, sections = tmp_path / "page.md", ("here", "elsewhere")
    page.write_text("".join(f"<!-- figures: {s} -->\n<!-- end figures -->\n" for s in sections))
    result = run(_args(film, *words, "--page", page, "--section", "here"), no_progress)
    assert "| method | epipolar error at gap 2, px |" in page.read_text()
    assert page.read_text().count("| dense |") == 2
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"epipolar-by-gap.png", "gap-1-orb.jpg", "gap-2-orb.jpg"}
    score = result["scores"]["orb"]["all"]
    assert score["partner_found"] == 1.0
    assert score["epipolar_px"] < 1.0
    assert score["under_1px"] > 0.9
    assert result["truth"]["1"]["under_1px"] > 0.9
    assert result["cross_sequence"]["orb"]["matches"] == 0
    dense = result["scores"]["dense"]["1"]
    assert dense["matches"] == dense["raw_matches"] > 50
    assert dense["under_3px"] > 0.9
    assert result["cross_sequence"]["dense"]["matches"] == 0
    assert "p against orb" in describe(result)
    text = describe(result)
    assert "The ground truth's own noise" in text
    assert "Images from elsewhere" in text


def test_true_points_where_the_image_says_so_have_no_noise(tmp_path: Path) -> None:
    cache = FrameCache(read_sequence(_film(tmp_path)), 100)
    noise = truth_noise(cache, [(0, 1)])
    assert noise["points"] > 20
    assert noise["moved_px"] < 0.3
    assert noise["under_1px"] == 1.0
    without = CalibratedSequence(
        "s",
        cache.sequence.frames,
        CAMERA,
        cache.sequence.world_from_camera,
        None,
        np.zeros((0, 3)),
        np.zeros((0, 2), np.int64),
    )
    assert truth_noise(FrameCache(without, 100), [(0, 1)]) == {"points": 0}


def test_the_plot_is_drawn_again_from_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).resolve().parents[4] / "docs" / "results"
    words = ["evaluate", "plots", "--out", str(tmp_path)]
    assert main([*words, str(root / "keypoints.epipolar.json")]) == 0
    assert cv2.imread(str(tmp_path / "epipolar-by-gap.png")).shape[2] == 3
    assert main([*words, str(root / "keypoints.papers.json")]) == 2
    assert "keypoints.papers.json: expected the JSON of evaluate epipolar" in (
        capsys.readouterr().err
    )


def test_options_out_of_range_are_refused(tmp_path: Path) -> None:
    film = _film(tmp_path)
    with pytest.raises(BadInputError, match="gaps: expected whole numbers, got one"):
        run(_args(film, "--gaps", "one"), no_progress)
    with pytest.raises(BadInputError, match="pairs: expected at least 1, got 0"):
        run(_args(film, "--pairs", 0), no_progress)


@pytest.mark.endurance
@pytest.mark.slow
def test_neighbouring_frames_obey_the_poses(tessera_data: Path) -> None:
    folder = tessera_data / "endoscopy/sinus-4584"
    args = _args(folder, "--descriptors", "akaze", "--gaps", 1, "--pairs", 2)
    scores = run(args, no_progress)["scores"]["akaze"]["1"]
    assert scores["matches"] > 100
    assert scores["under_3px"] > 0.8


def test_matches_outside_of_either_mask_are_left_out() -> None:
    found = _matches(np.array([[1, 1], [5, 1], [1, 5]]), np.array([[1, 1], [1, 1], [7, 7]]))
    left, low = np.zeros((9, 9), bool), np.zeros((9, 9), bool)
    left[:, :3], low[:6] = True, True
    assert inside_mask(found, left, low).xy_a.tolist() == [[1, 1]]
    assert len(inside_mask(found, None, None)) == 3


def test_the_transformers_own_protocol_has_two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def told(a: object, b: object, *, descriptor: object, config: DenseConfig) -> str:
        asked.append(config)
        return "matches"

    monkeypatch.setattr("ml.keypoints.descriptors.vit_dense.match_dense", told)
    image = np.zeros((8, 8, 3), np.uint8)
    assert [match(image, image) for match in dense_matchers().values()] == ["matches"] * 2
    assert asked == [DenseConfig(), DenseConfig.of_the_paper()]


def test_dense_weights_of_other_files_are_called_by_their_folder(tmp_path: Path) -> None:
    file = tmp_path / "rim" / "vit.safetensors"
    file.parent.mkdir()
    file.write_bytes(WEIGHTS.read_bytes())
    rows = dense_matchers(["vit", f"vit:{file}"])
    assert list(rows)[2:] == ["vit rim (dense)", "vit rim (dense, the paper's rule)"]
    with pytest.raises(BadInputError, match="dense: expected vit or vit:FILE, got sift"):
        dense_matchers(["sift"])
