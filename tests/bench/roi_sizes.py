"""One ROI of one size, in a process of its own: its peak memory is nobody else's.

``python -m tests.bench.roi_sizes SLIDE SIDE_PX`` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import torch
from shapely.geometry import box

from ml.evaluation.common.memory import peak_mib
from ml.imaging.slides.grid import StoredLevel
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.roi import load_encoder
from ml.roi.measures.features import PATCH_PX
from ml.roi.patches import Corner, SlidePatches
from ml.types import ImageU8
from tests.bench.resnet50 import resnet50

VIRTUAL_PX = 44_000
_SPREAD_PX = 2_048
_TILE_PX = 256
_PATCHES_TIMED = 16
"""ResNet-50 is timed on this many of the very patches, and its time scaled to all of them."""
_SMALL_PX = 2_000


class TiledAgain:
    """A large slide made of a small one's tissue, mirrored side by side; tiles are real JPEG.

    Level 0 of ``VIRTUAL_PX`` squared and a level at 1/4, as scanners store them. Each tile that is
    read is decoded: the time is that of a file, without 4 GB of disk.
    """

    vendor = "virtual"
    display_range = None
    properties: Mapping[str, str] = {}

    def __init__(self, tissue: ImageU8, mpp: float) -> None:
        self.icc_profile: bytes | None = None
        self.mpp: tuple[float | None, float | None] = (mpp, mpp)
        self.stored: tuple[StoredLevel, ...] = tuple(
            StoredLevel(VIRTUAL_PX // d, VIRTUAL_PX // d, downsample=float(d)) for d in (1, 4)
        )
        self._jpeg = [_jpeg_tiles(tissue), _jpeg_tiles(tissue[::4, ::4])]

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB, each tile it touches decoded."""
        first, last = (
            (x // _TILE_PX, y // _TILE_PX),
            (
                (x + width - 1) // _TILE_PX,
                (y + height - 1) // _TILE_PX,
            ),
        )
        rows = [
            np.hstack([self._tile(level, c, r) for c in range(first[0], last[0] + 1)])
            for r in range(first[1], last[1] + 1)
        ]
        left, top = x - first[0] * _TILE_PX, y - first[1] * _TILE_PX
        return np.ascontiguousarray(np.vstack(rows)[top : top + height, left : left + width])

    def close(self) -> None:
        """Nothing to close."""

    def _tile(self, level: int, column: int, row: int) -> ImageU8:
        side = len(self._jpeg[level])
        data = self._jpeg[level][row % side][column % side]
        return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR))[..., ::-1]


def virtual_slide(slide_path: Path) -> SlideImage:
    """A slide of ``VIRTUAL_PX`` squared made of the middle of a sample slide."""
    with open_slide(slide_path) as slide:
        corner = ((slide.info.width_px - _SPREAD_PX) // 4, (slide.info.height_px - _SPREAD_PX) // 2)
        tissue = slide.read_region(corner, (_SPREAD_PX,) * 2, (_SPREAD_PX,) * 2)
        mpp = slide.info.mpp_x or 0.5
    mirrored = np.hstack([tissue, tissue[:, ::-1]])
    return SlideImage(TiledAgain(np.vstack([mirrored, mirrored[::-1]]), mpp))


def measure(slide_path: Path, side_px: int) -> dict[str, float]:
    """Seconds, patches, peak memory of one ROI; seconds of ResNet-50 over the same patches."""
    encoder = load_encoder("default")
    with virtual_slide(slide_path) as slide:
        encoder.embed_region(slide, box(0, 0, 400, 400))
        before = peak_mib()
        corner = (VIRTUAL_PX - side_px) // 2
        roi = box(corner, corner, corner + side_px, corner + side_px)
        embedding, times = encoder.embed_region(slide, roi), []
        peak = peak_mib()
        for _ in range(3 if side_px <= _SMALL_PX else 1):
            began = time.perf_counter()
            encoder.embed_region(slide, roi)
            times.append(time.perf_counter() - began)
        corners = [
            (round(x), round(y)) for x, y in embedding.patch_boxes_l0[:, :2] / embedding.downsample
        ]
        began = time.perf_counter()
        patches = _patches(slide, corners, embedding.downsample)
        reading = time.perf_counter() - began
    resnet = _resnet_seconds(patches)
    return {
        "seconds": statistics.median(times),
        "patches": embedding.n_patches,
        "density": embedding.density,
        "peak_mib": peak,
        "grown_mib": peak - before,
        "reading_seconds": reading,
        "resnet_seconds": reading + resnet,
    }


def _patches(slide: SlideImage, corners: list[Corner], downsample: float) -> list[ImageU8]:
    source = SlidePatches(slide, downsample=downsample, corners_px=corners, patch_px=PATCH_PX)
    return [source.read(corner, PATCH_PX) for corner in corners]


def _resnet_seconds(patches: list[ImageU8]) -> float:
    """Seconds of the mean of ResNet-50's features over the patches, eight at a time."""
    network = resnet50()
    timed = np.stack(patches[:_PATCHES_TIMED]).astype(np.float32).transpose(0, 3, 1, 2) / 255
    pixels = torch.from_numpy(np.ascontiguousarray(timed))
    with torch.inference_mode():
        network(pixels[:1])
        began = time.perf_counter()
        torch.cat([network(batch) for batch in pixels.split(8)]).mean(0)
    return (time.perf_counter() - began) * len(patches) / len(timed)


def _jpeg_tiles(image: ImageU8) -> list[list[ImageU8]]:
    """Square tiles of an image whose side is a multiple of theirs, as JPEG bytes."""
    steps = range(0, image.shape[0], _TILE_PX)
    return [[_jpeg(image[y : y + _TILE_PX, x : x + _TILE_PX]) for x in steps] for y in steps]


def _jpeg(tile: ImageU8) -> ImageU8:
    bgr = np.ascontiguousarray(tile[..., ::-1])
    return np.asarray(cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 80])[1])


def in_a_process(slide_path: Path, side_px: int) -> dict[str, float]:
    """``measure`` in a fresh interpreter."""
    command = [sys.executable, "-m", "tests.bench.roi_sizes", str(slide_path), str(side_px)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))) + "\n")
