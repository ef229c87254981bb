"""Patches of a slide at the encoder's magnification, each tile that they touch decoded once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import cv2
import numpy as np

from ml.imaging.slides.slide import SlideImage
from ml.imaging.slides.tile_cache import cached_slide
from ml.types import ImageU8

ONE_READ_PX = 24_000_000
"""Regions up to this size at the encoder's magnification are read once, larger ones by patch."""
BATCH = 512
"""Patches read and stored at a time: 77 MB of 224 px patches; the default budget is one batch."""
_SPARSE = 1.5
"""Box of the region over the area of its patches, above which most of the box is not needed."""
_STRIP_PX = 512  # rows read at once; bounds memory
_READERS = 2  # one reads while one decodes; more cost memory

Corner = tuple[int, int]


class PatchSource(Protocol):
    """Source of patches; reads are thread-safe."""

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """(patch_px, patch_px, 3) uint8 RGB at a corner in pixels of the encoder."""
        ...


class SlidePatches:
    """Patches of a slide: each tile that they touch is decoded once.

    A region that its patches cover densely and that fits in memory is read once, in strips; of any
    other only the patches are read, in batches swept along the tile grid. Memory is bounded by
    ``ONE_READ_PX`` or one batch, and ``tile_cache.CACHE_BYTES``, however large the region is.
    """

    def __init__(
        self, slide: SlideImage, *, downsample: float, corners_px: list[Corner], patch_px: int
    ) -> None:
        self._slide, self._downsample = cached_slide(slide), downsample
        self.corners, self.patch_px = corners_px, patch_px
        self._size = (
            max(1, round(slide.info.width_px / downsample)),
            max(1, round(slide.info.height_px / downsample)),
        )
        left, top = (max(0, min(c[i] for c in corners_px)) for i in (0, 1))
        right, bottom = (
            min(max(c[i] for c in corners_px) + patch_px, self._size[i]) for i in (0, 1)
        )
        self._box = (left, top, right, bottom)
        area = (right - left) * (bottom - top)
        dense = area <= _SPARSE * len(corners_px) * patch_px**2
        self._reads_once = dense and area <= ONE_READ_PX
        self._block: ImageU8 | None = None
        unique = list(dict.fromkeys(corners_px))
        self._batches = [unique[i : i + BATCH] for i in range(0, len(unique), BATCH)]
        self._batch_of = {c: i for i, batch in enumerate(self._batches) for c in batch}
        self._batch: dict[Corner, ImageU8] = {}
        self._lock = threading.Lock()

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``; the corners given at the start are the fast ones."""
        if self._reads_once:
            with self._lock:
                if self._block is None:
                    self._block = self._read_strips(self._box)
            x, y = corner_px
            return cut_patch(self._block, (x - self._box[0], y - self._box[1]), patch_px)
        if patch_px != self.patch_px or corner_px not in self._batch_of:
            return self._read_patch(corner_px, patch_px)
        with self._lock:
            if corner_px not in self._batch:
                self._batch = self._read_batch(self._batches[self._batch_of[corner_px]])
            return self._batch[corner_px]

    def _read_batch(self, corners: list[Corner]) -> dict[Corner, ImageU8]:
        """Read along columns of patches, so that neighbours find their tiles still there."""
        order = sorted(corners, key=lambda c: (c[0] // self.patch_px, c[1], c[0]))
        with ThreadPoolExecutor(max_workers=_READERS) as pool:
            patches = list(pool.map(lambda c: self._read_patch(c, self.patch_px), order))
        return dict(zip(order, patches, strict=True))

    def _read_patch(self, corner_px: Corner, patch_px: int) -> ImageU8:
        x, y = corner_px
        right, bottom = min(x + patch_px, self._size[0]), min(y + patch_px, self._size[1])
        left, top = max(x, 0), max(y, 0)
        return cut_patch(self._read_box((left, top, right, bottom)), (0, 0), patch_px)

    def _read_strips(self, box: tuple[int, int, int, int]) -> ImageU8:
        left, top, right, bottom = box
        out: ImageU8 = np.empty((bottom - top, right - left, 3), np.uint8)
        for row in range(top, bottom, _STRIP_PX):
            end = min(row + _STRIP_PX, bottom)
            out[row - top : end - top] = self._read_box((left, row, right, end))
        return out

    def _read_box(self, box: tuple[int, int, int, int]) -> ImageU8:
        left, top, right, bottom = box
        corner_l0 = (left * self._downsample, top * self._downsample)
        size = (right - left, bottom - top)
        size_l0 = (size[0] * self._downsample, size[1] * self._downsample)
        return self._slide.read_region(corner_l0, size_l0, size)


def cut_patch(pixels: ImageU8, corner_px: Corner, patch_px: int) -> ImageU8:
    """Cut a patch from an image; beyond its edge the image is mirrored.

    Args:
        pixels: (H, W, 3) uint8.
        corner_px: top left corner, on the image.
    Returns:
        (patch_px, patch_px, 3) uint8.
    """
    x, y = corner_px
    patch = pixels[max(y, 0) : y + patch_px, max(x, 0) : x + patch_px]
    down, right = patch_px - patch.shape[0], patch_px - patch.shape[1]
    if down or right:
        mirrored = cv2.copyMakeBorder(patch, 0, down, 0, right, cv2.BORDER_REFLECT)
        return np.asarray(mirrored, np.uint8)
    return np.ascontiguousarray(patch)
