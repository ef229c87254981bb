"""What the limited child process reports of a file, defined once for the child and its caller.

It comes as JSON: ``dataclasses.asdict`` in the child, ``ml.config.config_from_dict`` in the caller.
No decoder is imported: the caller must not need one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ml.types import DisplayGeometry, DisplayRange, Level


@dataclass(frozen=True, slots=True)
class SlideInspection:
    """What a slide or still is.

    Attributes:
        kind: "slide" or "still".
        properties: allow-listed; empty for a still.
        stain: what the file names, as one of ``ml.imaging.staining.STAIN_NAMES``; "" if none.
        levels: the tile grid, finest first; of the pyramid where one was written.
        thumbnail: name in the derived folder. pixels: the same, a path below it for a slide of
            several files; None if tiles come from the original.
        display_range: in which values of more than 8 bits are shown at first; None for 8 bits.
        warnings: sentences for the user.
    """

    kind: str
    width_px: int
    height_px: int
    mpp_x: float | None
    mpp_y: float | None
    vendor: str
    objective_power: float | None
    properties: dict[str, str]
    levels: tuple[Level, ...]
    has_icc_profile: bool
    thumbnail: str
    pixels: str | None
    stain: str = ""
    display_range: DisplayRange | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoInspection:
    """What a video is.

    Attributes:
        warnings: sentences for the user. frames, poster: names in the derived folder.
        pixels: the same, of the video that a DICOM object held; None for other videos.
    """

    kind: str
    geometry: DisplayGeometry
    codec: str
    container: str
    frame_count: int
    duration_s: float
    fps: float
    time_base_s: float
    browser_playable: bool
    warnings: tuple[str, ...]
    frames: str
    poster: str
    pixels: str | None = None

    @property
    def width_px(self) -> int:
        """Width of the displayed picture."""
        return self.geometry.size[0]

    @property
    def height_px(self) -> int:
        """Height of the displayed picture."""
        return self.geometry.size[1]


@dataclass(frozen=True, slots=True)
class MadePicture:
    """A decoded picture: its size as written; ``reduced_by``, original pixels per pixel of it."""

    width_px: int
    height_px: int
    reduced_by: float


@dataclass(frozen=True, slots=True)
class MadeRendition:
    """The rendition of a video.

    Attributes:
        rendition: name in the derived folder. offset_pts: as ``ml.imaging.videos.Rendition``.
    """

    rendition: str
    offset_pts: int


@dataclass(frozen=True, slots=True)
class Revealing:
    """A place in a picture that may reveal somebody.

    Attributes:
        kind: "text"; "face"; "outside", a whole frame that looks taken outside the body.
        x, y, width, height: as shares of the picture's sides.
        at_s: seconds into a video; None in a picture, and for text that stands throughout a video.
    """

    kind: Literal["text", "face", "outside"]
    x: float
    y: float
    width: float
    height: float
    at_s: float | None = None


@dataclass(frozen=True, slots=True)
class LookedThrough:
    """What a look at the pixels found.

    Attributes:
        picture: name in the folder of a JPEG that shows it; None if nothing was found.
    """

    found: tuple[Revealing, ...]
    picture: str | None
