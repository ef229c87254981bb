"""Answers of searches, reports, maps and learning, with the field names of REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelName:
    """A label in an answer."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class HitRoi:
    """The region of a hit; ``bounds``: left, top, right, bottom in level-0 pixels."""

    id: str
    name: str
    version: int
    label: LabelName | None
    review_state: str
    bounds: tuple[float, ...]
    frame_pts: int | None


@dataclass(frozen=True, slots=True)
class HitCase:
    """The case of a hit."""

    id: str
    accession: str
    organ: str
    diagnosis: str


@dataclass(frozen=True, slots=True)
class HitCanvas:
    """The canvas of a hit."""

    id: str
    name: str
    kind: str
    stain: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A similar region.

    Attributes:
        p_value: share of unrelated regions that are as close; None for an encoder without
            calibration.
    """

    rank: int
    distance: float
    p_value: float | None
    is_close: bool | None
    roi: HitRoi
    case: HitCase
    canvas: HitCanvas
    viewer_url: str


@dataclass(frozen=True, slots=True)
class Similar:
    """Answer to a search. ``nothing_close``: no result is nearer than unrelated regions.

    Either ``roi`` or ``query`` is set, by the kind of search; the other is None.
    """

    roi: str | None
    query: str | None
    k: int
    nothing_close: bool
    votes: Mapping[str, Any]
    facets: Mapping[str, Any] | None
    results: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A saved answer to a search."""

    id: str
    lab: str
    name: str
    made_by: str
    created_at: datetime
    canvas: str | None
    case: str | None


@dataclass(frozen=True, slots=True)
class RegionMap:
    """A map of a lab's regions.

    ``regions``: number of visible regions; ``newer``: number of regions newer than the map.
    """

    id: str
    lab: str
    created_at: datetime
    is_calibrated: bool
    regions: int
    newer: int


@dataclass(frozen=True, slots=True)
class Learning:
    """A metric or an encoder learned from a lab's archive.

    Attributes:
        use: Whether the lab's searches use it: "no", "preparing" or "yes".
        encoder: The learned encoder; None if nothing better was learned.
        compared_with: The encoder that the lab's searches used at the time of the comparison.
        result: Comparison with ``compared_with``; None until it is done.
        training: Description of the training of an encoder.
    """

    id: str
    lab: str
    kind: str
    method: str
    steps: int | None
    hours: float | None
    job: str | None
    is_better: bool | None
    use: str
    base: Mapping[str, Any]
    compared_with: Mapping[str, Any] | None
    encoder: Mapping[str, Any] | None
    result: Mapping[str, Any] | None
    training: Mapping[str, Any] | None
