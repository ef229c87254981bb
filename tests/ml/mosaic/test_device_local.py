"""The local fit and the distortion on a device agree with the processor's, which stands in."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from ml.mosaic import MosaicConfig, build_mosaic, device_local, direct_pairs, local_pairs
from ml.mosaic.device_local import cells_on
from ml.mosaic.distortion import estimate_distortion
from ml.mosaic.local_cells import CELL_REACH, FINER, NODES, summing
from ml.mosaic.local_pairs import cells_of_pairs, lowered_share_of_pairs
from ml.mosaic.local_views import LevelPairs
from ml.mosaic.sources import ArraySource
from ml.types import no_progress
from tests.ml.mosaic.test_distortion import distorted_sweep
from tests.ml.mosaic.test_local_fit import _over_hills

SHAPE = (118, 140)
"""No multiple of a cell's px either way."""


@pytest.fixture(scope="module")
def linked() -> tuple[LevelPairs, np.ndarray]:
    """Four views of one texture, bent a little; the last pair hardly overlaps."""
    rng = np.random.default_rng(3)
    scene = cv2.GaussianBlur(rng.normal(size=(300, 300)).astype(np.float32), (0, 0), 2)
    scene = scene / scene.std()
    poses = [np.array([[1, 0.01 * i, 60 + 9.3 * i], [-0.01 * i, 1, 70 - 4 * i], [0, 0, 1.0]])
             for i in range(4)]  # fmt: skip
    poses[3][0, 2] += 118
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    images = np.stack(
        [cv2.warpPerspective(scene, pose, SHAPE[::-1], flags=flags) for pose in poses]
    )
    images += 0.1 * rng.normal(size=images.shape).astype(np.float32)
    masks = np.ones_like(images, np.uint8)
    masks[:, :5] = masks[1, :, :40] = 0
    meshes = 0.8 * rng.normal(size=(4, NODES, NODES, 2))
    rows = [(0, 1), (0, 2), (1, 2), (0, 3)]
    ways = [np.linalg.solve(poses[j], poses[i]) for i, j in rows]
    return LevelPairs(images, masks, rows, ways), meshes


def test_cells_are_those_of_the_processor(fast, linked):
    pairs, meshes = linked
    found, wanted = list(cells_on(fast, pairs, meshes)), list(cells_of_pairs(pairs, meshes))
    assert [one is None for one in found] == [one is None for one in wanted]
    assert wanted[-1] is None and sum(one is not None for one in wanted) == 3
    for one, other in zip(found[:3], wanted[:3], strict=True):
        assert np.array_equal(one.xy, other.xy) and len(one.xy) > 40
        scale = np.abs(other.tensor).max()
        # both go by the square of a spread, told by the median of a part of the px
        assert np.abs(one.tensor - other.tensor).max() < 0.08 * scale
        moved, expected = (
            np.linalg.solve(w.tensor + 0.02 * scale * np.eye(2), w.pull[..., None])
            for w in (one, other)
        )
        assert np.abs(expected).max() > 0.3
        assert np.abs(moved - expected).max() < 0.05
        # of its own uncertainty: the inverse of the information's root
        root = np.linalg.cholesky(other.tensor)
        apart = np.linalg.solve(root, (one.pull - other.pull)[..., None])
        assert np.abs(apart).mean() < 0.1


def test_what_meshes_lower_is_judged_alike(fast, linked, monkeypatch):
    pairs, meshes = linked
    wanted = [lowered_share_of_pairs(pairs, own) for own in (meshes, 0 * meshes)]
    monkeypatch.setattr(local_pairs, "accelerator", lambda: fast)
    found = [lowered_share_of_pairs(pairs, own) for own in (meshes, 0 * meshes)]
    assert found[1] == wanted[1] == 0 and abs(wanted[0]) > 0.05
    assert found[0] == pytest.approx(wanted[0], abs=0.02)
    assert lowered_share_of_pairs(LevelPairs(pairs.images, pairs.masks, [], []), meshes) == 0


def test_pairs_that_do_not_fit_are_halved_and_change_nothing(fast, linked, monkeypatch):
    pairs, meshes = linked
    whole, real, sizes = list(cells_on(fast, pairs, meshes)), device_local._sides, []

    def small(compute, some, part, own):
        sizes.append(part.stop - part.start)
        if sizes[-1] > 2:
            raise torch.OutOfMemoryError
        return real(compute, some, part, own)

    monkeypatch.setattr(device_local, "_sides", small)
    for one, other in zip(cells_on(fast, pairs, meshes), whole, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert np.allclose(one.tensor, other.tensor, rtol=1e-3, atol=1e-4)
    assert sizes[0] == 4 and sizes[-2:] == [2, 2] and 3 not in sizes


@pytest.mark.parametrize("length", [33, 120, 257])
def test_sums_in_cells_are_those_of_opencv(length):
    values = np.random.default_rng(0).random((length, length), np.float32)
    side = NODES - 1
    small = cv2.resize(values, (FINER * side, FINER * side), interpolation=cv2.INTER_AREA)
    smooth = cv2.GaussianBlur(small, (0, 0), CELL_REACH * FINER)
    wanted = cv2.resize(smooth, (side, side), interpolation=cv2.INTER_AREA) * (length / side) ** 2
    by = summing(length)
    assert np.allclose(by @ values @ by.T, wanted, rtol=1e-4)


def test_over_hills_the_meshes_are_those_of_the_processor(fast, tmp_path, monkeypatch):
    frames, _ = _over_hills(9)
    results = []
    for number, device in enumerate((None, fast)):
        monkeypatch.setattr(local_pairs, "accelerator", lambda device=device: device)
        results.append(build_mosaic(frames, tmp_path / str(number), config=MosaicConfig()))
    wanted, found = ([frame.mesh for frame in one.frames] for one in results)
    assert sum(mesh is not None for mesh in wanted) >= 8
    assert [mesh is None for mesh in found] == [mesh is None for mesh in wanted]
    apart = [np.abs(a - b).max() for a, b in zip(found, wanted, strict=True) if a is not None]
    size = np.sqrt(np.mean([np.square(mesh).mean() for mesh in wanted if mesh is not None]))
    assert size > 0.3 and max(apart) < 0.2


def test_the_coefficient_of_the_distortion_is_that_of_the_processor(fast, monkeypatch):
    source = ArraySource(distorted_sweep(-0.2, 75)[0], 1)
    found = []
    for device in (None, fast):
        monkeypatch.setattr(direct_pairs, "accelerator", lambda device=device: device)
        options = {"config": MosaicConfig(), "mask": None, "progress": no_progress}
        found.append(estimate_distortion(source, **options))
    assert found[0][:4] == found[1][:4]
    assert found[1][4] == pytest.approx(found[0][4], abs=0.01)
