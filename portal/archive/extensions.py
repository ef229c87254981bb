"""Where higher apps add to the archive's pages without the archive importing them.

Register from ``AppConfig.ready``. Each function returns HTML that is safe to include (rendered from
a template) or an empty string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

from portal.archive.models import Canvas, Case, Video
from portal.labs.models import Lab

case_sections: list[Callable[[HttpRequest, Case], str]] = []
"""Sections below slides and videos on a case's page (mosaics)."""

list_actions: list[Callable[[HttpRequest, Lab | None], str]] = []
"""Buttons beside "New case" ("Import a case")."""

video_actions: list[Callable[[HttpRequest, Video], str]] = []
"""Buttons on the card of a ready video ("Build mosaic")."""

canvas_actions: list[Callable[[HttpRequest, Canvas], str]] = []
"""Links and buttons above the viewer."""


def rendered(
    functions: Iterable[Callable[[HttpRequest, Any], str]], request: HttpRequest, subject: Any
) -> SafeString:
    """What all of them return, one after the other."""
    parts = [function(request, subject) for function in functions]
    return mark_safe("".join(parts))  # noqa: S308 - each part is a rendered template
