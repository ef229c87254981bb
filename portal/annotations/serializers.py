"""ROIs, revisions and labels as the API shows them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework import serializers

from ml.types import JsonObject
from portal.annotations.geometry import area_um2
from portal.annotations.marks import mark_measures
from portal.annotations.models import ReviewState, Roi, RoiKind, RoiRevision
from portal.annotations.properties import MAX_DESCRIPTION_CHARS, MAX_PROPERTY_CHARS
from portal.annotations.selectors.embedded import rois_embedded
from portal.annotations.services.tracks import MADE_BY
from portal.archive.models import CanvasKind

GEOMETRY_DEPTHS = {
    **{"Polygon": 2, "MultiPolygon": 3, "Point": 0},
    **{"MultiPoint": 1, "LineString": 1, "MultiLineString": 2},
}
"""Nesting depth of the positions in each geometry type."""
GEOMETRY_EXAMPLE: JsonObject = {
    "type": "Polygon",
    "coordinates": [[[10, 10], [90, 10], [90, 80], [10, 10]]],
}
GEOMETRY_REQUEST: JsonObject = {
    "type": "object",
    "description": "GeoJSON in level-0 pixels, x right, y down: an area, points or lines.",
    "properties": {
        "type": {"type": "string", "enum": list(GEOMETRY_DEPTHS)},
        "coordinates": {"type": "array", "items": {}},
    },
    "required": ["type", "coordinates"],
    "example": GEOMETRY_EXAMPLE,
}
MAX_IDS = 200  # of one request: their address stays below 8 kB
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1  # what PostgreSQL's integer and bigint hold


class GeometryField(serializers.JSONField):
    """A GeoJSON geometry; checked by ``portal.annotations.geometry``, not here."""

    kinds: ClassVar[tuple[str, ...]] = tuple(GEOMETRY_DEPTHS)

    def to_internal_value(self, data: Any) -> Any:
        """Pass through: the service names what is wrong with it."""
        return data


class PolygonField(GeometryField):
    kinds = ("Polygon",)


class GeometryExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """OpenAPI of a geometry: exact in answers; the service checks requests."""

    target_class = GeometryField
    match_subclasses = True

    def map_serializer_field(
        self, auto_schema: AutoSchema, direction: Literal["request", "response"]
    ) -> JsonObject:
        """Refer to a component: that of the only type, or ``Geometry`` for any of them."""
        if direction == "request":
            return dict(GEOMETRY_REQUEST)
        kinds = [
            _component(auto_schema, f"{kind}Geometry", _geometry_schema(kind))
            for kind in self.target.kinds
        ]
        if len(kinds) == 1:
            return kinds[0]
        description = "GeoJSON in level-0 pixels, x right, y down."
        schema = {"description": description, "oneOf": kinds, "example": GEOMETRY_EXAMPLE}
        return _component(auto_schema, "Geometry", schema)


def _component(auto_schema: AutoSchema, name: str, schema: JsonObject) -> JsonObject:
    kind = ResolvedComponent.SCHEMA
    component = ResolvedComponent(name=name, type=kind, schema=schema, object=name)  # type: ignore[no-untyped-call]
    auto_schema.registry.register_on_missing(component)
    return dict(component.ref)


def _geometry_schema(kind: str) -> JsonObject:
    coordinates: JsonObject = {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 2,
        "maxItems": 2,
    }
    for _ in range(GEOMETRY_DEPTHS[kind]):
        coordinates = {"type": "array", "items": coordinates}
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": [kind]}, "coordinates": coordinates},
        "required": ["type", "coordinates"],
    }


class PropertiesField(serializers.DictField):
    """Texts by key."""

    child = serializers.CharField(max_length=MAX_PROPERTY_CHARS, allow_blank=True)


class DescriptionField(serializers.CharField):
    """Multi-line description of an ROI."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_blank=True, max_length=MAX_DESCRIPTION_CHARS, **options)


class FiniteField(serializers.FloatField):
    """A float that is neither NaN nor infinite."""

    def to_internal_value(self, data: Any) -> float:
        """Refuse what no comparison can be made with."""
        value = super().to_internal_value(data)
        if not math.isfinite(value):
            raise serializers.ValidationError("A finite number is required.")
        return value


class FrameReferenceSerializer(serializers.Serializer[Any]):
    """A frame: index and presentation time name the same one; either may be left out."""

    index = serializers.IntegerField(min_value=0, max_value=INT32_MAX, required=False)
    pts = serializers.IntegerField(min_value=-INT64_MAX, max_value=INT64_MAX, required=False)


class FrameOutSerializer(serializers.Serializer[Any]):
    """A frame of a video; ``time_s`` is its presentation time in seconds."""

    index = serializers.IntegerField()
    pts = serializers.IntegerField()
    time_s = serializers.FloatField()


