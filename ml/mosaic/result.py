"""What a mosaic is when it is done, and its manifest on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ml.errors import CorruptFileError
from ml.types import ArrayF64

MANIFEST_NAME = "mosaic.json"
PYRAMID_NAME = "mosaic.tif"
PREVIEW_NAME = "preview.jpg"
FORMAT_VERSION = 1

REGISTERED, SKIPPED, FAILED = "registered", "skipped", "failed"


@dataclass(frozen=True, slots=True)
class MosaicFrame:
    """One frame of the source.

    Attributes:
        index: position in the source. pts: presentation time stamp (the index for folders).
        H_mosaic_from_frame: (3, 3) float64, frame pixels to mosaic pixels; None unless registered.
        status: "registered", "skipped" (unusable) or "failed" (usable, not placed).
        reason: why not registered, fit for a user; "" where registered.
        links: pairs that hold the frame. error_px: median residual of these, frame pixels.
    """

    index: int
    pts: int
    H_mosaic_from_frame: ArrayF64 | None
    status: str
    reason: str = ""
    links: int = 0
    error_px: float | None = None


@dataclass(frozen=True, slots=True)
class MosaicResult:
    """A finished mosaic; ``path`` is the pyramidal TIFF, ``preview`` a small JPEG."""

    frames: tuple[MosaicFrame, ...]
    path: Path
    preview: Path
    manifest: Path
    width_px: int
    height_px: int
    model: str
    anchor_index: int
    config_hash: str

    @property
    def n_registered(self) -> int:
        """Frames that are part of the mosaic."""
        return sum(frame.status == REGISTERED for frame in self.frames)


def to_manifest(result: MosaicResult) -> dict[str, Any]:
    """The manifest as plain JSON values; transforms rounded to 12 significant digits."""
    return {
        "format": FORMAT_VERSION,
        "pyramid": result.path.name,
        "preview": result.preview.name,
        "width_px": result.width_px,
        "height_px": result.height_px,
        "model": result.model,
        "anchor_index": result.anchor_index,
        "config_hash": result.config_hash,
        "n_registered": result.n_registered,
        "frames": [_frame_json(frame) for frame in result.frames],
    }


def read_manifest(folder: Path) -> MosaicResult:
    """Read a finished mosaic's folder.

    Raises:
        CorruptFileError: no manifest, or one that is damaged.
    """
    path = Path(folder) / MANIFEST_NAME
    try:
        data = json.loads(path.read_text())
        frames = tuple(_frame_from_json(item) for item in data["frames"])
        return MosaicResult(
            frames=frames,
            path=path.parent / data["pyramid"],
            preview=path.parent / data["preview"],
            manifest=path,
            width_px=int(data["width_px"]),
            height_px=int(data["height_px"]),
            model=str(data["model"]),
            anchor_index=int(data["anchor_index"]),
            config_hash=str(data["config_hash"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{MANIFEST_NAME}: expected a mosaic manifest, got {error}"
        raise CorruptFileError(message) from None


def _frame_json(frame: MosaicFrame) -> dict[str, Any]:
    matrix = frame.H_mosaic_from_frame
    rows = None if matrix is None else [[float(f"{v:.12g}") for v in row] for row in matrix]
    error = None if frame.error_px is None else round(frame.error_px, 4)
    return {
        "index": frame.index,
        "pts": frame.pts,
        "H_mosaic_from_frame": rows,
        "status": frame.status,
        "reason": frame.reason,
        "links": frame.links,
        "error_px": error,
    }


def _frame_from_json(item: dict[str, Any]) -> MosaicFrame:
    rows = item["H_mosaic_from_frame"]
    return MosaicFrame(
        index=int(item["index"]),
        pts=int(item["pts"]),
        H_mosaic_from_frame=None if rows is None else np.array(rows, np.float64),
        status=str(item["status"]),
        reason=str(item["reason"]),
        links=int(item["links"]),
        error_px=item["error_px"],
    )
