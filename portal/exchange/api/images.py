"""``/api/v1/iiif/``: the IIIF Image API 3.0, level 2, for every canvas but videos."""

from __future__ import annotations

import uuid

from django.http import HttpResponse, HttpResponseRedirect
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.tiles.regions import Box, region_read
from portal.core.http.files import bytes_response, etag_matches
from portal.exchange import selectors
from portal.exchange.api.crossing import CrossingApi, base_of, linked_json
from portal.exchange.formats import iiif
from portal.exchange.formats.image_requests import FORMATS, image_request
from portal.exchange.formats.pictures import picture
from portal.labs.requests import user_of

CACHE = "private, max-age=3600"  # the pixels of a canvas never change; who may see it does
_PROFILE = "http://iiif.io/api/image/3/level2.json"
_ID = OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH, description="Id of the canvas")


def _part(name: str, said: str, example: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.PATH, description=said, default=example)


class CanvasImageBaseApi(CrossingApi):
    """The address of the service itself."""

    @extend_schema(
        operation_id="canvas_image_base",
        summary="Redirect an IIIF image to its `info.json`",
        parameters=[_ID],
        responses={303: OpenApiResponse(description="Its `info.json`")},
    )
    def get(self, request: Request, id: uuid.UUID) -> HttpResponse:
        """Leads on to `info.json`."""
        canvas = selectors.image_get(user=user_of(request), canvas_id=id)
        address = f"{iiif.image_address(base_of(request), canvas)}/info.json"
        response = HttpResponseRedirect(address)
        response.status_code = 303
        return response


class CanvasImageInfoApi(CrossingApi):
    """What can be asked of an image."""

    @extend_schema(
        operation_id="canvas_image_info",
        summary="Show the info.json of an IIIF image",
        parameters=[_ID],
        responses={
            (200, "application/json"): OpenApiTypes.OBJECT,
            (200, "application/ld+json"): OpenApiTypes.OBJECT,
        },
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Sizes, tiles and features; IIIF Image API 3.0, level 2. A video has none (404)."""
        canvas = selectors.image_get(user=user_of(request), canvas_id=id)
        info = iiif.image_info(canvas, base_of(request))
        return linked_json(request, info, context=iiif.IMAGE)


class CanvasImageApi(CrossingApi):
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
        """A tile that `info.json` names is the stored one; at most 2,048 px a side are given."""
        canvas = selectors.image_get(user=user_of(request), canvas_id=id)
        size = (canvas.width_px, canvas.height_px)
        asked = image_request(**parts, canvas=size)
        canonical = asked.canonical(size)
        etag = f'"i-{canvas.picture_tag}-{canonical.replace(",", ".")}"'
        box = Box(asked.left, asked.top, asked.width, asked.height)
        known = etag_matches(request._request, etag)
        response = bytes_response(
            request._request,
            b"" if known else picture(region_read(canvas, box, asked.out), asked),
            etag=etag,
            media_type=FORMATS[asked.extension],
            cache=CACHE,
        )
        base = iiif.image_address(base_of(request), canvas)
        response["Link"] = f'<{base}/{canonical}>;rel="canonical",<{_PROFILE}>;rel="profile"'
        return response
