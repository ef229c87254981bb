"""Parts of pages that show regions."""

from __future__ import annotations

import uuid
from typing import Any

from django import template

from portal.annotations.formats.registry import WRITERS
from portal.annotations.rules import may_manage_labels as is_manager
from portal.archive.models import Canvas, CanvasKind
from portal.labs.requests import user_of

register = template.Library()


@register.inclusion_tag("annotations/_export_menu.html")
def roi_export_menu(
    canvas_id: uuid.UUID | str, kind: str, *, in_viewer: bool = False
) -> dict[str, Any]:
    """The formats that the ROIs of a canvas can be downloaded in."""
    is_video = kind == CanvasKind.VIDEO
    writers = [writer for writer in WRITERS.values() if writer.for_video or not is_video]
    return {
        "canvas_id": canvas_id,
        "in_viewer": in_viewer,
        "formats": [(writer.name, writer.title) for writer in writers if writer.name != "png"],
    }


@register.simple_tag(takes_context=True)
def may_manage_labels(context: template.Context, canvas: Canvas) -> bool:
    """True if the reader of the page may add a label to the lab of a canvas."""
    return is_manager(user_of(context["request"]), canvas.lab_id)
