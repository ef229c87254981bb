"""Sweeps over real vessels with exactly known motion."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from ml.evaluation.mosaic.ncc import (
    chained,
    clean_frames,
    inner_view,
    meshes_of,
    ncc_table,
    straightened_frames,
)
from ml.evaluation.mosaic.truth import placed_transforms
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic.result import FrameResult, MosaicQuality, MosaicResult

VIEW_OUTLINE = np.array([[0, 0], [100, 0], [100, 80], [0, 80.0]])


@dataclass(frozen=True)
class Sweep:
    """(N, 200, 200, 3) uint8 frames, and (N, 3, 3) maps from frame to the picture swept."""

    frames: list[np.ndarray]
    truth: dict[int, np.ndarray]


def make_sweep(count: int = 12, side_px: int = 200, *, pace: float = 1.0) -> Sweep:
    """A scope gliding to the right and down, turning slowly: 12 px a frame at pace 1."""
    scene = cv2.resize(packaged_image("retina.jpg"), None, fx=0.5, fy=0.5, interpolation=3)
    frames, truth = [], {}
    for i in pace * np.arange(count):
        turn = np.radians(1.2 * i)
        c, s = np.cos(turn), np.sin(turn)
        matrix = np.array([[c, -s, 150 + 11 * i], [s, c, 240 + 4 * i], [0, 0, 1.0]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        view = np.asarray(cv2.warpPerspective(scene, matrix, (side_px, side_px), flags=flags))
        disc = np.zeros((side_px, side_px), np.uint8)
        cv2.circle(disc, (side_px // 2, side_px // 2), side_px // 2 - 4, 1, -1)
        frames.append(view * disc[:, :, None])
        truth[len(truth)] = matrix
    return Sweep(frames, truth)


@pytest.fixture(scope="session")
def sweep() -> Sweep:
    """Twelve good frames."""
    return make_sweep()


def write_video(
    path: Path, frames: Sequence[np.ndarray], *, pts_ms: Sequence[int], codec: str = "libx264"
) -> Path:
    """A video of (H, W, 3) uint8 frames at given times; frames of several sizes need MPEG-TS."""
    mode = "ab" if path.exists() else "wb"
    data = io.BytesIO()
    kind = "mpegts" if path.suffix == ".ts" else None
    target_file = data if kind else str(path)
    with av.open(target_file, "w", format=kind) as target:
        base = Fraction(1, 1000)
        stream = target.add_stream(codec, rate=25, options={"crf": "12"})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.time_base = "yuv420p", base
        stream.codec_context.time_base = base
        for rgb, at in zip(frames, pts_ms, strict=True):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
            frame.pts, frame.time_base = at, base
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    if kind:
        with path.open(mode) as file:
            file.write(data.getvalue())
    return path


@pytest.fixture(scope="session")
def slow_sweep() -> Sweep:
    """Thirty good frames, half as fast."""
    return make_sweep(30, pace=0.5)


def registered_frame(index: int, shift: float = 0.0, **more: object) -> FrameResult:
    """A frame of component 0, moved to the right by ``shift`` px."""
    matrix = np.array([[1, 0, shift], [0, 1, 0], [0, 0, 1.0]])
    values = {"component": 0, "sharpness": 1.0, "time_s": index / 25, "is_key": True} | more
    return FrameResult(index, index * 40, matrix, "registered", **values)  # type: ignore[arg-type]


def dropped_frame(index: int, code: str) -> FrameResult:
    """A frame that was skipped for a reason."""
    return FrameResult(index, 0, None, "skipped", "x", reason_code=code, time_s=index / 25)


def mosaic_result(*frames: FrameResult) -> MosaicResult:
    """A result of these frames, without files."""
    return MosaicResult(
        frames,
        path=Path("x/mosaic.tif"),
        preview=Path("x/preview.jpg"),
        manifest=Path("x"),
        width_px=300,
        height_px=80,
        motion_model="affine",
        anchor_index=0,
        config_hash="0",
        components=(),
        gaps=(),
        quality=MosaicQuality(1.0, None, 0, None),
        view_outline=VIEW_OUTLINE,
        frame_size_px=(101, 81),
        engine="0",
    )


def ncc_by_distance(
    frames: Sequence[np.ndarray], result: MosaicResult, *, distances: Sequence[int]
) -> dict[str, float]:
    """Mean NCC of overlapping frames by distance in frames, straightened as the mosaic has them."""
    images = straightened_frames(clean_frames(frames), meshes_of(result))
    inside = inner_view(None, next(iter(images.values())).shape)
    return ncc_table(images, chained(placed_transforms(result)), inside, distances=distances)