class KeyFrameInputSerializer(serializers.Serializer[Any]):
    """An ROI on another frame of its video than its own, as clients send it."""

    index = serializers.IntegerField(min_value=0, max_value=INT32_MAX)
    pts = serializers.IntegerField(min_value=-INT64_MAX, max_value=INT64_MAX, required=False)
    geometry = GeometryField(required=False, allow_null=True, help_text="null if `outside`")
    shape = serializers.ChoiceField(RoiKind.choices, required=False)
    outside = serializers.BooleanField(
        required=False, help_text="The ROI is not visible from this frame to the next key frame"
    )
    by = serializers.ChoiceField(
        MADE_BY, required=False, help_text="The next tracking may replace what tracking made"
    )
    drift_px = FiniteField(
        required=False, min_value=0, help_text="Standard error of a tracked outline"
    )


class KeyFrameSerializer(serializers.Serializer[Any]):
    """An ROI on another frame of its video than its own."""

    index = serializers.IntegerField()
    pts = serializers.IntegerField()
    geometry = GeometryField(allow_null=True, help_text="null if `outside`")
    shape = serializers.ChoiceField(RoiKind.choices)
    outside = serializers.BooleanField(
        help_text="The ROI is not visible from this frame to the next key frame"
    )
    by = serializers.ChoiceField(
        MADE_BY, help_text="The next tracking may replace what tracking made"
    )
    drift_px = serializers.FloatField(help_text="Standard error of a tracked outline")


class RoiSerializer(serializers.Serializer[Any]):
    """An ROI. ``version`` is its ETag."""

    id = serializers.UUIDField()
    canvas = serializers.UUIDField()
    frame = FrameOutSerializer(allow_null=True)
    geometry = GeometryField()
    centroid = serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2)
    bounds = serializers.ListField(
        child=serializers.FloatField(),
        min_length=4,
        max_length=4,
        help_text="left, top, right, bottom",
    )
    area_px = serializers.FloatField()
    area_um2 = serializers.FloatField(
        allow_null=True, help_text="null if the scale of the canvas is unknown"
    )
    length_px = serializers.FloatField(allow_null=True, help_text="For a line; otherwise null")
    length_um = serializers.FloatField(allow_null=True)
    points = serializers.IntegerField(
        allow_null=True, help_text="Number of points; null for other shapes"
    )
    label = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]
    name = serializers.CharField()
    description = serializers.CharField()
    properties = PropertiesField()
    shape = serializers.ChoiceField(RoiKind.choices, help_text="An ellipse fills its bounds")
    track = KeyFrameSerializer(many=True, help_text="On a video: key frames besides its own frame")
    locked = serializers.BooleanField(help_text="Cannot be changed or deleted until unlocked")
    review_state = serializers.ChoiceField(ReviewState.choices)
    version = serializers.IntegerField()
    is_embedded = serializers.BooleanField(help_text="true once similar cases can be searched")
    notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What this write did to the outline: repaired, clipped",
    )
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)


class ListedRoiSerializer(RoiSerializer):
    geometry = GeometryField(allow_null=True, help_text="null if only centroids were requested")


class RoiCreateSerializer(serializers.Serializer[Any]):
    """Fields of a new ROI."""

    id = serializers.UUIDField(
        required=False, help_text="Chosen by the client, so that the same request can be sent again"
    )
    canvas = serializers.UUIDField()
    frame = FrameReferenceSerializer(required=False, allow_null=True)
    geometry = GeometryField()
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    name = serializers.CharField(required=False, allow_blank=True, max_length=120)
    description = DescriptionField(required=False)
    properties = PropertiesField(required=False)
    shape = serializers.ChoiceField(RoiKind.choices, required=False)
    locked = serializers.BooleanField(required=False)
    track = KeyFrameInputSerializer(many=True, required=False)


class RoiPatchSerializer(serializers.Serializer[Any]):
    """Editable fields; omitted ones keep their values."""

    geometry = GeometryField(required=False)
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    name = serializers.CharField(required=False, allow_blank=True, max_length=120)
    description = DescriptionField(required=False)
    properties = PropertiesField(required=False)
    review_state = serializers.ChoiceField(ReviewState.choices, required=False)
    shape = serializers.ChoiceField(
        RoiKind.choices, required=False, help_text="If left out with a new outline: polygon"
    )
    track = KeyFrameInputSerializer(
        many=True, required=False, help_text="All key frames; [] for none"
    )
    locked = serializers.BooleanField(
        source="is_locked",
        required=False,
        help_text="Nothing else of a locked ROI can change, unless the same request unlocks it",
    )


class RoiRestoreSerializer(serializers.Serializer[Any]):
    """Changes applied when an ROI is restored; if empty, its last state."""

    version = serializers.IntegerField(
        required=False, min_value=1, max_value=INT32_MAX, help_text="As it was in this version"
    )
    geometry = GeometryField(required=False)
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    name = serializers.CharField(required=False, allow_blank=True, max_length=120)
    description = DescriptionField(required=False)
    properties = PropertiesField(required=False)
    shape = serializers.ChoiceField(RoiKind.choices, required=False)
    track = KeyFrameInputSerializer(many=True, required=False)
    locked = serializers.BooleanField(source="is_locked", required=False)


