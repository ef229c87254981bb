"""``/api/v1/rois/``."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.plumbing import append_meta
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.api.parsers import OUTLINE_BYTES, GeometryJsonParser
from portal.annotations.api.rows import RoiRowsRenderer, rows_text
from portal.annotations.api.versions import ETAG_HEADER, VersionedApi, stale_response
from portal.annotations.models import Roi, RoiKind
from portal.annotations.selectors.labels import label_of_lab
from portal.annotations.selectors.rois import RoiFilter, roi_get, roi_revisions
from portal.annotations.selectors.rows import RoiRows
from portal.annotations.serializers import (
    ListedRoiSerializer,
    RoiCreateSerializer,
    RoiPatchSerializer,
    RoiQuerySerializer,
    RoiRestoreSerializer,
    RoiRevisionSerializer,
    RoiSerializer,
    roi_represent,
)
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.properties import properties_given
from portal.annotations.services.rois import (
    roi_create,
    roi_delete,
    roi_restore,
    roi_update,
    version_changes,
)
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.etags import (
    IF_MATCH_OPTIONAL,
    IF_MATCH_VERSION,
    version_expected,
    version_expected_or_none,
)
from portal.core.api.paging import CURSOR, Paging
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.requests import user_of

STALE = stale_response("ROI")


class RoiPaging(Paging):
    """The usual pages; the first has a count. With ``limit`` the largest come on one page."""

    max_page_size = 1000

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """A page of ``RoiRows``."""
        self._rows: RoiRows = queryset
        page = super().paginate_queryset(queryset.ordered, request, view)
        self.count = queryset.ordered.count() if CURSOR not in request.query_params else None
        if request.query_params.get("limit"):
            self.next = None  # ``limit`` asks for a single page
        return page

    def read(self, rows: QuerySet[Any]) -> Sequence[Any]:
        """Read the ROIs by one query; they share one instance of their canvas."""
        return self._rows.read(rows)

    def get_page_size(self, request: Request) -> int | None:
        """``limit``, where it is given (checked by ``RoiQuerySerializer`` before)."""
        limit = request.query_params.get("limit")
        return int(limit) if limit else super().get_page_size(request)

    def get_paginated_response(self, data: Any) -> Response:
        """The page, and how many match in all."""
        answer = super().get_paginated_response(data)
        answer.data = {"count": self.count, **answer.data}
        return answer

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Schema of one page, with its count."""
        page_schema = super().get_paginated_response_schema(schema)
        about = "The number of all that match; null on later pages"
        count = append_meta({"type": "integer"}, {"nullable": True, "description": about})
        properties = {"count": count, **page_schema["properties"]}
        return page_schema | {"required": list(properties), "properties": properties}


