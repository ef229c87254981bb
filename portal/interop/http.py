"""Content negotiation, caching and addresses for the views of the standards."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.core.api.views import ApiView
from portal.labs.models import TokenArea

CACHE_CONTROL = "private, max-age=3600"  # the pixels of a canvas never change; who may see it does
LINKED = {
    (200, "application/json"): OpenApiTypes.OBJECT,
    (200, "application/ld+json"): OpenApiTypes.OBJECT,
}
"""Responses of a document that is JSON or JSON-LD, for the schema."""


class StandardApi(ApiView):
    """An address of IIIF or DICOMweb: it says the format, and the view reads ``Accept`` itself.

    Pages of other hosts may read it with a token (``CORS_URLS_REGEX``).
    """

    area = TokenArea.CASES

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Accept any ``Accept`` header."""
        return super().perform_content_negotiation(request, force=True)


def linked_json(request: Request, body: JsonObject, *, context: str) -> Response:
    """JSON, called JSON-LD where the client asks for it."""
    accepted = request.headers.get("Accept", "")
    media_type = f'application/ld+json;profile="{context}"' if "ld+json" in accepted else None
    return Response(body, content_type=media_type, headers={"Vary": "Accept"})


def base_of(request: HttpRequest | Request) -> str:
    """Scheme and host, as this request was sent to them."""
    return request.build_absolute_uri("/").rstrip("/")
