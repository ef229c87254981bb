"""Words for stains that a person is offered."""

from __future__ import annotations

import uuid

from ml.imaging.staining import STAIN_NAMES
from portal.archive.models import Canvas, Slide
from portal.archive.selectors.cases import words_of
from portal.labs.models import User


def stain_shown(canvas: Canvas) -> str:
    """The stain of the slide that a canvas shows; "" of anything else, and where nobody knows it.

    For many canvases, fetch their slides with them (``select_related``).
    """
    slide: Slide | None = getattr(canvas, "slide", None)
    return slide.stain if slide is not None else ""


def stains_offered(*, user: User, lab_id: uuid.UUID) -> list[str]:
    """Stains of a lab's slides, then standard ones that it has not used yet. One query.

    For a lab that the person is not a member of, the standard ones alone.
    """
    slides = Slide.objects.owned_by(user).filter(lab_id=lab_id).exclude(stain="").order_by()
    used = words_of(slides.values_list("stain", flat=True).distinct())
    known = {word.casefold() for word in used}
    return used + [name for name in STAIN_NAMES if name.casefold() not in known]
