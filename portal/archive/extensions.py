"""Parts of the archive's pages that come from higher apps.

Each function returns HTML that is safe to include (rendered from a template) or an empty string.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

from portal.core.registry import Registry


class Slot(Enum):
    """Position of a part on a page, and its subject."""

    CASE_SECTION = auto()  # a case: below slides and videos on its page
    LIST_ACTION = auto()  # a lab that the person manages: a button next to "New case"
    SELECTION_ACTION = auto()  # a lab that the person manages: a button for the chosen cases
    VIDEO_ACTION = auto()  # a video: a button on its card once it is ready
    CANVAS_ACTION = auto()  # a canvas: links and buttons above the viewer
    TRASH_TAB = auto()  # a lab: links to other pages of its trash


PAGE_PARTS: Registry[Slot, Callable[[HttpRequest, Any], str]] = Registry()


def rendered(slot: Slot, request: HttpRequest, *subjects: Any) -> SafeString:
    """All parts of a slot for each subject, one after the other; empty without a subject."""
    parts = [
        function(request, subject) for subject in subjects for function in PAGE_PARTS.all(slot)
    ]
    return mark_safe("".join(parts))  # noqa: S308 - each part is a rendered template
