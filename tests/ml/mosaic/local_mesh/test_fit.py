"""Local fit of a scope over a relief, with exactly known parallax."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.evaluation.mosaic.simulate import SweepConfig, simulate_sweep
from ml.evaluation.mosaic.truth import placed_maps, run_agreement, view_points
from ml.geometry import transform_points
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.survey import Survey
from ml.mosaic.local_mesh import fit as local_fit
from ml.mosaic.local_mesh import prior as local_prior
from ml.mosaic.local_mesh.equations import affine_of
from ml.mosaic.local_mesh.fit import MAX_SLOPE, tracked_mesh
from ml.mosaic.local_mesh.validation import lowered_share, split_pairs
from ml.mosaic.local_mesh.views import LevelPairs, mesh_maps
from ml.mosaic.manifest import read_manifest
from ml.mosaic.registration.result import Tracked
from ml.mosaic.result import MosaicResult
from tests.ml.mosaic.conftest import Sweep, ncc_by_distance

SIDE, PACE = 200, 9.0
RELIEF_PX = 10.0
"""By so much a hill moves against the plane from the first frame to the last."""


Hills = tuple[list[np.ndarray], list[np.ndarray]]


def _over_hills(count: int, *, spots_level: float = 120) -> Hills:
    """Frames, and where each of their px comes from in the picture, (200, 200, 2)."""
    picture = cv2.resize(packaged_image("retina.jpg"), None, fx=0.5, fy=0.5, interpolation=3)
    mottle = np.random.default_rng(4).normal(size=picture.shape[:2]).astype(np.float32)
    # spots everywhere, none so bright that it counts as a highlight: what is even cannot be fitted
    spots = spots_level * cv2.GaussianBlur(mottle, (0, 0), 5.0)
    picture = np.clip(0.6 * picture + spots[:, :, None], 0, 255).astype(np.uint8)
    rows, columns = np.mgrid[: picture.shape[0], : picture.shape[1]].astype(np.float32)
    hill = np.sin(columns / 38) * np.sin(rows / 31)
    frames, sources = [], []
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    for i in range(count):
        at_x, at_y = x + 180 + PACE * i, y + 250
        away = RELIEF_PX * (i / (count - 1) - 0.5)
        own_x = at_x + away * cv2.remap(hill, at_x, at_y, cv2.INTER_LINEAR)
        frames.append(np.asarray(cv2.remap(picture, own_x, at_y, cv2.INTER_CUBIC)))
        sources.append(np.dstack([own_x, at_y]))
    return frames, sources


@pytest.fixture(scope="module")
def hills() -> Hills:
    return _over_hills(14)


@pytest.fixture(scope="module")
def fitted(hills: Hills, tmp_path_factory: pytest.TempPathFactory) -> MosaicResult:
    return build_mosaic(hills[0], tmp_path_factory.mktemp("fitted") / "m")


def _error_px(result: MosaicResult, sources: list[np.ndarray], *, bent: bool) -> float:
    """Mean distance between where two frames show a spot and where they say they do."""
    frames = {f.index: f for f in result.frames if f.H_mosaic_from_frame is not None}
    errors = []
    for a, b in [(i, i + 6) for i in frames if i + 6 in frames]:
        shown = []
        for index in (a, b):
            flat = sources[index].astype(np.float32)
            if bent and frames[index].mesh is not None:
                flat = cv2.remap(flat, *mesh_maps(frames[index].mesh, (SIDE, SIDE)), 1)
            shown.append(flat)
        a_from_b = np.linalg.solve(frames[a].H_mosaic_from_frame, frames[b].H_mosaic_from_frame)
        moved = cv2.warpPerspective(shown[1], a_from_b, (SIDE, SIDE), borderValue=(-1e6,) * 3)
        inner = np.s_[20:-20, 20:-20]
        away = np.linalg.norm(moved[inner] - shown[0][inner], axis=2)
        errors.append(away[away < 1e3].mean())
    return float(np.mean(errors))


def test_meshes_remove_most_of_the_parallax(hills: Hills, fitted: MosaicResult) -> None:
    plane = _error_px(fitted, hills[1], bent=False)
    assert plane > 1.0
    assert _error_px(fitted, hills[1], bent=True) < 0.75 * plane


def test_frames_agree_better_than_by_their_homographies(hills: Hills, fitted: MosaicResult) -> None:
    flat = replace(fitted, frames=tuple(replace(f, mesh=None) for f in fitted.frames))
    bent, plane = (ncc_by_distance(hills[0], mesh, distances=(5,)) for mesh in (fitted, flat))
    assert bent["5"] > plane["5"] + 0.05


def test_every_map_can_be_inverted(fitted: MosaicResult) -> None:
    meshes = np.stack([f.mesh for f in fitted.frames if f.mesh is not None])
    spacing = (SIDE - 1) / (meshes.shape[1] - 1)
    assert np.linalg.norm(np.diff(meshes, axis=1), axis=3).max() <= MAX_SLOPE * spacing + 1e-6
    assert np.linalg.norm(np.diff(meshes, axis=2), axis=3).max() <= MAX_SLOPE * spacing + 1e-6


def test_meshes_contain_no_homography(fitted: MosaicResult) -> None:
    along = np.linspace(-1, 1, 9)
    x, y = (axis.ravel() for axis in np.meshgrid(along, along))
    affine = np.stack([np.ones(81), x, y], axis=1)
    for mesh in (f.mesh.reshape(81, 2) for f in fitted.frames if f.mesh is not None):
        assert np.abs(mesh).max() > 0.5
        assert np.abs(np.linalg.lstsq(affine, mesh, rcond=None)[0]).max() < 1e-6


@pytest.mark.slow
def test_vertices_outside_the_view_do_not_affect_the_affine_part(
    hills: Hills, tmp_path: Path
) -> None:
    wide = [cv2.copyMakeBorder(frame, 0, 0, 20, SIDE, cv2.BORDER_CONSTANT) for frame in hills[0]]
    mask = np.zeros(wide[0].shape[:2], np.uint8)
    mask[:, 20 : 20 + SIDE] = 255
    mosaic = build_mosaic(wide, tmp_path / "m", mask=mask)
    meshes = np.stack([f.mesh.ravel() for f in mosaic.frames if f.mesh is not None])
    assert np.abs(meshes).max() > 0.5
    assert np.abs(meshes @ affine_of(mask > 0).T).max() < 1e-6


def test_the_manifest_contains_the_meshes(fitted: MosaicResult) -> None:
    read = read_manifest(fitted.manifest.parent)
    for frame, read_frame in zip(fitted.frames, read.frames, strict=True):
        assert (frame.mesh is None) == (read_frame.mesh is None)
        if frame.mesh is not None:
            assert read_frame.mesh == pytest.approx(frame.mesh, abs=1e-3)


@pytest.mark.slow
def test_frames_of_a_plane_have_no_meshes(tmp_path: Path) -> None:
    frames = simulate_sweep(SweepConfig(frames=24, size_px=200, path="loops-slow")).frames
    mosaic = build_mosaic(frames, tmp_path / "m")
    assert mosaic.registered_count >= 12
    assert all(frame.mesh is None for frame in mosaic.frames)


def test_a_plane_is_not_fitted(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[object] = []
    monkeypatch.setattr(local_fit, "_round", lambda *given: rounds.append(given))
    mosaic = build_mosaic(sweep.frames, tmp_path / "m")
    assert mosaic.registered_count == len(sweep.frames)
    assert not rounds


def test_held_out_pairs_are_not_fitted() -> None:
    pairs = [(i, i + 1) for i in range(40)]
    fitted, held_out = split_pairs(pairs)
    assert sorted(fitted + held_out) == pairs
    assert len(held_out) == 5


def test_aligned_meshes_lower_the_differences_of_held_out_pairs() -> None:
    rng = np.random.default_rng(2)
    texture = cv2.GaussianBlur(rng.normal(size=(60, 80)).astype(np.float32), (0, 0), 2)
    images = np.stack([texture, np.roll(texture, 1, axis=1)])
    pairs = LevelPairs(images, np.ones((2, 60, 80), np.uint8), [(0, 1)], [np.eye(3)])
    meshes = np.zeros((2, 9, 9, 2))
    assert lowered_share(pairs, meshes) == 0.0
    meshes[1, ..., 0] = 1.0  # the second frame is a pixel to the right
    assert lowered_share(pairs, meshes) > 0.95
    assert lowered_share(pairs, -meshes) < 0
    assert lowered_share(pairs._replace(rows=[], b_from_a=[]), meshes) == 0.0


@pytest.mark.parametrize(("settled_px", "rounds"), [(1e9, 2), (0.0, len(local_fit.ROUNDS))])
def test_fitting_ends_when_the_meshes_converge(
    hills: Hills, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled_px: float, rounds: int
) -> None:
    real, seen = local_fit._round, []
    monkeypatch.setattr(local_fit, "SETTLED_PX", settled_px)
    monkeypatch.setattr(local_fit, "_round", lambda *given: seen.append(1) or real(*given))
    build_mosaic(hills[0][:5], tmp_path / "m")
    assert len(seen) == rounds


def test_meshes_can_be_disabled(hills: Hills, tmp_path: Path) -> None:
    mosaic = build_mosaic(hills[0][:5], tmp_path / "m", config=MosaicConfig(local_fit=False))
    assert all(frame.mesh is None for frame in mosaic.frames)


def test_a_tracked_frame_has_the_mesh_of_its_keyframe() -> None:
    turn = np.array([[0.98, -0.1, 6], [0.1, 0.98, -3], [0, 0, 1.0]])
    mesh = np.random.default_rng(0).normal(size=(9, 9, 2))
    view = np.ones((80, 100), bool)
    survey = Survey((), (100, 80), 1.0, view, view.astype(np.float32), is_fibre=False)
    own = tracked_mesh(mesh, Tracked(1, 0, turn), survey)
    node = np.array([[99 / 2, 79 / 2]])
    at_key = transform_points(turn, node)
    spread = np.array([99, 79]) / 8
    low = np.floor(at_key[0] / spread).astype(int)
    x, y = at_key[0] / spread - low
    i, j = low[1], low[0]
    added = (1 - y) * ((1 - x) * mesh[i, j] + x * mesh[i, j + 1])
    added += y * ((1 - x) * mesh[i + 1, j] + x * mesh[i + 1, j + 1])
    back = transform_points(np.linalg.inv(turn), at_key + added)
    assert node[0] + own[4, 4] == pytest.approx(back[0])


def _neighbour_distance_px(frames: list[np.ndarray], folder: Path) -> float:
    """Distance between a forward and a backward run in the motion of points to the next frame."""
    runs = [build_mosaic(frames[::way], folder / str(way)) for way in (1, -1)]
    assert all(frame.mesh is not None for run in runs for frame in run.frames)
    own = placed_maps(runs[0])
    other = {len(frames) - 1 - index: outcome for index, outcome in placed_maps(runs[1]).items()}
    view = np.ones((SIDE, SIDE), bool)
    return run_agreement(own, other, view_points(view), inside=view)["1"]


@pytest.mark.slow
def test_the_prior_reduces_the_distance_of_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    faint, _ = _over_hills(12, spots_level=40)
    noisy = [
        np.clip(frame + rng.normal(0, 16, frame.shape), 0, 255).astype(np.uint8) for frame in faint
    ]
    held = _neighbour_distance_px(noisy, tmp_path / "held")
    monkeypatch.setattr(local_prior, "PARALLAX_SHARE", 1e9)
    assert held < 0.85 * _neighbour_distance_px(noisy, tmp_path / "free")
