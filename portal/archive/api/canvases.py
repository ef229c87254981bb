"""REST: canvases, their tiles, thumbnails and frames."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import DisplayRange
from portal.archive.api.media import thumbnail_response
from portal.archive.models import Canvas
from portal.archive.selectors.canvases import canvas_list, canvas_video
from portal.archive.selectors.frames import filmstrip_jpeg, frame_etag, frame_jpeg
from portal.archive.serializers.canvases import CanvasChangeSerializer, CanvasSerializer
from portal.archive.services.display import canvas_display_range_set
from portal.archive.services.modality import canvas_modality_set
from portal.archive.services.scale import canvas_scale_set
from portal.archive.tiles.reading import plane_of, tile_etag, tile_read
from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited, rejections
from portal.core.http.files import bytes_response
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of

JPEG = {(200, "image/jpeg"): OpenApiTypes.BINARY}


class SignedConverter:
    """An integer in a path that may be negative: a PTS."""

    regex = r"-?[0-9]{1,18}"

    def to_python(self, value: str) -> int:
        """Parse the id in the URL."""
        return int(value)

    def to_url(self, value: int) -> str:
        """Format the id for the URL."""
        return str(value)


@audited(
    retrieve=AuditRule("canvas.opened", "canvas", "pk"),
    partial_update=rejections("canvas.changed", "canvas", "pk"),
    filmstrip=AuditRule("canvas.read", "canvas", "pk", every_s=HOUR_S),
    frame=AuditRule("canvas.read", "canvas", "pk", every_s=HOUR_S),
    thumbnail=AuditRule("canvas.read", "canvas", "pk", every_s=HOUR_S, only_tokens=True),
    tile=AuditRule("canvas.read", "canvas", "pk", every_s=HOUR_S),
)
class CanvasViewSet(ApiViewSet[Canvas]):
    """Canvases of slides, videos and mosaics."""

    area = TokenArea.CASES
    if_match: ClassVar = {"PATCH": False}
    serializer_class = CanvasSerializer
    queryset = Canvas.objects.none()
    lookup_value_regex = UUID_REGEX
    pagination_class = None

    def get_queryset(self) -> QuerySet[Canvas]:
        """Restrict to canvases visible to the user."""
        return canvas_list(user=user_of(self.request))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """An image element asks for image/*; errors are problem+json anyway."""
        return super().perform_content_negotiation(request, force or self.action != "retrieve")

    def retrieve(self, request: Request, pk: str) -> Response:
        """Size, microns per pixel, tile grid and addresses of a canvas."""
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=CanvasChangeSerializer, responses=CanvasSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Set the modality, the displayed range of values, or a pixel size that the file lacks;
        null resets them.

        409 if the file states its pixel size, or if its pixels have 8 bits.
        """
        canvas = self.get_object()
        body = CanvasChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        change, user = body.validated_data, user_of(request)
        if "display_range" in change:
            bounds = change["display_range"]
            display_range = DisplayRange(**bounds) if bounds else None
            canvas_display_range_set(canvas=canvas, user=user, display_range=display_range)
        elif "modality" in change:
            canvas_modality_set(canvas=canvas, user=user, modality=change["modality"])
        else:
            canvas_scale_set(
                canvas=canvas, user=user, mpp_x=change["mpp_x"], mpp_y=change.get("mpp_y")
            )
        return Response(self.get_serializer(canvas).data)

    @extend_schema(responses=JPEG)
    def tile(self, request: Request, pk: uuid.UUID, z: int, x: int, y: int) -> HttpResponse:
        """A tile; z 0 is the coarsest level.

        The address contains the version, so it may be cached without limit.
        """
        plane = plane_of(self.get_object())
        data = tile_read(plane, z, x, y)
        return bytes_response(_http(request), data, etag=tile_etag(plane, z, x, y))

    @extend_schema(responses=JPEG)
    def thumbnail(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        """A thumbnail of the whole canvas; of a video, its poster."""
        return thumbnail_response(_http(request), self.get_object())

    @extend_schema(responses=JPEG)
    def frame(self, request: Request, pk: uuid.UUID, pts: int) -> HttpResponse:
        """The frame of a video with exactly this PTS; 404 names the nearest frames."""
        canvas = self.get_object()
        data = frame_jpeg(canvas, canvas_video(canvas), pts)
        return bytes_response(_http(request), data, etag=frame_etag(canvas, pts))

    @extend_schema(responses=JPEG)
    def filmstrip(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        """Thumbnails of frames of a video side by side, from first to last."""
        canvas = self.get_object()
        data = filmstrip_jpeg(canvas, canvas_video(canvas))
        return bytes_response(_http(request), data, etag=f'"s-{frame_etag(canvas, 0)[1:]}')


def _http(request: Request) -> HttpRequest:
    return request._request
