"""``/api/v1/rois/``."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations import selectors
from portal.annotations.api.conditions import (
    IF_MATCH,
    IF_MATCH_OPTIONAL,
    etag,
    expected_version,
    expected_version_or_none,
    once,
)
from portal.annotations.api.parsers import OUTLINE_BYTES, GeometryJsonParser
from portal.annotations.api.rows import RoiRowsRenderer, rows_text
from portal.annotations.models import Roi, RoiKind
from portal.annotations.serializers import (
    RoiCreateSerializer,
    RoiPatchSerializer,
    RoiQuerySerializer,
    RoiRestoreSerializer,
    RoiRevisionSerializer,
    RoiSerializer,
    roi_represent,
)
from portal.annotations.services import (
    RoiChanges,
    properties_given,
    roi_create,
    roi_delete,
    roi_restore,
    roi_update,
    version_changes,
)
from portal.archive.selectors import canvas_get
from portal.core.api.paging import CURSOR, Paging
from portal.core.api.problems import ProblemSerializer
from portal.core.api.schema import IDEMPOTENCY_KEY
from portal.core.api.views import ApiViewSet
from portal.core.errors import StaleVersionError
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of

Result = TypeVar("Result")
ETAG_HEADER = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=True, description="The version, in quotes."
)
STALE = OpenApiResponse(
    ProblemSerializer, "Stale: the body also has `current_version` and `current`, the ROI as it is."
)


class RoiPaging(Paging):
    """The usual pages; the first has a count. With ``limit`` the largest come on one page."""

    max_page_size = 1000

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """A page of ``RoiRows``."""
        self._rows: selectors.RoiRows = queryset
        page = super().paginate_queryset(queryset.ordered, request, view)
        self.count = queryset.ordered.count() if CURSOR not in request.query_params else None
        if request.query_params.get("limit"):
            self.next = None  # what is beyond it was not asked for
        return page

    def read(self, rows: QuerySet[Any]) -> Sequence[Any]:
        """By one query, without copies of their canvas."""
        return self._rows.read(rows)

    def get_page_size(self, request: Request) -> int:
        """``limit``, where it is given (checked by ``RoiQuerySerializer`` before)."""
        limit = request.query_params.get("limit")
        return int(limit) if limit else super().get_page_size(request)

    def get_paginated_response(self, data: Any) -> Response:
        """The page, and how many match in all."""
        answer = super().get_paginated_response(data)
        answer.data = {"count": self.count, **answer.data}
        return answer

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What a page looks like."""
        said = super().get_paginated_response_schema(schema)
        count = {
            "type": ["integer", "null"],
            "description": "The number of all that match; null on later pages",
        }
        properties = {"count": count, **said["properties"]}
        return said | {"required": list(properties), "properties": properties}


