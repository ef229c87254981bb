"""Keyframes as the local fit compares them: prepared once, straightened by their meshes so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.mosaic.direct.pyramid import LEVELS
from ml.mosaic.frames.sources import FrameSource
from ml.mosaic.frames.survey import Survey, usable_frames
from ml.mosaic.frames.views import frame_view
from ml.types import ArrayBool, ArrayF32, ArrayF64

VIEWS_IN_MEMORY = 64
"""Straightened views of a round; links reach some twenty keyframes back."""


@dataclass(frozen=True, slots=True)
class KeyframeViews:
    """Keyframes prepared for direct alignment, on disk: per level (N, h, w) images and masks."""

    images: tuple[np.memmap, ...]
    masks: tuple[np.memmap, ...]

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(h, w) of each level."""
        return tuple((image.shape[1], image.shape[2]) for image in self.images)

    @classmethod
    def read(
        cls, source: FrameSource, survey: Survey, keys: Sequence[int], folder: Path
    ) -> KeyframeViews:
        """Prepare the keyframes at these positions, ascending, into files of a folder.

        Raises:
            BadInputError: the source no longer has all of them.
        """
        row = {key: i for i, key in enumerate(keys)}
        missing = set(keys)
        views: KeyframeViews | None = None
        for position, rgb in usable_frames(source, survey, first=keys[0]):
            if position > keys[-1]:
                break
            if position not in row:
                continue
            view = frame_view(position, rgb, survey).direct
            missing.discard(position)
            if views is None:
                views = cls(
                    tuple(_raw(folder / f"{i}.raw", np.float32, len(keys), image.shape)
                          for i, image in enumerate(view.images)),
                    tuple(_raw(folder / f"{i}.seen", np.uint8, len(keys), mask.shape)
                          for i, mask in enumerate(view.masks)),
                )  # fmt: skip
            for level in range(len(LEVELS)):
                views.images[level][row[position]] = view.images[level]
                views.masks[level][row[position]] = view.masks[level]
        if views is None or missing:
            missing_text = f"{len(missing)} of {len(keys)} frames that were registered"
            raise BadInputError(f"frames: the source no longer has {missing_text}")
        return views


def _raw(path: Path, kind: type, count: int, shape: tuple[int, ...]) -> np.memmap:
    return np.memmap(path, kind, mode="w+", shape=(count, *shape))


class LevelPairs(NamedTuple):
    """Pairs of keyframes on one level.

    Attributes:
        images, masks: (N, h, w) of its keyframes.
        rows: of the two frames of each pair.
        b_from_a: (3, 3) of each, px of the first to px of the second.
    """

    images: np.memmap
    masks: np.memmap
    rows: Sequence[tuple[int, int]]
    b_from_a: Sequence[ArrayF64]


def straighten_views(
    images: np.memmap, masks: np.memmap, meshes: ArrayF64
) -> Callable[[int], tuple[ArrayF32, ArrayBool]]:
    """Function from a row to its view, straightened by its mesh, and where that is trusted."""

    @lru_cache(maxsize=VIEWS_IN_MEMORY)
    def view(row: int) -> tuple[ArrayF32, ArrayBool]:
        x, y = mesh_maps(meshes[row], (images.shape[2], images.shape[1]))
        image = cv2.remap(np.asarray(images[row]), x, y, cv2.INTER_LINEAR)
        valid = cv2.remap(np.asarray(masks[row]), x, y, cv2.INTER_NEAREST) > 0
        return np.asarray(image, np.float32), np.asarray(valid)

    return view


def mesh_maps(mesh: ArrayF64, size_px: tuple[int, int]) -> tuple[ArrayF32, ArrayF32]:
    """Two (h, w) float32 for ``cv2.remap``: where each px of a straightened frame is taken from."""
    width, height = size_px
    across, down = (
        interpolation_matrix(mesh.shape[1], width),
        interpolation_matrix(mesh.shape[0], height),
    )
    x, y = (down @ mesh[:, :, i].astype(np.float32) @ across.T for i in (0, 1))
    x += np.arange(width, dtype=np.float32)
    y += np.arange(height, dtype=np.float32)[:, None]
    return x, y


@lru_cache(maxsize=8)  # two sides of the frame and of two levels
def interpolation_matrix(nodes: int, length: int) -> ArrayF32:
    """(length, nodes): the share of each node in each px of a side, by linear interpolation.

    OpenCV's would round the place between two nodes to a 32nd of their distance.
    """
    at = np.linspace(0, nodes - 1, length)
    return np.maximum(1 - np.abs(at[:, None] - np.arange(nodes)), 0).astype(np.float32)
