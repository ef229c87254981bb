"""Thumbnails, and what a browser plays of a video."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from portal.archive.models import Canvas, Video
from portal.archive.selectors.clips import clip_path
from portal.archive.selectors.items import video_media_type
from portal.archive.storage import files as storage
from portal.archive.tiles.regions import thumbnail_read
from portal.core.errors import NotFoundError, UnavailableError
from portal.core.http.downloads import attachment
from portal.core.http.files import bytes_response, range_response
from portal.core.text import stem_of


def thumbnail_response(request: HttpRequest, canvas: Canvas) -> HttpResponse:
    """The canvas' thumbnail, or 404."""
    if not canvas.thumbnail_path:
        raise NotFoundError("This canvas has no thumbnail.")
    try:
        data = thumbnail_read(canvas)
    except OSError as error:
        raise UnavailableError("The thumbnail cannot be read from storage.") from error
    return bytes_response(request, data, etag=f'"t-{canvas.picture_tag}"')


def media_response(request: HttpRequest, video: Video) -> HttpResponseBase:
    """The original or its rendition, by byte ranges."""
    if not video.media_path:
        raise NotFoundError(f"{video.name} is not ready: there is nothing to play yet.")
    is_original = storage.is_original(video.media_path)
    etag = f'"{"o" if is_original else "r"}-{video.asset.sha256[:24]}"'
    try:
        path = storage.resolve(video.media_path)
        return range_response(request, path, etag=etag, media_type=video_media_type(video))
    except OSError as error:
        raise UnavailableError("The video cannot be read from storage.") from error


def clip_response(
    request: HttpRequest, video: Video, *, first_index: int, last_index: int
) -> HttpResponseBase:
    """Response with a stored clip, or a byte range of it; 404 if there is none."""
    canvas = video.canvas
    path = clip_path(canvas, first_index, last_index) if canvas else None
    if path is None or not path.is_file():
        raise NotFoundError("There is no clip of these frames. Request it first.")
    etag = f'"c-{path.stem}"'
    response = range_response(request, path, etag=etag, media_type="video/mp4")
    frames = f"frames {first_index + 1}-{last_index + 1}"
    if first_index == last_index:
        frames = f"frame {first_index + 1}"
    name = f"{stem_of(video.name)} {frames}"
    response["Content-Disposition"] = attachment(name, ".mp4", fallback="clip")
    return response
