"""Middleware for limits of request bodies, privacy headers and error pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from portal.core.disk import MESSAGE, is_disk_full, reserve_release
from portal.core.errors import PortalError, StorageFullError
from portal.core.http.bodies import (
    API_BODY_BYTES,
    PAGE_BODY_BYTES,
    FilesRefusedError,
    require_acceptable,
)
from portal.core.views import API_PREFIX, error_response

SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
PERMISSIONS_POLICY = ", ".join(
    f"{name}=()"
    for name in (
        *("accelerometer", "autoplay", "camera", "display-capture", "geolocation", "gyroscope"),
        *("magnetometer", "microphone", "midi", "payment", "usb", "xr-spatial-tracking"),
    )
)
"""Features that no page needs and that injected scripts must not use."""


class PortalErrorMiddleware:
    """Renders ``PortalError`` raised by views outside DRF."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Release the disk reserve before a write if the disk is full."""
        if request.method not in SAFE_METHODS:
            reserve_release()
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Respond to a ``PortalError`` or a full disk with its status and message."""
        if is_disk_full(error):
            reserve_release()
            error = error if isinstance(error, PortalError) else StorageFullError(MESSAGE)
        if not isinstance(error, PortalError):
            return None
        return error_response(request, error)


class PrivacyHeadersMiddleware:
    """Mark every response as private by default. CSP, HSTS and framing have other middleware.

    A view's own caching header takes precedence, such as for pictures whose URL names their
    content.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add missing headers."""
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class BodyLimitMiddleware:
    """Refuses bodies that are too large or contain files before anything reads them.

    It runs before the CSRF check. Views that accept files check their bodies themselves
    (``portal.core.http.bodies``), and the API authenticates before it reads.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on; ``process_view`` checks it once the view is known."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], *_: Any
    ) -> HttpResponse | None:
        """Respond with 411, 413 or 415, or let the request pass."""
        if request.method in SAFE_METHODS or _receives_files(view):
            return None
        is_api = request.path.startswith(API_PREFIX)
        try:
            require_acceptable(request, limit_bytes=_limit_bytes(view, is_api=is_api))
            if not is_api and request.content_type == "multipart/form-data":
                _refuse_files(request)
        except PortalError as error:
            return error_response(request, error)
        return None


def _limit_bytes(view: Callable[..., Any], *, is_api: bool) -> int:
    """Limit of the view's ``body_limit_bytes``, or the default."""
    usual = API_BODY_BYTES if is_api else PAGE_BODY_BYTES
    return int(getattr(getattr(view, "cls", None), "body_limit_bytes", usual))


def _receives_files(view: Callable[..., Any]) -> bool:
    of_class = getattr(getattr(view, "cls", None), "receives_files", False)
    return bool(getattr(view, "receives_files", of_class))


def _refuse_files(request: HttpRequest) -> None:
    """Parse the form, whose length is bounded, and refuse files in it."""
    len(request.POST)
    if getattr(request, "files_refused", False):
        raise FilesRefusedError("This URL accepts no files.")