class RoiApi(ApiViewSet[Roi]):
    """Regions of interest: drawn, changed with If-Match, deleted, restored, never overwritten."""

    area = TokenArea.ROIS
    keeps_keys = True  # for good, with the revision that the request made
    keeps_tags = True
    queryset = Roi.objects.none()
    serializer_class = RoiSerializer
    pagination_class = RoiPaging
    filter_backends = ()
    renderer_classes = (RoiRowsRenderer,)
    parser_classes = (GeometryJsonParser,)
    body_limit_bytes = OUTLINE_BYTES
    lookup_value_regex = UUID_REGEX

    @extend_schema(
        parameters=[RoiQuerySerializer],
        responses=RoiSerializer(many=True),
        summary="List ROIs, by window",
    )
    def list(self, request: Request) -> Response:
        """Live ROIs of a canvas, a window, a frame or a label, oldest first."""
        query = RoiQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        rows: Any = selectors.RoiRows(
            user_of(request),
            _filter(asked),
            largest_first=bool(asked.get("limit")),
            with_outlines=not asked.get("centroids") and self.wants("geometry", "track"),
        )
        page: Any = self.paginate_queryset(rows)
        return self.get_paginated_response(rows_text(page))

    @extend_schema(
        request=RoiCreateSerializer,
        responses={
            201: OpenApiResponse(RoiSerializer, "Created"),
            200: OpenApiResponse(RoiSerializer, "This ROI was already there"),
        },
        parameters=[IDEMPOTENCY_KEY, ETAG_HEADER],
        summary="Draw an ROI",
    )
    def create(self, request: Request) -> Response:
        """The outline is checked, repaired and clipped to the canvas; ``notes`` says what was done.

        A client that chooses ``id`` itself can repeat a save whose answer was lost.
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
            label=selectors.label_of_lab(canvas.lab_id, data.get("label")),
            name=data.get("name", ""),
            description=data.get("description", ""),
            properties=properties_given(canvas.lab_id, data),
            frame_index=frame.get("index"),
            frame_pts=frame.get("pts"),
            roi_id=data.get("id"),
            kind=data.get("shape", RoiKind.POLYGON),
            is_locked=data.get("locked", False),
            track=data.get("track", ()),
            once=once(request),
        )
        code = status.HTTP_201_CREATED if saved.created else status.HTTP_200_OK
        answer = _answer(saved.roi, status=code, notes=saved.notes)
        answer["Location"] = request.build_absolute_uri(f"/api/v1/rois/{saved.roi.pk}/")
        return answer

    @extend_schema(responses=RoiSerializer, parameters=[ETAG_HEADER], summary="One ROI")
    def retrieve(self, request: Request, pk: str) -> Response:
        """The present version; of a deleted ROI the last one, with ``deleted_at``."""
        return _answer(selectors.roi_get(user_of(request), uuid.UUID(pk)))

    @extend_schema(
        request=RoiPatchSerializer,
        responses={200: RoiSerializer, 412: STALE},
        parameters=[IF_MATCH, IDEMPOTENCY_KEY, ETAG_HEADER],
        summary="Change an ROI",
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Makes a new version. A new outline or label takes an earlier review back."""
        roi = selectors.roi_get(user_of(request), uuid.UUID(pk))
        version = expected_version(request)
        body = RoiPatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes = _changes(roi, body.validated_data)
        saved = _or_current(
            request,
            roi,
            lambda: roi_update(
                roi=roi,
                user=user_of(request),
                expected_version=version,
                changes=changes,
                once=once(request),
            ),
        )
        return _answer(saved.roi, notes=saved.notes)

    @extend_schema(
        responses={204: None, 412: STALE},
        parameters=[IF_MATCH, IDEMPOTENCY_KEY, ETAG_HEADER],
        summary="Delete an ROI",
    )
    def destroy(self, request: Request, pk: str) -> Response:
        """Deletion is a version too: ``restore`` undoes it."""
        roi = selectors.roi_get(user_of(request), uuid.UUID(pk))
        version = expected_version(request)
        roi = _or_current(
            request,
            roi,
            lambda: roi_delete(
                roi=roi, user=user_of(request), expected_version=version, once=once(request)
            ),
        )
        return Response(status=status.HTTP_204_NO_CONTENT, headers={"ETag": etag(roi.version)})

    @extend_schema(
        request=RoiRestoreSerializer,
        responses={200: RoiSerializer, 412: STALE},
        parameters=[IF_MATCH_OPTIONAL, IDEMPOTENCY_KEY, ETAG_HEADER],
        summary="Undo a deletion, or bring a version back",
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """One new version. Without a body a deleted ROI comes back as it was, and a live one stays.

        A body needs If-Match: the ROI becomes as it was in `version`, or what the fields say.
        """
        roi = selectors.roi_get(user_of(request), uuid.UUID(pk))
        body = RoiRestoreSerializer(data=request.data or {})
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        version = expected_version(request) if asked else expected_version_or_none(request)
        changes = _restored(roi, asked)
        saved = _or_current(
            request,
            roi,
            lambda: roi_restore(
                roi=roi,
                user=user_of(request),
                expected_version=version,
                changes=changes,
                once=once(request),
            ),
        )
        return _answer(saved.roi, notes=saved.notes)

    @extend_schema(
        responses=RoiRevisionSerializer(many=True), summary="Every version an ROI ever had"
    )
    @action(detail=True, methods=["get"], pagination_class=Paging)
    def revisions(self, request: Request, pk: str) -> Response:
        """First to last, with author and time."""
        roi = selectors.roi_get(user_of(request), uuid.UUID(pk))
        rows: QuerySet[Any] = selectors.roi_revisions(roi)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(RoiRevisionSerializer(page, many=True).data)


def _changes(roi: Roi, asked: dict[str, Any]) -> RoiChanges:
    changes: RoiChanges = {**asked}  # type: ignore[typeddict-item]
    properties_given(roi.lab_id, asked)
    if "label" in asked:
        changes["label"] = selectors.label_of_lab(roi.lab_id, asked["label"])
    return changes


def _restored(roi: Roi, asked: dict[str, Any]) -> RoiChanges:
    """The version that was asked for, with the fields that were given beside it."""
    fields = _changes(roi, {name: value for name, value in asked.items() if name != "version"})
    return {**version_changes(roi, asked["version"]), **fields} if "version" in asked else fields


def _filter(asked: dict[str, Any]) -> selectors.RoiFilter:
    names = ("review_state", "left", "top", "right", "bottom", "min_size_px", "frame_pts", "ids")
    return selectors.RoiFilter(
        canvas_id=asked.get("canvas"),
        label_id=asked.get("label"),
        frame_index=asked.get("frame"),
        deleted=asked.get("deleted", False),
        **{name: asked[name] for name in names if name in asked},
    )


def _answer(roi: Roi, *, status: int = status.HTTP_200_OK, notes: tuple[str, ...] = ()) -> Response:
    body = roi_represent(roi, notes=notes)
    return Response(body, status=status, headers={"ETag": etag(roi.version)})


def _or_current(request: Request, roi: Roi, write: Callable[[], Result]) -> Result:
    """Do the write; a stale one is answered with the ROI as it is now."""
    try:
        return write()
    except StaleVersionError as error:
        current = selectors.roi_get(user_of(request), roi.pk)
        error.details |= {"current_version": current.version, "current": roi_represent(current)}
        raise
