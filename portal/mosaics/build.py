"""Result of the engine as typed values, for the service that stores it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class BuiltFrame:
    """A frame of the engine's result; see ``ml.mosaic.result.FrameResult``."""

    index: int
    pts: int
    H_mosaic_from_frame: list[list[float]] | None
    mesh: list[list[list[float]]] | None
    status: str
    reason: str
    links: int
    error_px: float | None
    reason_code: str = ""
    component: int | None = None
    is_key: bool = True
    covariance: list[list[float]] | None = None
    uncertainty_px: float | None = None
    sharpness: float | None = None


@dataclass(frozen=True, slots=True)
class BuiltComponent:
    """A connected component: a pyramid of its own.

    Attributes:
        pyramid, preview: names inside the folder.
        levels: Tile grid, finest first, as stored in ``Canvas.levels``.
        content_hash: SHA-256 of the pyramid.
        layers: name, png, unit, minimum, maximum, downsample of each.
    """

    index: int
    pyramid: str
    preview: str
    width_px: int
    height_px: int
    levels: list[dict[str, Any]]
    content_hash: str
    anchor_index: int
    registered_count: int
    spans: list[dict[str, Any]] = field(default_factory=list)
    layers: list[dict[str, Any]] = field(default_factory=list)
    quality: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuiltMosaic:
    """A finished build in a temporary folder.

    Attributes:
        view_outline: the scope's view, frame pixels.
        engine: version and configuration hash of what made it.
        gaps: runs of frames in no mosaic, with a sentence each.
    """

    components: tuple[BuiltComponent, ...]
    motion_model: str
    frames: tuple[BuiltFrame, ...]
    seconds: float
    view_outline: list[list[float]] = field(default_factory=list)
    engine: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    gaps: list[dict[str, Any]] = field(default_factory=list)
