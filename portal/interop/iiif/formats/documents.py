"""Documents of IIIF: ``info.json`` of an image and manifests of canvases and cases.

Source: IIIF Image API 3.0.0 and Presentation API 3.0.0. Lengths are pixels of level 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from ml.types import JsonObject
from portal.annotations.formats.types import plane_of
from portal.annotations.formats.web import canvas_address, page_address
from portal.archive.models import Canvas, CanvasKind, Case, Video
from portal.archive.selectors.items import video_media_type
from portal.archive.selectors.stains import stain_shown
from portal.archive.tiles.regions import scale_factors
from portal.interop.iiif.formats.image_requests import MAX_SIDE_PX, largest

IMAGE, PRESENTATION = (
    "http://iiif.io/api/image/3/context.json",
    "http://iiif.io/api/presentation/3/context.json",
)
THUMBNAIL_PX = 200  # the longer side
FEATURES = (
    *("mirroring", "rotationBy90s", "canonicalLinkHeader", "profileLinkHeader"),
    *("regionSquare", "jsonldMediaType", "cors", "baseUriRedirect"),
)


def image_address(base: str, canvas: Canvas) -> str:
    """Base of an image's IIIF addresses, without a trailing slash."""
    return f"{base}{reverse('api:canvas-image-base', args=[canvas.pk])}"


def image_info(canvas: Canvas, base: str) -> JsonObject:
    """``info.json``: the tiles are those of the file, so that they need not be made."""
    tiles = [
        {"width": width, "height": height, "scaleFactors": factors}
        for (width, height), factors in scale_factors(canvas).items()
    ]
    sizes = {largest(canvas.width_px, canvas.height_px)} | {
        (level["width_px"], level["height_px"])
        for level in canvas.levels
        if max(level["width_px"], level["height_px"]) <= MAX_SIDE_PX
    }
    return {
        "@context": IMAGE,
        "id": image_address(base, canvas),
        "type": "ImageService3",
        "protocol": "http://iiif.io/api/image",
        "profile": "level2",
        "width": canvas.width_px,
        "height": canvas.height_px,
        "maxWidth": MAX_SIDE_PX,
        "maxHeight": MAX_SIDE_PX,
        "sizes": [{"width": width, "height": height} for width, height in sorted(sizes)],
        **({"tiles": tiles} if tiles else {}),
        "preferredFormats": ["jpg"],
        "extraQualities": ["color", "gray", "bitonal"],
        "extraFeatures": list(FEATURES),
    }


def canvas_manifest(canvas: Canvas, base: str) -> JsonObject:
    """The manifest of one canvas, which its case's manifest has as well."""
    manifest_id = f"{base}{reverse('api:canvas-manifest', args=[canvas.pk])}"
    return _manifest(manifest_id, canvas.name, [canvas], base)


def case_manifest(case: Case, canvases: Sequence[Canvas], base: str) -> JsonObject:
    """A case with its canvases in their order."""
    manifest_id = f"{base}{reverse('api:case-manifest', args=[case.pk])}"
    fields = {"Organ": case.organ, "Procedure": case.procedure, "Diagnosis": case.diagnosis}
    metadata = [_pair(name, value) for name, value in fields.items() if value]
    manifest = _manifest(manifest_id, case.accession, canvases, base)
    return manifest | ({"metadata": metadata} if metadata else {})


def _manifest(manifest_id: str, label: str, canvases: Sequence[Canvas], base: str) -> JsonObject:
    return {
        "@context": PRESENTATION,
        "id": manifest_id,
        "type": "Manifest",
        "label": _text(label),
        "items": [_canvas(canvas, base) for canvas in canvases],
    }


def _canvas(canvas: Canvas, base: str) -> JsonObject:
    plane = plane_of(canvas)
    canvas_id = canvas_address(base, plane)
    video: Video | None = getattr(canvas, "video", None)
    is_video = canvas.kind == CanvasKind.VIDEO and video is not None
    document: JsonObject = {
        "id": canvas_id,
        "type": "Canvas",
        "label": _text(canvas.name),
        "width": canvas.width_px,
        "height": canvas.height_px,
    }
    if is_video and video is not None:
        document["duration"] = max(video.duration_s, video.time_base_s)
    fields = {"Microns per pixel": f"{canvas.mpp_x:g}" if canvas.mpp_x else ""}
    fields["Stain"] = stain_shown(canvas)
    if metadata := [_pair(name, value) for name, value in fields.items() if value]:
        document["metadata"] = metadata
    painted = {
        "id": f"{canvas_id}/painting",
        "type": "Annotation",
        "motivation": "painting",
        "body": _video(video, canvas, base) if is_video and video else _image(canvas, base),
        "target": canvas_id,
    }
    page = {"id": f"{canvas_id}/page", "type": "AnnotationPage", "items": [painted]}
    annotations = {"id": page_address(base, plane), "type": "AnnotationPage"}
    return document | {
        "thumbnail": [_thumbnail(canvas, base)],
        "items": [page],
        "annotations": [annotations],
    }


def _image(canvas: Canvas, base: str) -> JsonObject:
    width, height = largest(canvas.width_px, canvas.height_px)
    return {
        "id": f"{image_address(base, canvas)}/full/max/0/default.jpg",
        "type": "Image",
        "format": "image/jpeg",
        "width": width,
        "height": height,
        "service": [_service(canvas, base)],
    }


def _video(video: Video, canvas: Canvas, base: str) -> JsonObject:
    return {
        "id": f"{base}{reverse('api:video-media', args=[video.pk])}",
        "type": "Video",
        "format": video_media_type(video),
        "width": canvas.width_px,
        "height": canvas.height_px,
        "duration": max(video.duration_s, video.time_base_s),
    }


def _thumbnail(canvas: Canvas, base: str) -> JsonObject:
    """Thumbnail; a slide's is served by its image service, so that other sizes can be requested."""
    if canvas.kind == CanvasKind.VIDEO:
        address = f"{base}{reverse('api:canvas-thumbnail', args=[canvas.pk])}"
        return {"id": address, "type": "Image", "format": "image/jpeg"}
    fitted = f"!{THUMBNAIL_PX},{THUMBNAIL_PX}"
    return {
        "id": f"{image_address(base, canvas)}/full/{fitted}/0/default.jpg",
        "type": "Image",
        "format": "image/jpeg",
        "service": [_service(canvas, base)],
    }


def _service(canvas: Canvas, base: str) -> dict[str, str]:
    return {"id": image_address(base, canvas), "type": "ImageService3", "profile": "level2"}


def _pair(name: str, value: str) -> JsonObject:
    return {"label": {"en": [name]}, "value": _text(value)}


def _text(value: str) -> dict[str, list[str]]:
    return {"none": [value]}
