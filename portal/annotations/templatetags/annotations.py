"""Parts of pages that show regions."""

from __future__ import annotations

import uuid
from typing import Any

from django import template

from portal.annotations.formats import WRITERS
from portal.archive.models import CanvasKind

register = template.Library()


@register.inclusion_tag("annotations/_export_menu.html")
def roi_export_menu(
    canvas_id: uuid.UUID | str, kind: str, *, in_viewer: bool = False
) -> dict[str, Any]:
    """The formats that the ROIs of a canvas can be downloaded in."""
    is_video = kind == CanvasKind.VIDEO
    writers = [one for one in WRITERS.values() if one.for_video or not is_video]
    return {
        "canvas_id": canvas_id,
        "in_viewer": in_viewer,
        "formats": [(one.name, one.title) for one in writers if one.name != "png"],
    }
