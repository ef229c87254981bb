"""Simulated sweeps agree with their truth; scores of a table by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.mosaic.baselines import BaselineMosaic, sift_chain
from ml.evaluation.mosaic.command import frames_markdown
from ml.evaluation.mosaic.ground import Tissue, retina, tissue_of
from ml.evaluation.mosaic.ncc import clean_frames, ncc_table
from ml.evaluation.mosaic.relief import pair_errors
from ml.evaluation.mosaic.simulate import FAULTS, SimulatedSweep, SweepConfig, simulate_sweep
from ml.evaluation.mosaic.table import (
    corner_errors,
    middle_errors,
    score_attempt,
    simulate_table,
    to_markdown,
)
from ml.geometry import FrameMaps, transform_points
from ml.reports.cards import update_card

SMALL = SweepConfig(frames=40, size_px=160, fault_share=0.3, exposure_drift=0.0)


@pytest.fixture(scope="module")
def sweep() -> SimulatedSweep:
    return simulate_sweep(SMALL)


def test_true_transforms_align_later_frames() -> None:
    sweep = simulate_sweep(SweepConfig(frames=50, size_px=320))
    inner = np.zeros((320, 320), np.bool_)
    inner[100:220, 100:220] = True
    images = clean_frames(sweep.frames)

    def like(between: Callable[[int, int], np.ndarray]) -> float:
        return ncc_table(images, between, inner, distances=(3,))["3"]

    true = like(lambda a, b: np.linalg.solve(sweep.truth[a], sweep.truth[b]))
    assert true > 0.4
    assert true > like(lambda a, b: np.eye(3)) + 0.1


def test_sweeps_are_deterministic_and_contain_every_kind_of_fault(sweep: SimulatedSweep) -> None:
    again = simulate_sweep(SMALL)
    np.testing.assert_array_equal(again.frames[7], sweep.frames[7])
    assert set(sweep.faults.values()) == set(FAULTS)
    assert len(sweep.faults) >= 12
    assert not simulate_sweep(replace(SMALL, frames=9, fault_share=0.0)).faults


def test_errors_are_invariant_to_similarity_and_not_to_tilt() -> None:
    rng = np.random.default_rng(0)
    truth = {i: np.array([[1, 0, x], [0, 1, y], [0, 0, 1]]) for i, (x, y) in enumerate(
        rng.uniform(0, 300, (9, 2)))}  # fmt: skip
    turned = np.array([[0, -2, 7.0], [2, 0, -5], [0, 0, 1]])
    same = {i: turned @ m for i, m in truth.items()}
    assert corner_errors(same, truth, range(9), 50).max() < 1e-9
    assert middle_errors(same, truth, range(9), 50).max() < 1e-9
    moved = {**same, 3: same[3] @ np.array([[1, 0, 9.0], [0, 1, 0], [0, 0, 1]])}
    assert middle_errors(moved, truth, range(9), 50).tolist() == pytest.approx(
        [0] * 3 + [9] + [0] * 5
    )
    assert 1.0 < corner_errors(moved, truth, range(9), 50).max() < 9.0
    tilted = {i: np.array([[1, 0, 0], [0, 1, 0], [1e-4, 0, 1.0]]) @ m for i, m in same.items()}
    assert corner_errors(tilted, truth, range(9), 50).max() > 1.0


def test_an_exact_mosaic_has_zero_error_and_lists_its_faults(sweep: SimulatedSweep) -> None:
    usable = {i: m for i, m in sweep.truth.items() if i not in sweep.faults}
    shift = np.array([[1, 0, 3.0], [0, 1, 0], [0, 0, 1]])
    wrong = {**usable, min(usable): usable[min(usable)] @ shift}
    inputs = tuple(range(40))
    mosaic = BaselineMosaic(wrong, inputs, None, 1.0, 1.0, 5.0, dropped=dict(sweep.faults))
    scores = score_attempt(mosaic, sweep)
    assert scores["median_px"] < 0.3
    assert scores["max_px"] == pytest.approx(3.0, abs=0.5)
    assert (scores["fault_recall"], scores["fault_precision"]) == (1.0, 1.0)
    assert scores["fault_reasons"]["smoke as smoke"] >= 1


def test_a_sift_chain_stops_where_it_breaks() -> None:
    frames = simulate_sweep(SweepConfig(frames=5, size_px=240)).frames
    frames[1:4] = [frames[0]] * 3
    black = np.zeros_like(frames[0])
    assert set(sift_chain([frames[0], frames[1], black, frames[2]])) == {0, 1}


def test_pairs_over_relief_agree_only_with_the_true_parallax() -> None:
    side, relief = 120, 0.1
    poses = {i: np.array([[1, 0, 500.0 + 6 * i], [0, 1, 450], [0, 0, 1]]) for i in (0, 5)}
    flat = {i: FrameMaps(pose[None], None, (side, side)) for i, pose in poses.items()}
    plane, hills = retina(0.0), retina(relief)
    assert pair_errors(flat, poses, plane, size_px=side) == {"5": 0.0}
    assert pair_errors(flat, poses, hills, size_px=side)["5"] > 0.1
    middle = np.array([[(side - 1) / 2, (side - 1) / 2]])
    seen = hills.picture_points(poses[0], middle, size_px=side)
    assert seen[0] == pytest.approx([500 + middle[0, 0], 450 + middle[0, 1]])


def test_visible_tissue_is_on_the_camera_rays() -> None:
    focal, side = 400.0, 60
    y, x = np.mgrid[:300, :420]
    depth = np.exp(0.1 * np.sin(x / 60) * np.cos(y / 50)).astype(np.float32)
    tissue = Tissue(np.zeros((300, 420, 3), np.uint8), depth)
    pose = np.array([[1.1, -0.2, 250.0], [0.2, 1.1, 90], [1e-4, -2e-4, 1]])
    xy = np.random.default_rng(0).uniform(0, side, (40, 2))
    seen = tissue.picture_points(pose, xy, size_px=side)
    z = cv2.remap(depth, seen.astype(np.float32)[None], None, cv2.INTER_LINEAR)[0][:, None]
    camera = np.array([[focal, 0, 209.5], [0, focal, 149.5], [0, 0, 1]])
    to_rays = np.linalg.inv(camera)
    points = z * (np.c_[seen, np.ones(40)] @ to_rays.T)
    below = transform_points(pose, np.array([[(side - 1) / 2, (side - 1) / 2]]))
    scope = np.r_[(np.r_[below[0], 1] @ to_rays.T)[:2], 0]
    met = (scope + (points - scope) / z) @ camera.T  # where the rays meet the plane of depth 1
    assert met[:, :2] == pytest.approx(transform_points(pose, xy), abs=1e-2)
    assert np.abs(seen - transform_points(pose, xy)).max() > 2


def test_a_sweep_over_a_still_shows_its_window_with_depth(tmp_path: Path) -> None:
    picture = np.random.default_rng(1).integers(0, 255, (50, 80, 3), np.uint8)
    large = cv2.resize(picture, (800, 500), interpolation=cv2.INTER_CUBIC)
    cv2.imwrite(str(tmp_path / "a.png"), large)
    config = SweepConfig(frames=3, size_px=120, still="a.png")
    flat, deep, other = (
        simulate_sweep(replace(config, **change), tmp_path)
        for change in ({}, {"relief": 0.2}, {"relief": 0.2, "seed": 12})
    )
    assert flat.ground.picture.shape == (390, 464, 3)
    assert np.array_equal(flat.ground.picture, large[10:400, 144:608, ::-1])
    assert np.abs(flat.frames[0].astype(float) - deep.frames[0])[40:80, 40:80].mean() > 0.5
    depths = [sweep.ground.depth for sweep in (deep, other)]
    assert not np.array_equal(*depths)
    assert 0.1 < np.abs(np.log(depths[0])).max() < 0.4
    with pytest.raises(BadInputError, match=r"a\.png"):
        simulate_sweep(config)
    with pytest.raises(BadInputError, match=r"b\.png"):
        tissue_of(tmp_path / "b.png", relief=0.1, seed=0)


def test_frames_over_relief_differ_from_frames_over_a_plane() -> None:
    plane, hills = (
        simulate_sweep(SweepConfig(frames=3, size_px=160, relief=share)).frames[1]
        for share in (0.0, 0.1)
    )
    assert np.abs(plane.astype(float) - hills)[40:120, 40:120].mean() > 0.5


def test_an_unknown_sweep_raises_an_error_with_its_name() -> None:
    with pytest.raises(BadInputError, match="spiral"):
        simulate_table(["spiral"], lambda done, total, phase: None)


def test_figures_are_written_between_their_markers(tmp_path: Path) -> None:
    card = tmp_path / "card.md"
    card.write_text("a\n<!-- figures: x -->\nold\n<!-- end figures -->\nb\n")
    rows = [{"sweep": "x", "method": "m", "registered": 3, "inputs": 4, "mean_px": 0.5}]
    sweeps = {"x": SweepConfig(frames=4, size_px=9, fault_share=0.1, seed=1)}
    update_card(card, "x", to_markdown({"rows": rows, "sweeps": sweeps}))
    text = card.read_text()
    assert "| x | m | 3 of 4 | 0.5 |" in text
    assert "old" not in text
    assert text.endswith("<!-- end figures -->\nb\n")
    with pytest.raises(BadInputError, match="markers"):
        update_card(card, "y", "")


def test_the_scores_of_a_sequence_are_written_as_a_list() -> None:
    ncc = {"tessera": {"1": 0.7, "5": 0.6, "20": 0.5}}
    scores = {
        "data_set": "x",
        "registered": 3,
        "frames": 4,
        "components": 1,
        "model": "affine",
        "width_px": 9,
        "height_px": 8,
        "cpu_seconds": 1.5,
        "ncc": ncc,
        "reference_px": {"1": 2.0},
    }
    text = frames_markdown(scores)
    assert "- tessera: mean NCC 0.700 at 1, 0.600 at 5, 0.500 at 20" in text
    assert "2.0 at 1" in text


def test_frames_over_relief_are_compared_with_independently_matched_pairs() -> None:
    config = SweepConfig(frames=9, size_px=240, relief=0.02)
    sweep = simulate_sweep(config)
    mosaic = BaselineMosaic(
        placed=sweep.truth,
        inputs=tuple(range(9)),
        pixels=None,
        wall_s=0.0,
        cpu_s=0.0,
        peak_mib=0.0,
        dropped={},
    )
    scores = score_attempt(mosaic, sweep, has_relief=True)
    assert scores["ncc"]["tessera"]["1"] > 0.3
    assert scores["ncc"]["SIFT pairs"]["1"] > 0.1
    table = {"data_set": "simulated", "sweeps": {"hills": config}}
    rows = [{"sweep": "hills", "method": "tessera", **scores}]
    assert "- hills: NCC at least that of SIFT pairs" in to_markdown({**table, "rows": rows})
    assert "ncc" not in score_attempt(mosaic, sweep)
