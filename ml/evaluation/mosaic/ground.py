"""Ground of a simulated scope: a flat picture, one with hills, or a still with depth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.geometry import transform_points
from ml.imaging.samples.packaged import packaged_image
from ml.training.common.stills import CLEAR_WINDOW, read_still
from ml.training.vit.depth import synthetic_depth
from ml.types import ArrayF32, ArrayF64, ImageU8

HILLS_PX = (92.0, 75.0)
"""Picture px per radian of the hills, x and y: about three hills in a view of 470 px."""

NEARING_STEPS = 16
"""Steps of the ray search: with a relief of a fifth each step halves the error."""

AT_ONCE = 1 << 14
"""Points per call: OpenCV takes rows of less than 2^15."""


class Ground(Protocol):
    """Ground filmed by the scope."""

    @property
    def picture(self) -> ImageU8:
        """(H, W, 3) uint8 texture."""

    def picture_points(
        self, H_picture_from_frame: ArrayF64, xy: npt.NDArray[np.floating], *, size_px: int
    ) -> ArrayF64:
        """(P, 2) picture px seen at frame px; the pose is that over the mean plane."""


@dataclass(frozen=True, slots=True)
class Hills:
    """A picture with hills of up to ``relief`` of the scope's distance; 0 for a plane."""

    picture: ImageU8
    relief: float = 0.0

    def picture_points(
        self, H_picture_from_frame: ArrayF64, xy: npt.NDArray[np.floating], *, size_px: int
    ) -> ArrayF64:
        """Shift raised points, to first order by height times distance from the point below."""
        flat = transform_points(H_picture_from_frame, xy)
        height = np.sin(flat[:, 0] / HILLS_PX[0]) * np.sin(flat[:, 1] / HILLS_PX[1])
        offset = flat - _below(H_picture_from_frame, size_px)
        return np.asarray(flat - self.relief * height[:, None] * offset, np.float64)


@dataclass(frozen=True, slots=True)
class Tissue:
    """A still with the depth of each px along the axis of its camera, median 1."""

    picture: ImageU8
    depth: ArrayF32

    def picture_points(
        self, H_picture_from_frame: ArrayF64, xy: npt.NDArray[np.floating], *, size_px: int
    ) -> ArrayF64:
        """Intersection of each ray of the scope with the tissue.

        Scope and camera are at depth 0. A ray that meets the plane of depth 1 at picture px
        ``flat`` is at depth z seen by the camera at ``flat + (1 / z - 1) below``, whatever its
        focal length; ``below`` is the image of the point of the plane below the scope, px from
        the centre of the picture.

        Source: dinov2-adaptation-endoscopic-matching, eq. 9 to 12, with the second view given.
        """
        height, width = self.depth.shape
        middle = np.array([(width - 1) / 2, (height - 1) / 2])
        flat = transform_points(H_picture_from_frame, xy)
        below = _below(H_picture_from_frame, size_px) - middle
        xy_ground = flat
        for _ in range(NEARING_STEPS):
            xy_ground = flat + (1 / self._depth_at(xy_ground) - 1)[:, None] * below
        return np.asarray(xy_ground, np.float64)

    def _depth_at(self, xy: ArrayF64) -> ArrayF64:
        """(P,) bilinear depth; the border is repeated."""
        border = cv2.BORDER_REPLICATE
        parts = [
            cv2.remap(self.depth, part[None], None, cv2.INTER_LINEAR, borderMode=border)[0]  # type: ignore[call-overload]
            for part in np.split(xy.astype(np.float32), range(AT_ONCE, len(xy), AT_ONCE))
        ]
        return np.concatenate(parts).astype(np.float64)


def retina(relief: float) -> Hills:
    """Ground of the packaged picture of a retina, with hills."""
    return Hills(packaged_image("retina.jpg"), relief)


def tissue_of(still: Path, *, relief: float, seed: int) -> Tissue:
    """Ground of the window of a still, with ``synthetic_depth``.

    Raises:
        BadInputError: no image there, or one that is too small.
    """
    if not still.is_file():
        raise BadInputError(f"{still.name}: expected in the folder of the stills")
    image = read_still(still)
    height, width = image.shape[:2]
    left, top, right, bottom = np.multiply(CLEAR_WINDOW, (width, height, width, height)).astype(int)
    window = image[top:bottom, left:right]
    if min(window.shape[:2]) < 1:
        raise BadInputError(f"{still.name}: expected a larger image, got {width} x {height} px")
    shape = (window.shape[0], window.shape[1])
    depth = synthetic_depth(np.random.default_rng(seed), shape, relief=relief)
    return Tissue(np.ascontiguousarray(window), depth.astype(np.float32))


def _below(H_picture_from_frame: ArrayF64, size_px: int) -> ArrayF64:
    """(2,) picture px at the middle of the frame, on the plane."""
    half = (size_px - 1) / 2
    return transform_points(H_picture_from_frame, np.array([[half, half]]))[0]
