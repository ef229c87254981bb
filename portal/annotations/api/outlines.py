"""``/api/v1/canvases/{id}/outline/``: an outline proposed around a click."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations import selectors
from portal.annotations.serializers import FiniteField, FrameReferenceSerializer, GeometryField
from portal.archive.selectors import canvas_get
from portal.core.api.views import ApiView
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

_FARTHEST = 1e9  # level-0 pixels: beyond any canvas, and every sum of two is exact


class OutlineQuerySerializer(serializers.Serializer[Any]):
    """Where, and what is on screen around it, in level-0 pixels."""

    x = FiniteField(min_value=-_FARTHEST, max_value=_FARTHEST)
    y = FiniteField(min_value=-_FARTHEST, max_value=_FARTHEST)
    window = serializers.ListField(
        child=FiniteField(min_value=-_FARTHEST, max_value=_FARTHEST),
        min_length=4,
        max_length=4,
        help_text="left, top, right, bottom",
    )
    frame = FrameReferenceSerializer(required=False, allow_null=True)


class ProposedOutlinesSerializer(serializers.Serializer[Any]):
    """Outlines from the tightest to the widest, each inside the next."""

    geometries = serializers.ListField(child=GeometryField())
    likely = serializers.IntegerField(help_text="Position of the one to show first")


class CanvasOutlineApi(ApiView):
    """Outlines of what lies under a click."""

    area = TokenArea.ROIS
    takes_no_key = "This operation only reads."

    @extend_schema(
        operation_id="canvas_outline_propose",
        request=OutlineQuerySerializer,
        responses=ProposedOutlinesSerializer,
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Propose an outline around a point",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Nothing is written; what fits is sent to `/rois/`. 400 `no-outline` if there is none."""
        user = user_of(request)
        canvas = canvas_get(user=user, canvas_id=id)
        body = OutlineQuerySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        frame = asked.get("frame") or {}
        found = selectors.outlines_propose(
            canvas=canvas,
            user=user,
            xy_l0=(asked["x"], asked["y"]),
            window=tuple(asked["window"]),
            frame=selectors.frame_resolve(canvas, index=frame.get("index"), pts=frame.get("pts")),
        )
        return Response(ProposedOutlinesSerializer(found).data)
