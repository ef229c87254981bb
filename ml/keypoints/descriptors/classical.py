"""The hand-crafted four, through OpenCV, at points and scales of our own choice."""

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
"""OpenCV drops or distorts key points near the border: images are mirrored by this much first."""

NO_LENGTH = 1e-6
"""A row shorter than this holds nothing to describe: it becomes zero."""


@dataclass(frozen=True, slots=True)
class _Family:
    """What is particular to one of the four.

    Attributes:
        dim: numbers a row; of a binary one the bits of its whole bytes (AKAZE uses 486 of 488).
        size_px: fixed support where no scale is told: near the finest of its detector, not tuned.
        ratio: the ratio test; looser for bits, for the root of a Hamming distance brings the first
            and the second neighbour closer together.
        is_binary: rows are bits.
        turns_itself: OpenCV finds the direction of each point anew, whatever it is told.
    """

    dim: int
    size_px: float
    ratio: float
    is_binary: bool = False
    turns_itself: bool = False


_FAMILIES = {
    "sift": _Family(128, 12.0, 0.9),
    "orb": _Family(256, 31.0, 0.95, is_binary=True),
    "akaze": _Family(488, 9.6, 0.95, is_binary=True),
    "kaze": _Family(64, 9.0, 0.9, turns_itself=True),
}

CLASSICAL_NAMES: tuple[str, ...] = tuple(_FAMILIES)

BEST_FORM = "best form"
"""Beside a name in a table: the descriptor was told how large and how turned key points are."""


class ClassicalDescriptor:
    """SIFT (as RootSIFT), ORB, AKAZE or KAZE at given points.

    Rows of SIFT and KAZE are of unit length. Those of ORB and AKAZE are their bits over the root of
    their number, so that the squared Euclidean distance is the share of bits that differ. A row
    that cannot be computed is zero, which never matches.

    Source: Arandjelovic and Zisserman 2012 (RootSIFT); the others as OpenCV implements them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.detector = name
        self._family = _FAMILIES[name]
        self.dim = self._family.dim
        self.ratio = self._family.ratio

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Describe points of unknown scale: fixed support, own dominant direction.

        Args:
            image: (H, W[, 1|3|4]). xy: (N, 2) pixels. response: (N,), not used.
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
        """Describe detected key points at their own scale and angle; (N, dim) float32."""
        checked_points(keypoints.xy, keypoints.response)
        return self._compute(to_grey(image), keypoints)

    def _turned(self, grey: ImageU8, keypoints: Keypoints) -> Keypoints:
        """With a direction where none is known."""
        unknown = keypoints.angle_deg < 0
        if self._family.turns_itself or not unknown.any():
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
        raw = self._to_opencv(self._turned(grey, keypoints), np.flatnonzero(inside))
        kept, values = _make(self.name).compute(padded, raw)
        if values is None:
            return rows
        # compute() may drop and reorder: the response carries the row.
        index = np.array([k.response for k in kept], np.float32).astype(np.int64)
        rows[index] = _normalised(self.name, values, self._family)
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
    """OpenCV's private ``octave`` and ``class_id`` of a key point of that support."""
    if name == "sift":  # size = 2 * 1.6 * 2^(octave + layer / 3), layer 1..3, octave from -1
        position = round(3 * np.log2(max(size_px, 1.0) / 3.2))
        octave = int(np.clip((position - 1) // 3, -1, 6))
        layer = int(np.clip(position - 3 * octave, 1, 3))
        return (octave & 255) | (layer << 8), -1
    if name == "orb":  # patch 31 px, factor 1.2
        return int(np.clip(round(np.log(max(size_px, 1.0) / 31) / np.log(1.2)), 0, 7)), -1
    if name == "akaze":  # size = 2 * 1.5 * 1.6 * 2^(level / 4)
        level = int(np.clip(round(4 * np.log2(max(size_px, 1.0) / 4.8)), 0, 15))
    else:  # fitted to what KAZE detects; compute() leaves level 0 without derivatives: NaN rows
        level = int(np.clip(round(4 * np.log2(max(size_px, 1.0) / 3.1)), 1, 15))
    return level // 4, level


def _normalised(name: str, values: np.ndarray, family: _Family) -> ArrayF32:
    """(N, dim) rows of unit length, or zero, from what OpenCV computes."""
    if family.is_binary:
        bits = np.unpackbits(values, axis=1)[:, : family.dim].astype(np.float32)
        return bits / np.float32(np.sqrt(family.dim))
    rows = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    if name == "sift":
        rows = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    normal: ArrayF32 = np.where(length > NO_LENGTH, rows / np.maximum(length, 1e-9), 0)
    return normal.astype(np.float32)
