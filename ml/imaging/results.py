"""Results of the limited child process, defined once for the child and its caller.

Sent as JSON: ``dataclasses.asdict`` in the child, ``ml.config.config_from_dict`` in the caller.
No decoder is imported: the caller must not need one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ml.types import DisplayGeometry, DisplayRange, Level


@dataclass(frozen=True, slots=True)
class SlideInspection:
    """Result of inspecting a slide or still.

    Attributes:
        kind: "slide" or "still".
        properties: Allow-listed properties; empty for a still.
        modality: "histology" or "endoscopy"; of a still as proposed from its picture.
        stain: Stain named by the file, one of ``staining.terms.STAIN_NAMES``; "" if none.
        levels: The tile grid, finest first; of the pyramid if one was written.
        thumbnail: Name in the derived folder.
        pixels: Name in the derived folder, or a path below it for a slide of several files; None if
            tiles come from the original.
        display_range: Initial display range for more than 8 bits; None for 8 bits.
        warnings: Sentences for the user.
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
    modality: str = "histology"
    display_range: DisplayRange | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoInspection:
    """Result of inspecting a video.

    Attributes:
        warnings: Sentences for the user.
        frames, poster: Names in the derived folder.
        pixels: Name of the video extracted from a DICOM object; None for other videos.
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
class QueryImage:
    """A decoded query picture.

    Attributes:
        width_px, height_px: Size of the written picture.
        reduced_by: Original pixels per written pixel.
    """

    width_px: int
    height_px: int
    reduced_by: float


@dataclass(frozen=True, slots=True)
class RenditionResult:
    """The rendition of a video.

    Attributes:
        rendition: Name in the derived folder.
        offset_pts: As in ``ml.imaging.videos.transcode.Rendition``.
    """

    rendition: str
    offset_pts: int


@dataclass(frozen=True, slots=True)
class PictureBox:
    """A rectangle in a picture, as shares of its sides; x right, y down."""

    x: float
    y: float
    width: float
    height: float


PixelKind: TypeAlias = Literal["date", "time", "number", "name", "other", "face", "outside_body"]
TEXT_KINDS: tuple[PixelKind, ...] = ("date", "time", "number", "name", "other")
IDENTIFYING_TEXT: tuple[PixelKind, ...] = ("date", "time", "number", "name")


@dataclass(frozen=True, slots=True)
class PhiDetectionConfig:
    """Configuration of the search for text and persons in the pixels of a file.

    Attributes:
        text: Search for text.
        faces: Search for faces and, in a video, for frames outside the body.
        known_words: Texts of the case and of the file's metadata; each of their words identifies.
        ignored_words: Words and phrases of a lab that identify nobody, such as a device's name.
    """

    text: bool = True
    faces: bool = True
    known_words: tuple[str, ...] = ()
    ignored_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PixelFinding:
    """A place in a picture with text or a person.

    Attributes:
        kind: Kind of text, by how it identifies a patient: "date", "time" (of a day that a nearby
            date names), "number", "name" or "other" (not identifying); "face"; "outside_body", a
            full frame that looks as if taken outside the body.
        x, y, width, height: As shares of the picture's sides.
        text: Recognised text; "" for other findings.
        at_s: Seconds into a video; None in a picture, and for text that most of the frames show.
    """

    kind: PixelKind
    x: float
    y: float
    width: float
    height: float
    text: str = ""
    at_s: float | None = None


@dataclass(frozen=True, slots=True)
class PixelInspection:
    """Text and persons found in a file's pixels.

    Attributes:
        picture: name in the folder of a JPEG that shows them; None if nothing was found.
    """

    findings: tuple[PixelFinding, ...]
    picture: str | None
