"""Objects of the portal, as frozen values with the field names of REST.

Fields that a newer portal adds are left out; ``tests/client`` compares these with the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason for the failure of a file, a mosaic or a job."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that the token's owner is a member of."""

    id: str
    name: str
    slug: str


@dataclass(frozen=True, slots=True)
class Membership:
    """A lab and your role in it: viewer, annotator, reviewer or manager."""

    lab: Lab
    role: str


@dataclass(frozen=True, slots=True)
class Case:
    """A case: everything under one accession number."""

    id: str
    lab: str
    accession: str
    patient_key: str
    organ: str
    procedure: str
    diagnosis: str
    tags: tuple[str, ...]
    slide_count: int
    video_count: int
    mosaic_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Slide:
    """A slide or still image. ROIs are drawn on its ``canvas``, once the state is *ready*."""

    id: str
    case: str
    name: str
    state: str
    error: Failure | None
    canvas: str | None
    sha256: str
    size_bytes: int
    removed: list[str]
    vendor: str
    objective_power: float | None
    stain: str
    is_stain_by_hand: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Video:
    """A video. ROIs are drawn on its ``canvas``, once the state is *ready*."""

    id: str
    case: str
    name: str
    state: str
    error: Failure | None
    canvas: str | None
    sha256: str
    size_bytes: int
    removed: list[str]
    duration_s: float
    fps: float
    frame_count: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a canvas' pyramid, in pixels; tiles of ``tile_width`` by ``tile_height``."""

    width: int
    height: int
    downsample: float
    tile_width: int
    tile_height: int


@dataclass(frozen=True, slots=True)
class Canvas:
    """Plane of ROIs: ``width`` by ``height`` level-0 pixels, y down."""

    id: str
    kind: str
    name: str
    width: int
    height: int
    stain: str
    mpp_x: float | None
    mpp_y: float | None
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a video: its number, presentation time stamp and seconds."""

    index: int
    pts: int
    time_s: float


@dataclass(frozen=True, slots=True)
class Roi:
    """A region of interest. ``geometry``: GeoJSON in level-0 pixels, see ``shapes.shape_of``."""

    id: str
    canvas: str
    frame: Frame | None
    geometry: Mapping[str, Any] | None
    area_px: float
    area_um2: float | None
    label: str | None
    name: str
    description: str
    properties: Mapping[str, str]
    shape: str
    locked: bool
    review_state: str
    version: int
    is_embedded: bool
    created_by: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A step of an ROI's review (``kind`` is the new state), or a ``comment``."""

    id: str
    kind: str
    text: str
    version: int
    author: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a lab."""

    id: str
    lab: str
    name: str
    color: str
    parent: str | None
    retired: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A job. ``state``: queued, running, succeeded, failed or cancelled."""

    id: str
    kind: str
    title: str
    state: str
    outcome: str
    phase: str
    progress: Mapping[str, int]
    seconds_left: float | None
    target_id: str | None
    error: Mapping[str, str] | None

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.state in {"succeeded", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class UploadItem:
    """The slide or video that an upload became."""

    id: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload. ``state``: receiving, checking, stored, refused,
    quarantined or withheld (the original of a redacted file).

    ``case`` is None for an exported case that has not been imported yet.
    """

    id: str
    case: str | None
    filename: str
    state: str
    offset: int
    size_bytes: int
    error: Failure | None
    item: UploadItem | None


@dataclass(frozen=True, slots=True)
class Component:
    """One connected part of a mosaic, with a separate canvas."""

    index: int
    canvas: str
    width: int
    height: int
    registered_count: int


@dataclass(frozen=True, slots=True)
class Mosaic:
    """A mosaic of a video. ``state``: preparing, ready or failed."""

    id: str
    case: str
    video: str
    canvas: str | None
    name: str
    state: str
    error: Failure | None
    frame_count: int
    registered_count: int
    motion_model: str
    components: tuple[Component, ...]


def id_of(value: Any) -> str:
    """Return the id of an object; an id is returned unchanged."""
    return value if isinstance(value, str) else str(value.id)
