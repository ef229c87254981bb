"""Working view of an image: cropped to the field of view and reduced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.keypoints.masks import checked_mask, scope_mask, surround_level
from ml.keypoints.pixels import to_grey, to_u8
from ml.types import ArrayBool, ArrayF32, ImageU8

MAX_WORK_PX = 4_000_000
"""Largest number of pixels of a view, about 2,000 px x 2,000 px."""

CROP_MARGIN_PX = 48
"""Margin around the field of view, for the support of key points near the rim."""

FIELD_SIDE_PX = 512
"""Longer side of the image in which the field of view is found."""

MIN_RIM_PX, RIM_SHARE = 8, 0.014
"""Width of the rim of a scope: minimum in pixels, and relative to the root of the image area.
Chosen on the development sequences (docs/models/keypoints.md)."""


@dataclass(frozen=True, slots=True)
class WorkingView:
    """Cropped, reduced and masked image.

    Attributes:
        image: (h, w[, 3]) uint8.
        grey: (h, w) uint8.
        mask: (h, w) bool, allowed area of key points: the eroded field of view.
        offset_px: (2,) float32, x and y of the crop in the reduced image.
        scale: (2,) float32, pixels of the view per pixel of the image along x and y, at most 1.
    """

    image: ImageU8
    grey: ImageU8
    mask: ArrayBool
    offset_px: ArrayF32
    scale: ArrayF32

    def to_image(self, xy: npt.NDArray[Any]) -> ArrayF32:
        """Convert pixels (N, 2) of the view to pixels of the image, with centres at integers."""
        reduced = np.asarray(xy, np.float64) + self.offset_px
        full = reduced if self.scale.min() == 1.0 else (reduced + 0.5) / self.scale - 0.5
        return full.astype(np.float32)


def working_view(
    image: npt.NDArray[Any],
    *,
    mask: npt.NDArray[Any] | None = None,
    name: str = "image",
) -> WorkingView:
    """Crop an image to its field of view and reduce it to at most ``MAX_WORK_PX``.

    The estimated field of view is eroded, as the rim of a scope is static and matches itself, and
    intersected with a given mask.

    Args:
        image: (H, W[, 1|3|4]) of any bit depth.
        mask: (H, W), allowed area of key points: True, or above 127; None for all.
        name: Name of the image in errors.
    Raises:
        ShapeError: See ``pixels.to_u8``; or a mask of another size.
    """
    pixels = to_u8(image, name=name)
    if pixels.ndim == 3:
        pixels = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels[:, :, :3]
    size_wh = np.array([pixels.shape[1], pixels.shape[0]])
    factor = min(1.0, float(np.sqrt(MAX_WORK_PX / size_wh.prod())))
    given_mask = None if mask is None else checked_mask(mask, (pixels.shape[0], pixels.shape[1]))
    if factor < 1.0:
        size = (max(16, round(size_wh[0] * factor)), max(16, round(size_wh[1] * factor)))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))
        if given_mask is not None:
            small = cv2.resize(given_mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
            given_mask = np.asarray(small, np.bool_)
    pixels = np.ascontiguousarray(pixels)
    grey = to_grey(pixels, name=name)
    inside = eroded_field_of_view(grey)
    if given_mask is not None:
        inside &= given_mask
    y, x = _crop(inside)
    scale = np.array([grey.shape[1], grey.shape[0]]) / size_wh
    return WorkingView(
        np.ascontiguousarray(pixels[y, x]),
        np.ascontiguousarray(grey[y, x]),
        np.ascontiguousarray(inside[y, x]),
        np.array([x.start, y.start], np.float32),
        scale.astype(np.float32),
    )


def eroded_field_of_view(grey: ImageU8) -> ArrayBool:
    """Find the field of view of a scope, eroded from its rim and from black areas at the border.

    Args:
        grey: (H, W) uint8.
    Returns:
        (H, W) bool.
    """
    height, width = grey.shape
    factor = min(1.0, FIELD_SIDE_PX / max(height, width))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
    rim_px = max(MIN_RIM_PX * factor, RIM_SHARE * float(np.sqrt(small.size)))
    level = surround_level(small)
    inside = scope_mask(small, margin_px=max(1, round(rim_px)), level=level)
    if not inside.all():  # the hull includes notches of an undistorted or truncated view
        distance = cv2.distanceTransform(
            (~_outer_black(small, level)).astype(np.uint8), cv2.DIST_L2, 5
        )
        inside &= distance > rim_px
    full = cv2.resize(inside.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST)
    return np.asarray(full, np.bool_)


def _outer_black(grey: ImageU8, level: float) -> ArrayBool:
    """Mask (H, W) bool of regions at the image border up to a grey level."""
    dark = (cv2.medianBlur(grey, 5) <= level).astype(np.uint8)
    _, labels = cv2.connectedComponents(dark)
    edge = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    return np.asarray(np.isin(labels, np.setdiff1d(edge, 0)))


def _crop(inside: ArrayBool) -> tuple[slice, slice]:
    """Rows and columns of the mask with a margin; all of the image for an empty mask."""
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return slice(0, inside.shape[0]), slice(0, inside.shape[1])
    margin = CROP_MARGIN_PX
    return (
        slice(max(0, int(rows[0]) - margin), int(rows[-1]) + margin + 1),
        slice(max(0, int(columns[0]) - margin), int(columns[-1]) + margin + 1),
    )
