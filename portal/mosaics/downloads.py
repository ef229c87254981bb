"""Files of a mosaic: layers, the growing preview, the pyramid, a PNG, the manifest."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from ml.files import replacing
from portal.archive.models import ItemState
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError, UnavailableError
from portal.core.http.downloads import attachment
from portal.core.http.files import REVALIDATE, bytes_response, range_response
from portal.mosaics.build_cache import build_cache_preview
from portal.mosaics.models import Mosaic, MosaicComponent
from portal.mosaics.selectors.components import component_of

MANIFEST_NAME = "mosaic.json"
PNG_SIZES = (1024, 2048, 4096)  # for a slide, a page, a poster
PNG_LARGEST = PNG_SIZES[-1]
"""Made while the browser waits: about 1 s of one core and 45 MiB. All pixels are in the TIFF."""

PNG_SMALLEST = 64
"""Smaller, nothing can be made out."""

PNG_WITHIN_S = 20.0
"""For waiting and work together: within the half minute that web servers usually allow."""

_PNG_COMPRESSION = 4  # of 9: larger ones take many times as long for a few per cent
_png_at_work = threading.Lock()


def layer_response(
    request: HttpRequest, mosaic: Mosaic, *, component: int, name: str
) -> HttpResponse:
    """A layer of one component as 8-bit grey PNG; cached for good, its address names its content.

    Raises:
        ConflictError: not ready yet.
        NotFoundError: no such component or layer.
    """
    component_row = component_of(mosaic, component)
    layer = next((row for row in component_row.layers if row["name"] == name), None)
    if layer is None:
        names = ", ".join(row["name"] for row in component_row.layers) or "none"
        raise NotFoundError(f"This mosaic has no such layer; it has {names}.")
    path = storage.derived_folder(mosaic.pk) / Path(layer["png"]).name
    etag = f'"layer-{name}-{component}-{component_row.canvas.content_hash[:24]}"'
    return bytes_response(request, _bytes(path), etag=etag, media_type="image/png")


def preview_response(request: HttpRequest, mosaic: Mosaic) -> HttpResponse:
    """Preview of a running build; the full mosaic if it is finished.

    Raises:
        NotFoundError: there is no preview yet.
    """
    path = build_cache_preview(mosaic)
    is_ready = mosaic.state == ItemState.READY
    if is_ready and mosaic.canvas is not None and mosaic.canvas.thumbnail_path:
        path = storage.resolve(mosaic.canvas.thumbnail_path)
    try:
        stamp, data = path.stat().st_mtime_ns, path.read_bytes()
    except OSError:
        raise NotFoundError("This mosaic has no preview yet.", code="no-preview") from None
    return bytes_response(request, data, etag=f'"p-{stamp:x}-{len(data):x}"', cache=REVALIDATE)


def pyramid_response(request: HttpRequest, mosaic: Mosaic, *, component: int) -> HttpResponseBase:
    """The pyramidal TIFF; supports byte ranges."""
    component_row = component_of(mosaic, component)
    path = storage.resolve(component_row.canvas.pixels_path)
    etag = f'"m-{component_row.canvas.content_hash[:24]}"'
    return _download(request, path, etag, "image/tiff", _saved_as(component_row, ".tif"))


def manifest_response(request: HttpRequest, mosaic: Mosaic) -> HttpResponseBase:
    """``mosaic.json`` as the engine wrote it: every frame's transform, covariance and reason."""
    first = component_of(mosaic, 0)
    path = storage.derived_folder(mosaic.pk) / MANIFEST_NAME
    etag = f'"j-{first.canvas.content_hash[:24]}"'
    return _download(request, path, etag, "application/json", _saved_as(first, ".json"))


def png_response(
    request: HttpRequest, mosaic: Mosaic, *, component: int, size_px: int
) -> HttpResponseBase:
    """A component as PNG, its longer side at most ``size_px``, never enlarged.

    Made once and kept in the canvas' cache.

    Raises:
        UnavailableError: it would take too long now.
    """
    component_row = component_of(mosaic, component)
    size_px = min(size_px, max(component_row.canvas.width_px, component_row.canvas.height_px))
    path = (
        storage.cache_folder(component_row.canvas_id)
        / f"{component_row.canvas.content_hash[:16]}-{size_px}.png"
    )
    _make_png(storage.resolve(component_row.canvas.pixels_path), path, size_px)
    etag = f'"g-{component_row.canvas.content_hash[:24]}-{size_px}"'
    return _download(request, path, etag, "image/png", _saved_as(component_row, f".{size_px}.png"))


def _make_png(source: Path, target: Path, size_px: int) -> None:
    """Write the PNG unless it exists, one at a time in this process to limit memory."""
    if target.exists():
        return
    ends = time.monotonic() + PNG_WITHIN_S
    if not _png_at_work.acquire(timeout=PNG_WITHIN_S):
        raise UnavailableError("Other pictures are being made. Try again in a moment.")
    try:
        if not target.exists():
            _write_png(source, target, size_px, ends=ends)
    finally:
        _png_at_work.release()


def _write_png(source: Path, target: Path, size_px: int, *, ends: float) -> None:
    """Write a PNG from the next larger level of the pyramid, in strips, until ``ends``."""
    import pyvips

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(target) as temporary:
            image = pyvips.Image.thumbnail(str(source), size_px, height=size_px, size="down")
            image.set_progress(True)
            image.signal_connect("eval", lambda *_: image.set_kill(time.monotonic() > ends))
            image.pngsave(str(temporary), compression=_PNG_COMPRESSION, keep="icc")
    except pyvips.Error as error:
        if time.monotonic() > ends:
            raise UnavailableError(
                "This picture takes too long to make now. Ask for a smaller one, or for the "
                "pyramidal TIFF."
            ) from error
        raise UnavailableError("This mosaic cannot be read from the stored file.") from error


def _download(
    request: HttpRequest, path: Path, etag: str, media_type: str, disposition: str
) -> HttpResponseBase:
    try:
        response = range_response(request, path, etag=etag, media_type=media_type)
    except OSError as error:
        raise UnavailableError("The file cannot be read from storage.") from error
    response["Content-Disposition"] = disposition
    return response


def _saved_as(component: MosaicComponent, suffix: str) -> str:
    return attachment(component.canvas.name, suffix, fallback="mosaic")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnavailableError("The file cannot be read from storage.") from error
