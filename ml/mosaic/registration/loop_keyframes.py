"""Store of loop keyframes, whose key points are on disk, however long the video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ml.mosaic.direct.pyramid import DirectView
from ml.mosaic.frames.views import FrameView
from ml.mosaic.registration.features import FrameFeatures
from ml.types import Keypoints


class LoopKeyframeStore:
    """One ``.npz`` per loop keyframe; memory holds the positions only.

    When more than ``cap`` have come, every second one is dropped and from then on every second
    one is taken, so that loop search costs the same for a video of any length.
    """

    def __init__(self, folder: Path, *, cap: int) -> None:
        self._folder, self._cap = folder, max(cap, 2)
        self._step, self._count = 1, 0
        self.positions: list[int] = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, features: FrameFeatures) -> None:
        """Add a loop keyframe."""
        if self._take(features.view.position):
            self._write(features)

    def clear(self) -> None:
        """Remove the files of an unfinished run from the folder."""
        for path in self._folder.glob("loop-keyframe-*.npz"):
            path.unlink()
        self.positions, self._step, self._count = [], 1, 0

    def restore(self, positions: tuple[int, ...]) -> None:
        """Restore the positions of an earlier run, whose files are in the folder."""
        self.positions = list(positions)

    def resume(self, marked: tuple[int, ...]) -> bool:
        """Resume after those loop keyframes were added; False if the file of one is missing."""
        self.positions, self._step, self._count = [], 1, 0
        for position in marked:
            self._take(position)
        return all(self._path(position).is_file() for position in self.positions)

    def _take(self, position: int) -> bool:
        self._count += 1
        if (self._count - 1) % self._step:
            return False
        self.positions.append(position)
        if len(self.positions) > self._cap:
            for dropped in self.positions[1::2]:
                self._path(dropped).unlink(missing_ok=True)
            self.positions = self.positions[::2]
            self._step *= 2
        return self.positions[-1] == position

    def load(self, position: int) -> FrameFeatures:
        """Read a loop keyframe back."""
        with np.load(self._path(position)) as data:
            count = int(data["levels"])
            direct = DirectView(
                tuple(data[f"image{i}"].astype(np.float32) for i in range(count)),
                tuple(data[f"mask{i}"] for i in range(count)),
            )
            view = FrameView(position, data["grey"], data["mask"], direct, data["colour"])
            points = Keypoints(data["xy"], data["response"], data["size"], data["angle"])
            return FrameFeatures(view, points, data["rows"].astype(np.float32))

    def _write(self, features: FrameFeatures) -> None:
        view, points = features.view, features.keypoints
        levels: dict[str, Any] = {  # savez has a bool among its own keywords
            f"image{i}": m.astype(np.float16) for i, m in enumerate(view.direct.images)
        }
        levels |= {f"mask{i}": m for i, m in enumerate(view.direct.masks)}
        np.savez(
            self._path(view.position),
            levels=len(view.direct.images),
            grey=view.grey,
            mask=view.mask,
            colour=view.colour,
            xy=points.xy,
            response=points.response,
            size=points.size_px,
            angle=points.angle_deg,
            rows=features.rows.astype(np.float16),
            **levels,
        )

    def _path(self, position: int) -> Path:
        return self._folder / f"loop-keyframe-{position}.npz"
