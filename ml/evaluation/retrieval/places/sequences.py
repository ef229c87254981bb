"""Places of a sequence with structure from motion: squares tracked by scene points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.places.scenes import PlaceRegion, Scene, sees, square
from ml.training.common.sequence import CalibratedSequence
from ml.types import ArrayBool, ArrayF64, ArrayI64


@dataclass(frozen=True, slots=True)
class SequenceConfig:
    """Selection of places of a sequence."""

    side_share: float = 0.115  # side of a place, as share of a frame's width
    spacing_share: float = 0.09  # smallest distance of two places, as share of a frame's width
    step: int = 2  # frames between those that are searched
    min_points: int = 6  # smallest number of scene points of a place
    min_seen: int = 5  # smallest number of these in another frame, see ``seen_within``
    seen_within: int = 2  # frames around another one whose scene points count as its own
    scale: tuple[float, float] = (0.4, 2.5)  # of a place in another frame, relative to the first
    near_gap: int = 5  # frames
    far_gap: int = 18  # frames


def sequence_scene(sequence: CalibratedSequence, config: SequenceConfig) -> Scene:
    """Places of a sequence.

    A place is a square around a scene point; in another frame it is mapped by a similarity fitted
    to its scene points, projected by the known poses.

    Raises:
        BadInputError: the sequence holds no scene points, or no place is seen twice.
    """
    if not len(sequence.points):
        raise BadInputError(f"{sequence.name}: no scene points: places cannot be followed")
    frames = [sequence.read(index) for index in range(len(sequence.frames))]
    full_mask = np.ones(frames[0].shape[:2], np.bool_)
    mask = full_mask if sequence.mask is None else sequence.mask
    followed = _Followed(sequence, config, mask)
    regions: list[PlaceRegion] = []
    centres: list[ArrayF64] = []
    for start in range(0, len(frames), config.step):
        for centre, points in followed.candidates(start, centres):
            outlines = followed.visible_outlines(start, centre, points)
            if len(outlines) >= 2:
                regions += [
                    PlaceRegion(frame, len(centres), outline) for frame, outline in outlines
                ]
                centres.append(np.median(sequence.points[points], axis=0))
    if not regions:
        raise BadInputError(f"{sequence.name}: no place is seen in two frames")
    return Scene(
        name=sequence.name,
        truth="sfm",
        frames=frames,
        mask=mask,
        regions=tuple(regions),
        visits=(0,) * len(frames),
        near_gap=config.near_gap,
        far_gap=config.far_gap,
    )


class _Followed:
    """Lookup of the scene points of places."""

    def __init__(
        self, sequence: CalibratedSequence, config: SequenceConfig, mask: ArrayBool
    ) -> None:
        self.sequence, self.config, self.mask = sequence, config, mask
        width = mask.shape[1]
        self.side, self.spacing = config.side_share * width, config.spacing_share * width
        rows = sequence.seen
        count = len(sequence.frames)
        self.used = [frozenset(rows[rows[:, 1] == f, 0].tolist()) for f in range(count)]

    def candidates(
        self, frame: int, centres: list[ArrayF64]
    ) -> Iterator[tuple[ArrayF64, ArrayI64]]:
        """Centres (2,) and points of squares in a frame, far from all earlier places."""
        points = np.array(sorted(self.used[frame]), np.int64)
        xy = self.sequence.project(points, frame)
        for centre in xy:
            inside = points[(np.abs(xy - centre) < self.side / 2).all(axis=1)]
            if len(inside) < self.config.min_points:
                continue
            if not sees(square(centre, self.side), self.mask):
                continue
            placed = [self._project(world, frame) for world in centres]
            if all(np.hypot(*(other - centre)) >= self.spacing for other in placed):
                yield centre, inside

    def visible_outlines(
        self, start: int, centre: ArrayF64, points: ArrayI64
    ) -> list[tuple[int, ArrayF64]]:
        """(frame, outline) of each searched frame that sees the whole place."""
        config, outlines = self.config, []
        for frame in range(0, len(self.used), config.step):
            near = range(max(0, frame - config.seen_within), frame + config.seen_within + 1)
            used = frozenset().union(*(self.used[f] for f in near if f < len(self.used)))
            shared = np.array([p for p in points if p in used], np.int64)
            outline = self._transfer(start, frame, centre, shared)
            if outline is not None and sees(outline, self.mask):
                outlines.append((frame, outline))
        return outlines

    def _transfer(
        self, start: int, frame: int, centre: ArrayF64, shared: ArrayI64
    ) -> ArrayF64 | None:
        if len(shared) < self.config.min_seen:
            return None
        a = self.sequence.project(shared, start).astype(np.float32)
        b = self.sequence.project(shared, frame).astype(np.float32)
        # Depth within a place moves its points, by up to a tenth of its side.
        matrix, agrees = cv2.estimateAffinePartial2D(
            a, b, method=cv2.RANSAC, ransacReprojThreshold=self.side / 10
        )
        if matrix is None or int(agrees.sum()) < self.config.min_seen:
            return None
        low, high = self.config.scale
        if not low < float(np.sqrt(abs(np.linalg.det(matrix[:, :2])))) < high:
            return None
        corners = square(centre, self.side)
        return np.asarray(corners @ matrix[:, :2].T + matrix[:, 2])

    def _project(self, world: ArrayF64, frame: int) -> ArrayF64:
        camera_from_world = np.linalg.inv(self.sequence.world_from_camera[frame])
        pixel = self.sequence.camera @ (
            camera_from_world[:3, :3] @ world + camera_from_world[:3, 3]
        )
        return np.asarray(pixel[:2] / pixel[2])
