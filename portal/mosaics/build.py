"""What the engine made, as values with names and types for the service that writes it down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BuiltFrame:
    """One frame as the engine left it; see ``ml.mosaic.MosaicFrame``."""

    index: int
    pts: int
    H_mosaic_from_frame: list[list[float]] | None
    status: str
    reason: str
    links: int
    error_px: float | None


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build in a temporary folder.

    Attributes:
        pyramid, preview: names inside the folder.
        levels: the tile grid, finest first, as kept in ``Canvas.levels``.
        content_hash: SHA-256 of the pyramid.
    """

    pyramid: str
    preview: str
    width_px: int
    height_px: int
    levels: list[dict[str, Any]]
    content_hash: str
    motion_model: str
    anchor_index: int
    frames: tuple[BuiltFrame, ...]
    seconds: float
