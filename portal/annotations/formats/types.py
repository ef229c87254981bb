"""Interfaces and data types shared by all annotation formats."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from ml.types import DisplayRange
from portal.annotations.documents import DocumentError
from portal.annotations.models import Roi, VideoEvent
from portal.archive.models import Canvas, CanvasKind, Video
from portal.core.text import name_key

NO_LABEL = "No label"
"""Displayed and exported name of ROIs without a label."""
ASAP_NO_GROUP = "None"
"""Group that ASAP writes for annotations without one."""
_NO_LABEL_KEYS = {name_key(NO_LABEL), name_key(ASAP_NO_GROUP)}


def is_no_label(name: str) -> bool:
    """Return whether a name of a class means that there is no label."""
    return name_key(name) in _NO_LABEL_KEYS


class FormatError(DocumentError):
    """A document that is not of the format it is read as, or has more than is read."""

    code = "invalid-document"


@dataclass(frozen=True, slots=True)
class Plane:
    """The canvas, as far as a format has to know it.

    Attributes:
        mpp_x, mpp_y: microns per pixel; None if unknown.
        is_video: regions lie on frames.
        pixels_path: of the file behind it, below the storage root
        frames_path: of a video's
            frame table.
        display_range: of pixels of more than 8 bits.
        time_base_s: of a video: seconds of one step of its PTS; 0 if there is no video.
        file_size: width and height of a video's frames in its file, upright, where the canvas has
            others; None where they are the same.
    """

    canvas_id: uuid.UUID
    name: str
    width_px: int
    height_px: int
    mpp_x: float | None
    mpp_y: float | None
    is_video: bool = False
    pixels_path: str = ""
    frames_path: str = ""
    time_base_s: float = 0.0
    case_id: uuid.UUID | None = None
    file_size: tuple[int, int] | None = None
    display_range: DisplayRange | None = None

    @property
    def sizes_text(self) -> str:
        """The sizes that images of it have, for messages."""
        size = f"{self.width_px} x {self.height_px}"
        if self.file_size is None:
            return size
        width, height = self.file_size
        return f"{size}, and {width} x {height} in its file"


def plane_of(canvas: Canvas) -> Plane:
    """The facts of a canvas."""
    video = getattr(canvas, "video", None) if canvas.kind == CanvasKind.VIDEO else None
    return Plane(
        canvas_id=canvas.pk,
        name=canvas.name,
        width_px=canvas.width_px,
        height_px=canvas.height_px,
        mpp_x=canvas.mpp_x,
        mpp_y=canvas.mpp_y,
        is_video=canvas.kind == CanvasKind.VIDEO,
        pixels_path=canvas.pixels_path,
        frames_path=video.frames_path if video else "",
        time_base_s=float(video.time_base_s) if video else 0.0,
        case_id=canvas.case_id,
        file_size=_file_size(canvas, video),
        display_range=canvas.shown_range,
    )


def _file_size(canvas: Canvas, video: Video | None) -> tuple[int, int] | None:
    geometry = video.display_geometry if video else None
    if geometry is None or geometry.file_size == (canvas.width_px, canvas.height_px):
        return None
    return geometry.file_size


class FormatReader(Protocol):
    """A format that comes in.

    Attributes:
        name: of the query (``format=``).
        title: for people.
    """

    name: str
    title: str

    def sniff(self, head: bytes) -> bool:
        """Return whether a document that begins so is of this format."""
        ...

    def read(self, stream: IO[bytes], plane: Plane) -> Iterator[Any]:
        """Features in order: ``qupath.Feature``, ``qupath.Problem``, or GeoJSON features.

        Args:
            stream: seekable, at its beginning; of it a part is in memory at a time.
        Raises:
            DocumentError: nothing of the document can be read.
        """
        ...

    def image_decided(self, stream: IO[bytes], plane: Plane) -> str:
        """Sentence on the image of the document that was taken for the canvas; empty
        where the format names none. Raises as ``read``."""
        ...


Rois = Callable[[], Iterator[Roi]]
"""The live regions of the canvas with their labels, from the first one each time."""


@dataclass(frozen=True, slots=True)
class ExportChoices:
    """Options of an export.

    Attributes:
        downsample: Level-0 pixels per pixel of a label mask.
        roi_id, window: Extent of a picture: one ROI, or left, top, right, bottom; else the canvas.
        width_px: Width of a picture.
        frame: Index and PTS of a video frame.
        events: Live events of the video, by their first frame.
    """

    downsample: int = 1
    roi_id: uuid.UUID | None = None
    window: tuple[float, float, float, float] | None = None
    width_px: int = 1600
    frame: tuple[int | None, int | None] = (0, None)
    events: Iterable[VideoEvent] = ()


class FormatWriter(Protocol):
    """A format that goes out.

    Attributes:
        suffix: of the file, with its dot.
        media_type: of the answer.
        for_video: whether regions on frames can be written.
    """

    name: str
    title: str
    suffix: str
    media_type: str
    for_video: bool

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """The document, piece by piece.

        Raises:
            InvalidInputError: this canvas cannot be written so, and why.
        """
        ...
