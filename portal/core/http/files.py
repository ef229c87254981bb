"""File responses: immutable content by ETag, and byte ranges of videos."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

IMMUTABLE = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"
CHUNK_BYTES = 256 * 1024  # small enough that a seek in a video reads little in vain
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")


def bytes_response(
    request: HttpRequest,
    data: bytes | Callable[[], bytes],
    *,
    etag: str,
    media_type: str = "image/jpeg",
    cache: str = IMMUTABLE,
) -> HttpResponse:
    """Response with the bytes or 304; a function is called only if its bytes are sent."""
    response: HttpResponse | None = get_conditional_response(request, etag=etag)
    if response is None:
        content = data if isinstance(data, bytes) else data()
        response = HttpResponse(content, content_type=media_type)
        response["X-Content-Type-Options"] = "nosniff"
    response["ETag"], response["Cache-Control"] = etag, cache
    return response


def range_response(
    request: HttpRequest, path: Path, *, etag: str, media_type: str
) -> HttpResponseBase:
    """Response with a file (200), one byte range (206), 416 or 304.

    Several ranges, another unit or a stale ``If-Range`` get the whole file (RFC 9110).
    """
    size = path.stat().st_size
    span = _requested_range(request, etag)
    response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
    if response is not None:
        pass
    elif span is None:
        response = _stream_file(request, path, range(size))
    elif part := _resolve(span, size):
        response = _stream_file(request, path, part, status=206)
        response["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    else:
        response = HttpResponse(status=416)
        response["Content-Range"] = f"bytes */{size}"
    if response.status_code in (200, 206):
        response["Content-Type"] = media_type
        response["X-Content-Type-Options"] = "nosniff"
    response["ETag"], response["Cache-Control"] = etag, REVALIDATE
    response["Accept-Ranges"] = "bytes"
    return response


def _requested_range(request: HttpRequest, etag: str) -> tuple[str, str] | None:
    """First and last byte of the Range header; None without a usable range."""
    match = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if match is None or request.headers.get("If-Range", etag).strip() != etag:
        return None
    first, last = match.groups()
    backwards = bool(first and last) and int(last) < int(first)
    return None if backwards or not (first or last) else (first, last)


def _resolve(requested: tuple[str, str], size: int) -> range:
    """Requested bytes within the file; empty if the range cannot be satisfied."""
    first, last = requested
    if not first:  # the last n bytes
        return range(max(0, size - int(last)), size)
    return range(int(first), min(int(last) + 1, size) if last else size)


def _stream_file(
    request: HttpRequest, path: Path, part: range, *, status: int = 200
) -> HttpResponseBase:
    response: HttpResponseBase
    if request.method == "HEAD":
        response = HttpResponse(status=status)
    else:
        response = StreamingHttpResponse(_read(path, part), status=status)
    response["Content-Length"] = str(len(part))
    return response


def _read(path: Path, span: range) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(span.start)
        left = len(span)
        while left and (chunk := file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