class RoiQuerySerializer(serializers.Serializer[Any]):
    """Filters of the list of ROIs."""

    canvas = serializers.UUIDField(required=False)
    label = serializers.UUIDField(required=False)  # type: ignore[assignment]
    review_state = serializers.ChoiceField(ReviewState.choices, required=False)
    left = FiniteField(required=False, help_text="Window, level-0 pixels")
    top = FiniteField(required=False)
    right = FiniteField(required=False)
    bottom = FiniteField(required=False)
    min_size_px = FiniteField(
        required=False, min_value=0, help_text="Only ROIs at least this wide or high"
    )
    frame = serializers.IntegerField(
        required=False, min_value=0, max_value=INT32_MAX, help_text="Index of a frame of a video"
    )
    frame_pts = serializers.IntegerField(required=False, min_value=-INT64_MAX, max_value=INT64_MAX)
    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=10_000,
        help_text=(
            "At most this many on one page, the largest first; `count` is the number of all that "
            "match"
        ),
    )
    centroids = serializers.BooleanField(
        required=False, help_text="Leave the geometries out: light enough for thousands"
    )
    deleted = serializers.BooleanField(required=False, help_text="List the deleted ones instead")
    ids = serializers.CharField(
        required=False, max_length=8_000, help_text="Only these, separated by commas; at most 200"
    )

    def validate_ids(self, value: str) -> list[uuid.UUID]:
        try:
            ids = [uuid.UUID(text) for text in value.split(",")]
        except ValueError as error:
            raise serializers.ValidationError("Expected UUIDs separated by commas.") from error
        if len(ids) > MAX_IDS:
            raise serializers.ValidationError(f"{len(ids)} ids; {MAX_IDS} at most.")
        return ids


class RoiRevisionSerializer(serializers.Serializer[Any]):
    """The state after one change."""

    version = serializers.IntegerField()
    action = serializers.CharField()
    geometry = GeometryField()
    label = serializers.UUIDField(source="label_id", allow_null=True)  # type: ignore[assignment]
    label_name = serializers.CharField(help_text="Its name at that time")
    label_version = serializers.IntegerField(
        allow_null=True,
        help_text="The version of the labels that was the latest published at that time",
    )
    name = serializers.CharField()
    description = serializers.CharField()
    properties = PropertiesField()
    shape = serializers.ChoiceField(RoiKind.choices)
    track = KeyFrameSerializer(many=True)
    locked = serializers.BooleanField(source="is_locked")
    review_state = serializers.ChoiceField(ReviewState.choices)
    author = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    def get_author(self, revision: RoiRevision) -> str | None:
        """Name of the author of the change."""
        return str(revision.author) if revision.author else None


def rois_represent(rois: Iterable[Roi]) -> list[JsonObject]:
    """Represent several ROIs, with one query for whether they are embedded.

    Lists use ``api.rows`` instead.
    """
    rows = list(rois)
    embedded = rois_embedded([roi.pk for roi in rows])
    return [_represent(roi, roi.pk in embedded, ()) for roi in rows]


def roi_represent(roi: Roi, *, notes: Iterable[str] = ()) -> JsonObject:
    return _represent(roi, roi.pk in rois_embedded([roi.pk]), notes)


def _represent(roi: Roi, embedded: bool, notes: Iterable[str]) -> JsonObject:
    canvas = roi.canvas
    return {
        "id": str(roi.pk),
        "canvas": str(roi.canvas_id),
        "frame": _frame(roi),
        "geometry": roi.geometry,
        "centroid": [roi.centroid_x, roi.centroid_y],
        "bounds": [roi.left, roi.top, roi.right, roi.bottom],
        "area_px": roi.area_px,
        "area_um2": area_um2(roi.area_px, canvas.mpp_x, canvas.mpp_y),
        **mark_measures(roi.geometry, mpp_x=canvas.mpp_x, mpp_y=canvas.mpp_y),
        "label": str(roi.label_id) if roi.label_id else None,
        "name": roi.name,
        "description": roi.description,
        "properties": roi.properties,
        "shape": str(roi.shape),
        "track": roi.track,
        "locked": roi.is_locked,
        "review_state": str(roi.review_state),
        "version": roi.version,
        "is_embedded": embedded,
        "notes": list(notes),
        "created_by": str(roi.created_by) if roi.created_by else None,
        "created_at": roi.created_at.isoformat(),
        "updated_at": roi.updated_at.isoformat(),
        "deleted_at": roi.deleted_at.isoformat() if roi.deleted_at else None,
    }


def _frame(roi: Roi) -> JsonObject | None:
    video = getattr(roi.canvas, "video", None) if roi.canvas.kind == CanvasKind.VIDEO else None
    time_base_s = video.time_base_s if video else None
    return frame_represent(roi.frame_index, roi.frame_pts, time_base_s=time_base_s)


def frame_represent(
    index: int | None, pts: int | None, *, time_base_s: float | None
) -> JsonObject | None:
    """A frame of a video and its time in seconds; None for an ROI that is on none."""
    if index is None or pts is None:
        return None
    return {"index": index, "pts": pts, "time_s": round(pts * (time_base_s or 0.0), 6)}
