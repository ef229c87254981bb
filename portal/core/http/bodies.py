"""Limits on request bodies; files are accepted only by views that declare it.

Django reads a form while it checks the CSRF token, before any view has checked permissions.
``BodyLimitMiddleware`` therefore rejects by the announced length, and accepts no files. A view that
receives files declares it (``receives_files``), is exempt from the general CSRF check and calls
``require_csrf`` itself, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.http import HttpRequest, QueryDict
from django.middleware.csrf import CsrfViewMiddleware
from django.views.decorators.csrf import csrf_exempt

from portal.core.errors import ForbiddenError, PortalError, TooLargeInputError

PAGE_BODY_BYTES = 2**20  # a form of text
API_BODY_BYTES = 2**20  # JSON; a view that takes more says so in ``body_limit_bytes``
_View = TypeVar("_View", bound=Callable[..., Any])


class FilesRefusedError(PortalError):
    """A file was sent to a URL that accepts none."""

    status, code, title = 415, "files-refused", "No files are accepted here"


class LengthRequiredError(PortalError):
    """The request has a body without a Content-Length."""

    status, code, title = 411, "length-required", "The length of the body is missing"


def receives_files(view: _View) -> _View:
    """Mark a view that accepts files and calls ``require_csrf`` before it reads the body."""
    view.receives_files = True  # type: ignore[attr-defined]
    return csrf_exempt(view)


def require_acceptable(request: HttpRequest, *, limit_bytes: int) -> None:
    """Check the length of a body by its headers.

    Raises:
        LengthRequiredError: The body is chunked and has no length.
        TooLargeInputError: The length exceeds ``limit_bytes``.
    """
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        raise LengthRequiredError("Send the body with a Content-Length.")
    if body_length(request) > limit_bytes:
        raise TooLargeInputError(
            f"The body is larger than this URL accepts: the limit is {limit_bytes:,} bytes.",
            details={"limit_bytes": limit_bytes},
        )


def body_length(request: HttpRequest) -> int:
    """Value of Content-Length; 0 if it is missing or not a number."""
    header = request.META.get("CONTENT_LENGTH") or "0"
    return int(header) if header.isdecimal() else 0


class NoFilesHandler(FileUploadHandler):
    """Upload handler of views that accept no files: skips them and marks the request."""

    def new_file(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Skip the file; ``BodyLimitMiddleware`` responds."""
        self.request.files_refused = True  # type: ignore[union-attr]
        raise SkipFile

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Never called: the file was skipped."""

    def file_complete(self, file_size: int) -> None:
        """Never called: the file was skipped."""


def require_csrf(request: HttpRequest, fields: QueryDict | None = None) -> None:
    """Run Django's CSRF check on the header or ``fields``, without reading the body.

    Raises:
        ForbiddenError: token or origin is wrong.
    """
    is_read = "_post" in request.__dict__
    if not is_read:
        request._post = fields or QueryDict()  # type: ignore[attr-defined] # where the check looks
    try:
        refused = _Check(_no_response).process_view(request, None, (), {})  # type: ignore[arg-type]
    finally:
        if not is_read:
            del request._post  # type: ignore[attr-defined]
    if refused is not None:
        raise ForbiddenError(
            "This form is no longer valid. Go back, reload the page and try again.", code="csrf"
        )


class _Check(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _no_response(request: HttpRequest) -> NoReturn:
    raise NotImplementedError
