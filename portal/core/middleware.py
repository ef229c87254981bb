"""Errors raised by pages become pages, not traces."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.core.errors import PortalError
from portal.core.views import error_response


class PortalErrorMiddleware:
    """Renders ``PortalError`` raised by a view that is not DRF's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass through; only errors concern this middleware."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer a ``PortalError`` with its status and its sentence."""
        if not isinstance(error, PortalError):
            return None
        return error_response(request, error)
