"""Files over HTTP: unchanging content by ETag, and byte ranges of videos."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags

IMMUTABLE = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"
CHUNK_BYTES = 256 * 1024  # a seek in a video is answered with little read in vain
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")


def etag_matches(request: HttpRequest, etag: str) -> bool:
    """Whether the client holds these bytes already."""
    sent = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in sent or any(tag.removeprefix("W/") == etag for tag in sent)


def bytes_response(
    request: HttpRequest,
    data: bytes,
    *,
    etag: str,
    media_type: str = "image/jpeg",
    cache: str = IMMUTABLE,
) -> HttpResponse:
    """The bytes, or 304."""
    if etag_matches(request, etag):
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(data, content_type=media_type)
        response["X-Content-Type-Options"] = "nosniff"
    response["ETag"], response["Cache-Control"] = etag, cache
    return response


def range_response(
    request: HttpRequest, path: Path, *, etag: str, media_type: str
) -> HttpResponseBase:
    """A file from disk: whole, one byte range (206), unsatisfiable (416) or unchanged (304).

    More than one range, one in another unit, or an ``If-Range`` that names other bytes get the
    whole file, as RFC 9110 has it.
    """
    size = path.stat().st_size
    span = _asked(request, etag)
    response: HttpResponseBase
    if etag_matches(request, etag):
        response = HttpResponse(status=304)
    elif span is None:
        response = _streamed(request, path, range(size))
    elif part := _resolve(span, size):
        response = _streamed(request, path, part, status=206)
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


def _asked(request: HttpRequest, etag: str) -> tuple[str, str] | None:
    """First and last byte as sent, None if no usable range was."""
    match = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if match is None or request.headers.get("If-Range", etag).strip() != etag:
        return None
    first, last = match.groups()
    backwards = bool(first and last) and int(last) < int(first)
    return None if backwards or not (first or last) else (first, last)


def _resolve(asked: tuple[str, str], size: int) -> range:
    """The bytes of the file that were asked for; empty if there are none."""
    first, last = asked
    if not first:  # the last n bytes
        return range(max(0, size - int(last)), size)
    return range(int(first), min(int(last) + 1, size) if last else size)


def _streamed(
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
