"""What the limited child process said of a file, as values with names and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SlideInspection:
    """Of a slide or still; see ``ml.imaging.ingest.inspect_slide``.

    Attributes:
        levels: the tile grid, finest first, as kept in ``Canvas.levels``.
        thumbnail, pixels: names inside the derived folder; no pixels means the original's own.
        content_hash: SHA-256 of the file that tiles come from.
    """

    kind: str
    width_px: int
    height_px: int
    mpp_x: float | None
    mpp_y: float | None
    vendor: str
    objective_power: float | None
    properties: dict[str, str]
    levels: list[dict[str, Any]]
    thumbnail: str
    pixels: str | None
    content_hash: str
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, Any], *, content_hash: str) -> SlideInspection:
        """From the child's JSON."""
        return cls(
            kind=str(found["kind"]),
            width_px=int(found["width_px"]),
            height_px=int(found["height_px"]),
            mpp_x=found.get("mpp_x"),
            mpp_y=found.get("mpp_y"),
            vendor=str(found.get("vendor", "")),
            objective_power=found.get("objective_power"),
            properties=dict(found.get("properties", {})),
            levels=list(found["levels"]),
            thumbnail=str(found["thumbnail"]),
            pixels=found.get("pixels"),
            content_hash=content_hash,
            warnings=tuple(found.get("warnings", ())),
        )


@dataclass(frozen=True, slots=True)
class VideoInspection:
    """Of a video; see ``ml.imaging.ingest.inspect_video``.

    Attributes:
        frames, thumbnail, rendition: names inside the derived folder; no rendition means that the
            browser plays the original.
        media_offset_s: what the rendition took off every frame's time.
    """

    width_px: int
    height_px: int
    codec: str
    container: str
    duration_s: float
    fps: float
    frame_count: int
    time_base_s: float
    frames: str
    thumbnail: str
    rendition: str | None
    media_offset_s: float
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, found: Mapping[str, Any], *, rendition: str | None = None, offset_pts: int = 0
    ) -> VideoInspection:
        """From the child's JSON."""
        return cls(
            width_px=int(found["width_px"]),
            height_px=int(found["height_px"]),
            codec=str(found.get("codec", "")),
            container=str(found.get("container", "")),
            duration_s=float(found.get("duration_s", 0)),
            fps=float(found.get("fps", 0)),
            frame_count=int(found["frame_count"]),
            time_base_s=float(found["time_base_s"]),
            frames=str(found["frames"]),
            thumbnail=str(found["poster"]),
            rendition=rendition,
            media_offset_s=offset_pts * float(found["time_base_s"]),
            warnings=tuple(found.get("warnings", ())),
        )
