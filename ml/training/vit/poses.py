"""Camera motions of a calibrated sequence, to train on in place of random ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.errors import BadInputError
from ml.training.common.sequence import CalibratedSequence, read_sequence
from ml.types import ArrayF64

MOST_APART = 16
"""Frames: the gap of the paper's pairs (section IV-A)."""


@dataclass(frozen=True, slots=True)
class PoseMotions:
    """Motions between the frames of a sequence.

    Attributes:
        T_b_from_a: (N, 4, 4) float64, shifts in units of the median depth of what frame a shows.
        focal: focal length, share of a frame's width.
    """

    T_b_from_a: ArrayF64
    focal: float

    def moved_camera(
        self, rng: np.random.Generator, *, distance: float, side_px: int, width_px: float
    ) -> tuple[ArrayF64, ArrayF64]:
        """A camera that looks at a crop, and one of the motions.

        The crop stands for the middle of a frame: where in the frame it was cut is left out.

        Args:
            distance: depth of the crop's middle. side_px: of the crop with its context. width_px:
                of the whole frame, in pixels of the crop.
        Returns:
            (3, 3) K and (4, 4) T_t_from_s in the unit of ``distance``.
        """
        middle = (side_px - 1) / 2
        focal = self.focal * width_px
        camera = np.array([[focal, 0, middle], [0, focal, middle], [0, 0, 1.0]])
        matrix = self.T_b_from_a[int(rng.integers(len(self.T_b_from_a)))].copy()
        matrix[:3, 3] *= distance
        return camera, matrix


def pose_motions(folder: Path) -> PoseMotions:
    """The motions between all frames up to ``MOST_APART`` apart, forwards and back.

    Raises:
        BadInputError: no such sequence, or one without scene points, whose shifts have no scale.
    Source: dinov2-adaptation-endoscopic-matching, section IV-C, table IV, "ground-truth poses".
    """
    sequence = read_sequence(folder)
    depths = [_median_depth(sequence, index) for index in range(len(sequence.frames))]
    motions = []
    for a, depth in enumerate(depths):
        for b in range(max(0, a - MOST_APART), min(len(depths), a + MOST_APART + 1)):
            if a != b and depth > 0:
                poses = sequence.world_from_camera
                motion = np.linalg.inv(poses[b]) @ poses[a]
                motion[:3, 3] /= depth
                motions.append(motion)
    if not motions:
        raise BadInputError(f"{folder.name}: expected frames that see scene points, found none")
    width_px = sequence.read(0).shape[1]
    return PoseMotions(np.stack(motions), float(sequence.camera[0, 0]) / width_px)


def _median_depth(sequence: CalibratedSequence, index: int) -> float:
    """Of the scene points that were used in a frame; 0 if none lies in front of it."""
    rows = sequence.seen[sequence.seen[:, 1] == index, 0]
    camera_from_world = np.linalg.inv(sequence.world_from_camera[index])
    z = sequence.points[rows] @ camera_from_world[2, :3] + camera_from_world[2, 3]
    return float(np.median(z[z > 0])) if (z > 0).any() else 0.0
