"""Hand-crafted descriptors of OpenCV at given points and scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.keypoints.descriptors.orientation import dominant_angle_deg
from ml.keypoints.descriptors.points import checked_points, inside_image
from ml.keypoints.pixels import equalise, to_grey
from ml.types import ArrayF32, ImageU8, Keypoints

PAD_PX = 96
"""Margin of reflected pixels, as OpenCV drops or distorts key points near the border."""

NO_LENGTH = 1e-6
"""Shorter rows are set to zero."""


@dataclass(frozen=True, slots=True)
class _Family:
    """Parameters of one of the four descriptors.

    Attributes:
        dim: Length of a row; for bits including padding (AKAZE uses 486 of 488).
        size_px: Support for points of unknown scale, close to the smallest of the detector.
        ratio: Ratio test; larger for bits, as the square root of Hamming distances reduces the
            difference between first and second neighbour.
        is_binary: Rows are bits.
        computes_angle: OpenCV computes the angle of each point and ignores a given one.
    """

    dim: int
    size_px: float
    ratio: float
    is_binary: bool = False
    computes_angle: bool = False


_FAMILIES = {
    "sift": _Family(128, 12.0, 0.9),
    "orb": _Family(256, 31.0, 0.95, is_binary=True),
    "akaze": _Family(488, 9.6, 0.95, is_binary=True),
    "kaze": _Family(64, 9.0, 0.9, computes_angle=True),
}

CLASSICAL_NAMES: tuple[str, ...] = tuple(_FAMILIES)

BEST_FORM = "best form"
"""Suffix in tables for descriptors at the scale and angle of the key points."""


class ClassicalDescriptor:
    """SIFT (as RootSIFT), ORB, AKAZE or KAZE at given points.

    Rows of SIFT and KAZE have unit length. Those of ORB and AKAZE are bits divided by the square
    root of their number, so that the squared Euclidean distance is the share of different bits.
    Rows that cannot be computed are zero and never match.

    Source: Arandjelovic and Zisserman 2012 (RootSIFT); the others as implemented in OpenCV.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.detector = name
        self._family = _FAMILIES[name]
        self.dim = self._family.dim
        self.ratio = self._family.ratio

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Describe points of unknown scale with a fixed support and their dominant angle.

        Args:
            image: (H, W[, 1|3|4]).
            xy: (N, 2) pixels.
            response: (N,), not used.
        Returns:
            (N, dim) float32; zero rows for points outside the image.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, or response is not (N,).
        """
        points = checked_points(xy, response)
        size = np.full(len(points), self._family.size_px, np.float32)
        unknown = np.full(len(points), -1, np.float32)
        return self._compute(to_grey(image), Keypoints(points, response, size, unknown))

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """Describe detected key points at their scale and angle: (N, dim) float32."""
        checked_points(keypoints.xy, keypoints.response)
        return self._compute(to_grey(image), keypoints)

    def _with_angles(self, grey: ImageU8, keypoints: Keypoints) -> Keypoints:
        """Compute unknown angles."""
        unknown = keypoints.angle_deg < 0
        if self._family.computes_angle or not unknown.any():
            return keypoints
        xy, size, angle = keypoints.xy, keypoints.size_px, keypoints.angle_deg.copy()
        angle[unknown] = dominant_angle_deg(grey, xy[unknown], size[unknown])
        return Keypoints(xy, keypoints.response, size, angle)

    def _compute(self, grey: ImageU8, keypoints: Keypoints) -> ArrayF32:
        rows = np.zeros((len(keypoints), self.dim), np.float32)
        inside = inside_image(keypoints.xy, grey.shape)
        if not inside.any():
            return rows
        padded = cv2.copyMakeBorder(
            equalise(grey), PAD_PX, PAD_PX, PAD_PX, PAD_PX, cv2.BORDER_REFLECT_101
        )
        raw = self._to_opencv(self._with_angles(grey, keypoints), np.flatnonzero(inside))
        described, values = _make(self.name).compute(padded, raw)
        if values is None:
            return rows
        # compute() may drop and reorder key points; their response has the row.
        index = np.array([k.response for k in described], np.float32).astype(np.int64)
        rows[index] = _normalise(self.name, values, self._family)
        return rows

    def _to_opencv(self, keypoints: Keypoints, indices: np.ndarray) -> list[cv2.KeyPoint]:
        return [
            cv2.KeyPoint(
                float(keypoints.xy[i, 0]) + PAD_PX,
                float(keypoints.xy[i, 1]) + PAD_PX,
                float(keypoints.size_px[i]),
                float(keypoints.angle_deg[i]),
                float(i),
                *_octave_and_level(self.name, float(keypoints.size_px[i])),
            )
            for i in indices
        ]


def _make(name: str) -> Any:
    if name == "sift":
        return cv2.SIFT.create()
    if name == "orb":
        return cv2.ORB.create()
    return cv2.AKAZE.create() if name == "akaze" else cv2.KAZE.create()


def _octave_and_level(name: str, size_px: float) -> tuple[int, int]:
    """Internal ``octave`` and ``class_id`` of OpenCV for a key point of that support."""
    if name == "sift":  # size = 2 * 1.6 * 2^(octave + layer / 3), layer 1..3, octave from -1
        position = round(3 * np.log2(max(size_px, 1.0) / 3.2))
        octave = int(np.clip((position - 1) // 3, -1, 6))
        layer = int(np.clip(position - 3 * octave, 1, 3))
        return (octave & 255) | (layer << 8), -1
    if name == "orb":  # patch 31 px, factor 1.2
        return int(np.clip(round(np.log(max(size_px, 1.0) / 31) / np.log(1.2)), 0, 7)), -1
    if name == "akaze":  # size = 2 * 1.5 * 1.6 * 2^(level / 4)
        level = int(np.clip(round(4 * np.log2(max(size_px, 1.0) / 4.8)), 0, 15))
    else:  # fitted to key points of KAZE; level 0 has no derivatives in compute(), only NaN
        level = int(np.clip(round(4 * np.log2(max(size_px, 1.0) / 3.1)), 1, 15))
    return level // 4, level


def _normalise(name: str, values: np.ndarray, family: _Family) -> ArrayF32:
    """Rows (N, dim) of unit length, or zero, from the output of OpenCV."""
    if family.is_binary:
        bits = np.unpackbits(values, axis=1)[:, : family.dim].astype(np.float32)
        return bits / np.float32(np.sqrt(family.dim))
    rows = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    if name == "sift":
        rows = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: ArrayF32 = np.where(length > NO_LENGTH, rows / np.maximum(length, 1e-9), 0)
    return unit.astype(np.float32)
