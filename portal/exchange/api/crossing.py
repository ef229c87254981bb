"""Answers that a page of another host may read, where its script sends a token."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.core.api.views import ApiView
from portal.labs.models import TokenArea

CROSSING = {
    "Access-Control-Allow-Origin": "*",  # never with cookies: browsers leave them out
    "Access-Control-Expose-Headers": "ETag, Link",
}
_ASKED_BEFORE = {
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, Authorization, If-None-Match",
    "Access-Control-Max-Age": "86400",
}


class CrossingApi(ApiView):
    """Read by viewers on other hosts: any ``Accept`` will do, and errors can be read as well."""

    area = TokenArea.CASES

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A browser asks without a token whether it may send one."""
        if request.method != "OPTIONS":
            super().initial(request, *args, **kwargs)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """The address says the format."""
        return super().perform_content_negotiation(request, force=True)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Allow it; the request itself is judged when it comes."""
        return HttpResponse(status=204, headers=_ASKED_BEFORE)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Readable from anywhere."""
        if not hasattr(request, "accepted_renderer"):
            request.accepted_renderer, request.accepted_media_type = (
                self.perform_content_negotiation(request)
            )
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in CROSSING.items():
            answer.headers[name] = value
        return answer


def linked_json(request: Request, body: JsonObject, *, context: str) -> Response:
    """JSON, called JSON-LD where the client asks for it."""
    asked = request.headers.get("Accept", "")
    said = f'application/ld+json;profile="{context}"' if "ld+json" in asked else None
    return Response(body, content_type=said, headers={"Vary": "Accept"})


def base_of(request: HttpRequest | Request) -> str:
    """Scheme and host, as this request was sent to them."""
    return request.build_absolute_uri("/").rstrip("/")
