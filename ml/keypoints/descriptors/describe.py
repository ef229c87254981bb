"""Describe key points: the hand-crafted four through OpenCV, behind one protocol."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import ShapeError, UnknownNameError
from ml.keypoints.descriptors.orientation import dominant_angle_deg
from ml.keypoints.pixels import equalise, to_grey
from ml.types import ArrayF32, Keypoints

DEFAULT_NAME = "tessera"
"""Ours: ahead of the best of the four, AKAZE, under the papers' protocol and among mutual nearest
neighbours of independently detected key points (docs/models/tessera.md), and not behind after the
whole pipeline. It takes longer: ask for ``akaze`` where time counts most."""
LEARNED: dict[str, str] = {
    "triplet": "ml.keypoints.descriptors.learned",
    "cnn": "ml.keypoints.descriptors.learned",
    "graph": "ml.keypoints.descriptors.learned",
    "tessera": "ml.keypoints.descriptors.tessera",
    "vit": "ml.keypoints.descriptors.vit",
}
"""Learned descriptors: name -> module with ``load(name) -> Descriptor``, imported when asked for,
so that the hand-crafted four never wait for torch."""

CLASSICAL_NAMES: tuple[str, ...] = ("sift", "orb", "akaze", "kaze")
DESCRIPTOR_NAMES: tuple[str, ...] = (*CLASSICAL_NAMES, *LEARNED, "default")
"""Names that ``load_descriptor`` knows. ``default`` is ``DEFAULT_NAME``."""

PAD_PX = 96
"""OpenCV drops or distorts key points near the border: images are mirrored by this much first."""


class Descriptor(Protocol):
    """Turns key points of an image into comparable vectors (Euclidean distance).

    Attributes:
        name: what ``load_descriptor`` was asked for, resolved.
        dim: D.
        detector: the detector it goes with.
        ratio: the ratio test that suits its distances.
    """

    name: str
    dim: int
    detector: str
    ratio: float

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """(H, W[, 3]) image, (N, 2), (N,) -> (N, D) float32, one row a point, no NaN."""

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """As ``describe``, using the scale and angle that the detector found."""


def load_descriptor(name: str = "default") -> Descriptor:
    """Load a descriptor by name; ``vit:PATH_OR_NAME`` names other weights or another backbone.

    Raises:
        UnknownNameError: not one of ``DESCRIPTOR_NAMES``.
    """
    family = "vit" if name.startswith("vit:") else name
    if family not in DESCRIPTOR_NAMES:
        raise UnknownNameError("descriptor", name, list(DESCRIPTOR_NAMES))
    resolved = DEFAULT_NAME if name == "default" else name
    module = LEARNED.get("vit" if family == "vit" else resolved)
    if module is not None:
        loaded: Descriptor = importlib.import_module(module).load(resolved)
        return loaded
    return ClassicalDescriptor(resolved)


_DIMS = {"sift": 128, "orb": 256, "akaze": 488, "kaze": 64}
_BITS = {"orb": 256, "akaze": 486}
_SIZES_PX = {"sift": 12.0, "orb": 31.0, "akaze": 9.6, "kaze": 9.0}
"""Fixed support where no scale is told: near each detector's finest scale, not tuned."""

_RATIOS = {"sift": 0.9, "orb": 0.95, "akaze": 0.95, "kaze": 0.9}


class ClassicalDescriptor:
    """SIFT (as RootSIFT), ORB, AKAZE or KAZE at given points.

    Binary descriptors are unpacked to 0/1 floats, so that the squared Euclidean distance is the
    Hamming distance. Every row is of unit length; a row that cannot be computed is zero, which
    never matches.

    Source: Arandjelovic and Zisserman 2012 (RootSIFT); the others as OpenCV implements them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.detector = name
        self.dim = _DIMS[name]
        self.ratio = _RATIOS[name]

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Describe points of unknown scale: fixed support, own dominant direction.

        Args:
            image: (H, W[, 1|3|4]). xy: (N, 2) pixels. response: (N,), unused by these four.
        Returns:
            (N, dim) float32; zero rows for points outside the image.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, or response is not (N,).
        """
        points = _checked_points(xy, response)
        size = np.full(len(points), _SIZES_PX[self.name], np.float32)
        grey = to_grey(image)
        angle = dominant_angle_deg(grey, points, size)
        return self._compute(grey, Keypoints(points, np.asarray(response), size, angle))

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """Describe detected key points at their own scale and angle; (N, dim) float32."""
        _checked_points(keypoints.xy, keypoints.response)
        grey = to_grey(image)
        unknown = keypoints.angle_deg < 0
        angle = keypoints.angle_deg.copy()
        if unknown.any():
            angle[unknown] = dominant_angle_deg(
                grey, keypoints.xy[unknown], keypoints.size_px[unknown]
            )
        oriented = Keypoints(keypoints.xy, keypoints.response, keypoints.size_px, angle)
        return self._compute(grey, oriented)

    def _compute(self, grey: np.ndarray, keypoints: Keypoints) -> ArrayF32:
        rows = np.zeros((len(keypoints), self.dim), np.float32)
        inside = _inside(keypoints.xy, (grey.shape[0], grey.shape[1]))
        if not inside.any():
            return rows
        padded = cv2.copyMakeBorder(
            equalise(grey), PAD_PX, PAD_PX, PAD_PX, PAD_PX, cv2.BORDER_REFLECT_101
        )
        raw = self._to_opencv(keypoints, np.flatnonzero(inside))
        kept, values = _make(self.name).compute(padded, raw)
        if values is None:
            return rows
        # compute() may drop and reorder: the response carries the row.
        index = np.array([k.response for k in kept], np.float32).astype(np.int64)
        rows[index] = _normalised(self.name, values, self.dim)
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


def _normalised(name: str, values: np.ndarray, dim: int) -> ArrayF32:
    if name in _BITS:
        bits = np.unpackbits(values, axis=1)[:, :dim].astype(np.float32)
        return bits / np.float32(np.sqrt(dim))
    rows = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    if name == "sift":
        rows = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    normal: ArrayF32 = np.where(length > 1e-6, rows / np.maximum(length, 1e-9), 0)
    return normal.astype(np.float32)


def _inside(xy: ArrayF32, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    return np.asarray(
        (xy[:, 0] >= 0) & (xy[:, 1] >= 0) & (xy[:, 0] <= shape[1] - 1) & (xy[:, 1] <= shape[0] - 1)
    )


def _checked_points(xy: ArrayF32, response: ArrayF32) -> ArrayF32:
    points = np.asarray(xy, np.float32)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ShapeError("xy", expected="(N, 2)", actual=str(points.shape))
    if np.shape(response) != (len(points),):
        raise ShapeError("response", expected=f"({len(points)},)", actual=str(np.shape(response)))
    if not np.isfinite(points).all():
        raise ShapeError("xy", expected="finite pixels", actual="NaN or infinity")
    return points
