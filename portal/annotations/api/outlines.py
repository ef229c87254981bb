"""``/api/v1/canvases/{id}/outline/``: an outline proposed around a click."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.frames import frame_resolve
from portal.annotations.selectors.outlines import outlines_propose
from portal.annotations.serializers import FiniteField, FrameReferenceSerializer, PolygonField
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

_FARTHEST = 1e9  # level-0 pixels: beyond any canvas, and every sum of two is exact


class OutlineQuerySerializer(serializers.Serializer[Any]):
    """Clicked point and visible window, in level-0 pixels."""

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

    geometries = serializers.ListField(child=PolygonField())
    likely = serializers.IntegerField(help_text="Position of the one to show first")


@audited(POST=AuditRule("canvas.read", "canvas", "id", every_s=HOUR_S, only_tokens=True))
class CanvasOutlineApi(ApiView):
    """Outlines of the structure under a click."""

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
        """Propose outlines of the tissue around a point. Nothing is saved; `POST /rois/` saves one.

        400 `no-tissue` if the point is on glass, `no-outline` if no outline is found around it.
        """
        user = user_of(request)
        canvas = canvas_get(user=user, canvas_id=id)
        body = OutlineQuerySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        frame = data.get("frame") or {}
        outlines = outlines_propose(
            canvas=canvas,
            user=user,
            xy_l0=(data["x"], data["y"]),
            window=tuple(data["window"]),
            frame=frame_resolve(canvas, index=frame.get("index"), pts=frame.get("pts")),
        )
        return Response(ProposedOutlinesSerializer(outlines).data)
