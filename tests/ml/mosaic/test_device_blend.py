"""Blending on a device agrees with the processor; the processor stands in where there is none."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from ml.keypoints.device.planes import blurred, eroded, grown, shrunk, warped
from ml.mosaic import blend, device_blend
from ml.mosaic.blend import blend_frames
from ml.mosaic.canvas import MosaicCanvas
from ml.mosaic.device_blend import DeviceTiles
from ml.mosaic.sources import ArraySource
from ml.mosaic.survey import FrameCheck, Survey
from ml.types import no_progress

H, W = 90, 130


def pictures(count):
    rng = np.random.default_rng(5)
    size = (H + 60, W + 40 * count, 3)
    scene = cv2.GaussianBlur(rng.integers(0, 256, size).astype(np.float32), (0, 0), 3)
    scene = np.uint8(np.clip(140 + 4 * (scene - 128), 20, 235))
    return [scene[20 : 20 + H, 35 * i : 35 * i + W] for i in range(count)]


def transforms(count):
    found = {}
    for i in range(count):
        c, s = np.cos(0.03 * i), np.sin(0.03 * i)
        found[i] = np.array([[c, -s, 35.3 * i + 4], [s, c, 5.6], [2e-5 * i, 0, 1.0]])
    return found


def blended(frames, folder):
    count = len(frames)
    checks = tuple(FrameCheck(i, i, 1.0 + 0.1 * i, "") for i in range(count))
    mask = np.ones((H, W), np.bool_)
    mask[:8, :20] = False
    survey = Survey(checks, (W, H), 1.0, mask, np.zeros((H, W), np.float32), False)
    canvas = MosaicCanvas(W + 40 * count, H + 30, transforms(count), {})
    out = np.zeros((H + 30, W + 40 * count, 3), np.uint8)
    gains = {i: np.full(3, 1 + 0.02 * i, np.float32) for i in range(count)}
    blend_frames(
        ArraySource(frames, 1),
        survey,
        canvas,
        gains,
        out=out,
        work_dir=folder,
        progress=no_progress,
    )
    return out


def test_the_picture_is_that_of_the_processor(fast, tmp_path, monkeypatch):
    frames = pictures(5)
    frames[2] = frames[2].copy()
    frames[2][30:60, 40:70] = (30, 60, 200)  # an instrument that one frame shows
    expected = blended(frames, tmp_path).astype(int)
    monkeypatch.setattr(blend, "accelerator", lambda: fast)
    found = blended(frames, tmp_path).astype(int)
    seen = (expected > 0).any(axis=2) & (found > 0).any(axis=2)
    assert seen.mean() > 0.5 and (seen != (expected > 0).any(axis=2)).mean() < 0.01
    apart = np.abs(found - expected)[seen]
    assert apart.mean() < 1 and np.quantile(apart, 0.99) <= 4
    assert not list(tmp_path.iterdir())


def test_tiles_that_wait_in_files_give_the_same_sums(fast, tmp_path):
    rng = np.random.default_rng(0)
    parts = [
        (int(x), int(y), torch.from_numpy(rng.random((8, 50, 70), np.float32)).to(fast.device))
        for x, y in rng.integers(0, 90, (12, 2))
    ]
    pictures_made = []
    for capacity in (64, 2):
        folder = tmp_path / str(capacity)
        folder.mkdir()
        tiles = DeviceTiles(folder, fast.device, 32, capacity)
        for left, top, bands in parts:
            tiles.add(200 * bands, left, top)
        out = np.zeros((150, 170, 3), np.uint8)
        tiles.write(out)
        pictures_made.append(out)
        assert bool(list(folder.iterdir())) == (capacity == 2)
    assert pictures_made[0].any() and np.array_equal(*pictures_made)


def test_where_memory_ends_tiles_go_to_files_sooner(fast, tmp_path, monkeypatch):
    tiles = DeviceTiles(tmp_path, fast.device, 16, 64)
    real, asked = torch.zeros, []

    def full(*size, **options):
        asked.append(len(tiles._tiles))
        if len(tiles._tiles) > 3:
            raise torch.OutOfMemoryError
        return real(*size, **options)

    monkeypatch.setattr(torch, "zeros", full)
    tiles.add(torch.ones(8, 16, 160, device=fast.device), 0, 0)
    assert len(tiles._tiles) <= 3 and max(asked) > 3
    out = np.zeros((16, 160, 3), np.uint8)
    tiles.write(out)
    assert (out == 2).all()  # 1 of the coarse band and 1 of the fine


def test_a_frame_without_room_is_blended_in_parts(fast, tmp_path, monkeypatch):
    """The picture is that of whole frames, and other tiles make room first."""
    frames = pictures(4)
    monkeypatch.setattr(blend, "accelerator", lambda: fast)
    expected = blended(frames, tmp_path).astype(int)
    real, tried, made_room = device_blend.DevicePainter._warped_bands, [], []
    to_files = device_blend.DeviceTiles.to_files

    def tight(painter, frame, part):
        size = (part[2] - part[0]) * (part[3] - part[1])
        tried.append(size)
        if size > 0.3 * H * W:
            raise torch.OutOfMemoryError
        return real(painter, frame, part)

    def noted(tiles):
        made_room.append(to_files(tiles))
        return made_room[-1]

    monkeypatch.setattr(device_blend, "LEAST_PART_PX", 16)
    monkeypatch.setattr(device_blend.DevicePainter, "_warped_bands", tight)
    monkeypatch.setattr(device_blend.DeviceTiles, "to_files", noted)
    found = blended(frames, tmp_path).astype(int)
    assert len(tried) > 4 * 7 and {True, False} == set(made_room)
    apart = np.abs(found - expected)
    assert apart.mean() < 0.2 and apart.max() <= 8
    assert ((found > 0) == (expected > 0)).mean() > 0.999


def test_a_part_needs_only_its_own_pixels_of_a_frame():
    matrix = np.array([[2, 0, 10], [0, 2, 20], [0, 0, 1.0]])
    assert device_blend._taken(matrix, (10, 5), (1000, 800)) == (9, 19, 32, 32)
    assert device_blend._taken(matrix, (900, 900), (40, 30)) == (9, 19, 40, 30)
    beyond = np.array([[1, 0, 0], [0, 1, 0], [-0.1, 0, 1.0]])
    assert device_blend._taken(beyond, (30, 30), (40, 30)) == (0, 0, 40, 30)
    assert device_blend._taken(matrix, (5, 5), (4, 4)) == (3, 3, 4, 4), "one at least"


def test_a_part_that_cannot_be_halved_any_more_ends_the_work(fast, tmp_path, monkeypatch):
    monkeypatch.setattr(blend, "accelerator", lambda: fast)

    def full(painter, frame, part):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(device_blend.DevicePainter, "_warped_bands", full)
    with pytest.raises(torch.OutOfMemoryError, match="no memory for"):
        blended(pictures(1), tmp_path)


@pytest.mark.parametrize("border", ["zeros", "border"])
def test_planes_are_warped_blurred_and_resized_as_opencv_does(fast, border):
    plane = cv2.GaussianBlur(np.random.default_rng(2).random((60, 80), np.float32), (0, 0), 2)
    tensor = torch.from_numpy(plane)[None, None].to(fast.device)
    matrix = np.array([[1.1, 0.1, -4.3], [-0.05, 0.95, 3.7], [1e-4, -2e-4, 1.0]])
    mode = cv2.BORDER_CONSTANT if border == "zeros" else cv2.BORDER_REPLICATE
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    wanted = cv2.warpPerspective(plane, matrix, (70, 50), flags=flags, borderMode=mode)
    found = warped(tensor, matrix, (70, 50), border=border)[0, 0].cpu().numpy()
    assert np.quantile(np.abs(found - wanted), 0.99) < 0.01
    for sigma in (1.0, 3.0):
        wanted = cv2.GaussianBlur(plane, (0, 0), sigma)
        assert np.allclose(blurred(tensor, sigma)[0, 0].cpu(), wanted, atol=1e-3)
    wanted = cv2.erode(plane, np.ones((3, 3), np.uint8))
    assert np.array_equal(eroded(tensor)[0, 0].cpu(), wanted)
    wanted = cv2.resize(plane, (20, 15), interpolation=cv2.INTER_AREA)
    assert np.allclose(shrunk(tensor, (20, 15))[0, 0].cpu(), wanted, atol=1e-5)
    wanted = cv2.resize(plane, (160, 120), interpolation=cv2.INTER_LINEAR)
    assert np.allclose(grown(tensor, (160, 120))[0, 0].cpu(), wanted, atol=1e-5)