@audited(
    list=AuditRule("roi.listed", "canvas", "?canvas", every_s=HOUR_S),
    create=rejections("roi.saved"),
    retrieve=AuditRule("roi.viewed", "roi", "pk", every_s=MINUTE_S),
    partial_update=rejections("roi.saved", "roi", "pk"),
    destroy=rejections("roi.deleted", "roi", "pk"),
    restore=rejections("roi.saved", "roi", "pk"),
    revisions=AuditRule("roi.viewed", "roi", "pk", every_s=MINUTE_S),
)
class RoiApi(VersionedApi[Roi]):
    """Regions of interest: drawn, changed with If-Match, deleted, restored, never overwritten."""

    queryset = Roi.objects.none()
    serializer_class = RoiSerializer
    pagination_class = RoiPaging
    renderer_classes = (RoiRowsRenderer,)
    parser_classes = (GeometryJsonParser,)
    body_limit_bytes = OUTLINE_BYTES

    def find(self, pk: uuid.UUID) -> Roi:
        """An ROI, deleted or not."""
        return roi_get(user_of(self.request), pk)

    def represent(self, row: Roi, notes: Sequence[str]) -> JsonObject:
        """JSON of an ROI."""
        return roi_represent(row, notes=notes)

    @extend_schema(
        parameters=[RoiQuerySerializer],
        responses=ListedRoiSerializer(many=True),
        summary="List ROIs, by window",
    )
    def list(self, request: Request) -> Response:
        """Live ROIs of a canvas, a window, a frame or a label, oldest first."""
        query = RoiQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        rows: Any = RoiRows(
            user_of(request),
            _filter(data),
            largest_first=bool(data.get("limit")),
            with_outlines=not data.get("centroids") and self.wants("geometry", "track"),
        )
        page: Any = self.paginate_queryset(rows)
        return self.get_paginated_response(rows_text(page))

    @extend_schema(
        request=RoiCreateSerializer,
        responses={
            201: OpenApiResponse(RoiSerializer, "Created"),
            200: OpenApiResponse(RoiSerializer, "This ROI was already there"),
        },
        parameters=[ETAG_HEADER],
        summary="Create an ROI",
    )
    def create(self, request: Request) -> Response:
        """Create an ROI.

        The outline is checked, repaired and clipped to the canvas; ``notes`` lists the corrections.

        A client that chooses ``id`` can repeat a request whose response was lost.
        """
        body = RoiCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        canvas = canvas_get(user=user_of(request), canvas_id=data["canvas"])
        frame = data.get("frame") or {}
        saved = roi_create(
            canvas=canvas,
            user=user_of(request),
            geometry=data["geometry"],
            label=label_of_lab(canvas.lab_id, data.get("label")),
            name=data.get("name", ""),
            description=data.get("description", ""),
            properties=properties_given(canvas.lab_id, data),
            frame_index=frame.get("index"),
            frame_pts=frame.get("pts"),
            roi_id=data.get("id"),
            kind=data.get("shape", RoiKind.POLYGON),
            is_locked=data.get("locked", False),
            track=data.get("track", ()),
        )
        return self.creation(saved.roi, created=saved.created, notes=saved.notes)

    @extend_schema(responses=RoiSerializer, parameters=[ETAG_HEADER], summary="One ROI")
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return the present version; of a deleted ROI the last one, with ``deleted_at``."""
        return self.answer(self.find(uuid.UUID(pk)))

    @extend_schema(
        request=RoiPatchSerializer,
        responses={200: RoiSerializer, 412: STALE},
        parameters=[IF_MATCH_VERSION, ETAG_HEADER],
        summary="Change an ROI",
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Save a new version. A new outline or label resets the review state."""
        roi = self.find(uuid.UUID(pk))
        version = version_expected(request)
        body = RoiPatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes = _changes(roi, body.validated_data)
        user = user_of(request)
        with self.current_if_stale(roi):
            saved = roi_update(roi=roi, user=user, expected_version=version, changes=changes)
        return self.answer(saved.roi, notes=saved.notes)

    @extend_schema(
        responses={204: None, 412: STALE},
        parameters=[IF_MATCH_VERSION, ETAG_HEADER],
        summary="Delete an ROI",
    )
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete an ROI by a new version, which ``restore`` undoes."""
        roi = self.find(uuid.UUID(pk))
        version = version_expected(request)
        with self.current_if_stale(roi):
            roi_delete(roi=roi, user=user_of(request), expected_version=version)
        return self.deletion(roi)

    @extend_schema(
        request=RoiRestoreSerializer,
        responses={200: RoiSerializer, 412: STALE},
        parameters=[IF_MATCH_OPTIONAL, ETAG_HEADER],
        summary="Restore a deleted ROI or a version",
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Restore a version as a new one.

        Without a body, a deleted ROI is restored as it was, and a live one is not changed.
        """
        roi = self.find(uuid.UUID(pk))
        body = RoiRestoreSerializer(data=request.data or {})
        body.is_valid(raise_exception=True)
        data = body.validated_data
        version = version_expected(request) if data else version_expected_or_none(request)
        changes = _changes_to_restore(roi, data)
        user = user_of(request)
        with self.current_if_stale(roi):
            saved = roi_restore(roi=roi, user=user, expected_version=version, changes=changes)
        return self.answer(saved.roi, notes=saved.notes)

    @extend_schema(
        responses=RoiRevisionSerializer(many=True), summary="List the versions of an ROI"
    )
    @action(detail=True, methods=["get"], pagination_class=Paging)
    def revisions(self, request: Request, pk: str) -> Response:
        """Versions from first to last, with author and time."""
        roi = self.find(uuid.UUID(pk))
        rows: QuerySet[Any] = roi_revisions(roi)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(RoiRevisionSerializer(page, many=True).data)


def _changes(roi: Roi, data: dict[str, Any]) -> RoiChanges:
    changes: RoiChanges = {**data}  # type: ignore[typeddict-item]
    properties_given(roi.lab_id, data)
    if "label" in data:
        changes["label"] = label_of_lab(roi.lab_id, data["label"])
    return changes


def _changes_to_restore(roi: Roi, data: dict[str, Any]) -> RoiChanges:
    """Changes that restore the requested version, overridden by the other fields of the request."""
    fields = _changes(roi, {name: value for name, value in data.items() if name != "version"})
    return {**version_changes(roi, data["version"]), **fields} if "version" in data else fields


def _filter(data: dict[str, Any]) -> RoiFilter:
    names = ("review_state", "left", "top", "right", "bottom", "min_size_px", "frame_pts", "ids")
    return RoiFilter(
        canvas_id=data.get("canvas"),
        label_id=data.get("label"),
        frame_index=data.get("frame"),
        deleted=data.get("deleted", False),
        **{name: data[name] for name in names if name in data},
    )
