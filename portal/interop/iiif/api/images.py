"""``/api/v1/iiif/``: the IIIF Image API 3.0, level 2, for every canvas but videos."""

from __future__ import annotations

import uuid

from django.http import HttpResponse, HttpResponseRedirect
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.tiles.regions import Box, region_read
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited
from portal.core.http.files import bytes_response
from portal.interop.http import CACHE_CONTROL, LINKED, StandardApi, base_of, linked_json
from portal.interop.iiif.formats import documents
from portal.interop.iiif.formats.encoding import picture
from portal.interop.iiif.formats.image_requests import FORMATS, image_request
from portal.interop.iiif.selectors import image_get
from portal.labs.requests import user_of

_PROFILE = "http://iiif.io/api/image/3/level2.json"
_ID = OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH, description="Id of the canvas")


def _part(name: str, description: str, example: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, str, OpenApiParameter.PATH, description=description, default=example
    )


@audited(GET=AuditRule("canvas.read", "canvas", "id", every_s=HOUR_S))
class CanvasImageBaseApi(StandardApi):
    """The address of the service itself."""

    @extend_schema(
        operation_id="canvas_image_base",
        summary="Redirect an IIIF image to its `info.json`",
        parameters=[_ID],
        responses={303: OpenApiResponse(description="Its `info.json`")},
    )
    def get(self, request: Request, id: uuid.UUID) -> HttpResponse:
        """Redirect to `info.json`."""
        canvas = image_get(user=user_of(request), canvas_id=id)
        address = f"{documents.image_address(base_of(request), canvas)}/info.json"
        response = HttpResponseRedirect(address)
        response.status_code = 303
        return response


@audited(GET=AuditRule("canvas.opened", "canvas", "id", every_s=MINUTE_S))
class CanvasImageInfoApi(StandardApi):
    """``info.json`` of an image."""

    @extend_schema(
        operation_id="canvas_image_info",
        summary="Show the info.json of an IIIF image",
        parameters=[_ID],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Sizes, tiles and features; IIIF Image API 3.0, level 2. 404 for a video."""
        canvas = image_get(user=user_of(request), canvas_id=id)
        info = documents.image_info(canvas, base_of(request))
        return linked_json(request, info, context=documents.IMAGE)


@audited(GET=AuditRule("canvas.read", "canvas", "id", every_s=HOUR_S))
class CanvasImageApi(StandardApi):
    """Pixels."""

    @extend_schema(
        operation_id="canvas_image",
        summary="Show a region of an IIIF image",
        parameters=[
            _ID,
            _part("region", "`full`, `square`, `x,y,w,h`, `pct:x,y,w,h`", "full"),
            _part("size", "`max`, `w,`, `,h`, `pct:n`, `w,h`, `!w,h`; never enlarged", "!256,256"),
            _part("rotation", "0, 90, 180, 270; a `!` before it mirrors", "0"),
            _part("quality", "`default`, `color`, `gray`, `bitonal`", "default"),
            _part("extension", "`jpg`, `png`", "jpg"),
        ],
        responses={(200, media): OpenApiTypes.BINARY for media in FORMATS.values()},
    )
    def get(self, request: Request, id: uuid.UUID, **parts: str) -> HttpResponse:
        """A region, at most 2,048 px wide or high.

        Tiles listed in `info.json` are not recompressed.
        """
        canvas = image_get(user=user_of(request), canvas_id=id)
        size = (canvas.width_px, canvas.height_px)
        parameters = image_request(**parts, canvas=size)
        canonical = parameters.canonical(size)
        etag = f'"i-{canvas.picture_tag}-{canonical.replace(",", ".")}"'
        box = Box(parameters.left, parameters.top, parameters.width, parameters.height)
        response = bytes_response(
            request._request,
            lambda: picture(region_read(canvas, box, parameters.out), parameters),
            etag=etag,
            media_type=FORMATS[parameters.extension],
            cache=CACHE_CONTROL,
        )
        base = documents.image_address(base_of(request), canvas)
        response["Link"] = f'<{base}/{canonical}>;rel="canonical",<{_PROFILE}>;rel="profile"'
        return response
