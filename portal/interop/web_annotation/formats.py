"""Pages of W3C Web Annotations. One annotation is written by ``portal.annotations.formats.web``."""

from __future__ import annotations

from collections.abc import Iterable

from ml.types import JsonObject
from portal.annotations.formats.types import plane_of
from portal.annotations.formats.web import CONTEXTS, annotation, page_address
from portal.annotations.models import Roi
from portal.archive.models import Canvas


def annotation_page(
    canvas: Canvas, rois: Iterable[Roi], base: str, *, number: int, is_last: bool
) -> JsonObject:
    """A page of a canvas' ROIs; ``number`` counts from 1."""
    plane = plane_of(canvas)
    first = page_address(base, plane)
    page_url = first if number == 1 else f"{first}?page={number}"
    page: JsonObject = {"@context": list(CONTEXTS), "id": page_url, "type": "AnnotationPage"}
    if not is_last:
        page["next"] = f"{first}?page={number + 1}"
    if number > 1:
        page["prev"] = first if number == 2 else f"{first}?page={number - 1}"
    return page | {"items": [annotation(roi, plane, base) for roi in rois]}
