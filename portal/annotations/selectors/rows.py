"""Rows of the ROI list: one query per page, outlines as stored text.

A window may have ten thousand outlines. Parsing each into points only to serialize them again takes
longer than everything else combined, and so does a copy of the canvas for every row.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Case, F, QuerySet, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Length, NullIf

from portal.annotations.marks import MARKS
from portal.annotations.models import Roi, RoiQuerySet
from portal.annotations.selectors.rois import RoiFilter
from portal.archive.models import Canvas
from portal.labs.models import User

_ROWS_AT_ONCE = 1_000  # ids of one query


@dataclass(frozen=True, slots=True)
class RoiRow:
    """An ROI of a list: fields of ``Roi``, and those for its size, time and author.

    Attributes:
        geometry_text, track_text: JSON as stored in the database; None if it was not requested.
        mark_text: Geometry of points and lines, needed to measure them; None for areas.
        canvas_kind, mpp_x, mpp_y, time_base_s: Of the canvas and its video.
        author: Name, else address; None if the account no longer exists.
    """

    id: uuid.UUID
    canvas_id: uuid.UUID
    label_id: uuid.UUID | None
    frame_index: int | None
    frame_pts: int | None
    left: float
    top: float
    right: float
    bottom: float
    centroid_x: float
    centroid_y: float
    area_px: float
    name: str
    description: str
    shape: str
    is_locked: bool
    review_state: str
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    geometry_text: str | None
    track_text: str | None
    properties_text: str
    mark_text: str | None
    canvas_kind: str
    mpp_x: float | None
    mpp_y: float | None
    time_base_s: float | None
    author: str | None


class RoiRows:
    """ROIs of a user's labs, in pages that each take one query.

    On a single canvas, ROIs shared by other labs are included.

    Args:
        largest_first: Order by area instead of creation time.
        with_outlines: Read geometry and track too.

    Attributes:
        ordered: Query set of all the ROIs, to be counted and sliced.
    """

    def __init__(
        self, user: User, filters: RoiFilter, *, largest_first: bool, with_outlines: bool
    ) -> None:
        on_one_canvas = filters.canvas_id is not None
        rois = Roi.objects.visible_to(user) if on_one_canvas else Roi.objects.owned_by(user)
        order = ("-area_px", "id") if largest_first else ("created_at", "id")
        self.ordered: RoiQuerySet = rois.filter(filters.query()).order_by(*order)
        self._with_outlines = with_outlines

    def read(self, part: QuerySet[Roi]) -> list[RoiRow]:
        """Rows of a slice of ``ordered``; a subquery of ids is sorted instead of wide rows."""
        rows = Roi.all_objects.filter(pk__in=part.values("pk")).order_by(*part.query.order_by)
        return _read(rows, with_outlines=self._with_outlines)


def roi_rows_by_id(user: User, canvas: Canvas, ids: Sequence[uuid.UUID]) -> list[RoiRow]:
    """ROI rows of a canvas by id, deleted ones included, in the given order; unknown ids are
    skipped."""
    visible = Roi.objects.visible_to(user).filter(canvas=canvas)
    by_id: dict[uuid.UUID, RoiRow] = {}
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        rows = visible.filter(pk__in=ids[start : start + _ROWS_AT_ONCE]).order_by()
        by_id |= {row.id: row for row in _read(rows, with_outlines=True)}
    return [by_id[roi_id] for roi_id in ids if roi_id in by_id]


def roi_rows_small(ids: Sequence[uuid.UUID], *, max_chars: int) -> list[RoiRow]:
    """ROIs of a set that the person is known to see, without those of long outlines."""
    long = Length(Cast("geometry", TextField())) + Length(Cast("track", TextField()))
    rows = Roi.all_objects.filter(pk__in=ids).annotate(chars=long).filter(chars__lte=max_chars)
    return _read(rows, with_outlines=True)


def _read(rows: RoiQuerySet, *, with_outlines: bool) -> list[RoiRow]:
    columns = _columns(with_outlines=with_outlines)
    return [RoiRow(*row) for row in rows.annotate(**columns).values_list(*_NAMES)]


_NAMES = tuple(field.name for field in fields(RoiRow))


def _columns(*, with_outlines: bool) -> dict[str, Combinable]:
    """Columns of a row that are not fields of ``Roi``."""
    text = TextField()
    return {
        "geometry_text": Cast("geometry", text) if with_outlines else Value(None, text),
        "track_text": Cast("track", text) if with_outlines else Value(None, text),
        "properties_text": Cast("properties", text),
        "mark_text": Case(
            When(shape__in=MARKS, then=Cast("geometry", text)),
            default=Value(None, text),
            output_field=text,
        ),
        "canvas_kind": F("canvas__kind"),
        "mpp_x": F("canvas__mpp_x"),
        "mpp_y": F("canvas__mpp_y"),
        "time_base_s": F("canvas__video__time_base_s"),
        "author": Coalesce(
            NullIf("created_by__full_name", Value("")), "created_by__email", output_field=text
        ),
    }
