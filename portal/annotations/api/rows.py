"""A list of ROIs as JSON: outlines go from the database to the answer without being parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework.renderers import JSONRenderer

from portal.annotations.geometry import area_um2
from portal.annotations.marks import mark_measures
from portal.annotations.selectors.embedded import rois_embedded
from portal.annotations.selectors.rows import RoiRow
from portal.annotations.serializers import frame_represent
from portal.archive.models import CanvasKind

_LISTS = ("results", "rois")


class JsonText(str):
    """An object that is JSON already."""

    __slots__ = ()


class RoiRowsRenderer(JSONRenderer):
    """JSON renderer that copies answers, or a list in an answer, that are JSON text already."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The bytes of the answer, UTF-8."""
        if isinstance(data, JsonText):
            return data.encode()
        name = next((key for key in _LISTS if isinstance(data, dict) and data.get(key)), None)
        if name is None or not isinstance(data[name][0], JsonText):
            return super().render(data, accepted_media_type, renderer_context)
        around = {key: value for key, value in data.items() if key != name}
        head: bytes = super().render(around, accepted_media_type, renderer_context)[:-1]
        begin = f'{"," if around else ""}"{name}":['
        return b"".join((head, begin.encode(), ",".join(data[name]).encode(), b"]}"))


def rows_text(rows: Sequence[RoiRow]) -> list[JsonText]:
    """Rows in the form of ``RoiSerializer``, with one query for whether they are embedded."""
    embedded = rois_embedded([row.id for row in rows])
    return [_text(row, row.id in embedded) for row in rows]


def _text(row: RoiRow, is_embedded: bool) -> JsonText:
    fields = {
        "id": str(row.id),
        "canvas": str(row.canvas_id),
        "frame": frame_represent(
            row.frame_index,
            row.frame_pts,
            time_base_s=row.time_base_s if row.canvas_kind == CanvasKind.VIDEO else None,
        ),
        "centroid": [row.centroid_x, row.centroid_y],
        "bounds": [row.left, row.top, row.right, row.bottom],
        "area_px": row.area_px,
        "area_um2": area_um2(row.area_px, row.mpp_x, row.mpp_y),
        **mark_measures(
            None if row.mark_text is None else json.loads(row.mark_text),
            mpp_x=row.mpp_x,
            mpp_y=row.mpp_y,
        ),
        "label": str(row.label_id) if row.label_id else None,
        "name": row.name,
        "description": row.description,
        "shape": row.shape,
        "locked": row.is_locked,
        "review_state": row.review_state,
        "version": row.version,
        "is_embedded": is_embedded,
        "notes": [],
        "created_by": row.author,
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
        "deleted_at": row.deleted_at.isoformat() if row.deleted_at else None,
    }
    geometry = "null" if row.geometry_text is None else _tight(row.geometry_text)
    track = "[]" if row.track_text is None else row.track_text
    properties = f'"properties":{row.properties_text}'
    return JsonText(f'{_encode(fields)[:-1]},{properties},"geometry":{geometry},"track":{track}}}')


def _tight(geometry: str) -> str:
    """Remove spaces: the strings of a geometry are its keys and its type, which have none."""
    return geometry.replace(", ", ",").replace(": ", ":")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
