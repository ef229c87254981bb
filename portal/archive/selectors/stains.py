"""Words for stains that a person is offered."""

from __future__ import annotations

import uuid

from ml.imaging.staining.terms import STAIN_NAMES
from portal.archive.models import Canvas, Modality, Slide
from portal.archive.selectors.cases import words_of
from portal.labs.models import User


def stain_shown(canvas: Canvas) -> str:
    """Stain of the slide or still on a canvas; "" if unknown, and of anything but histology.

    For many canvases, fetch their slides with them (``select_related``).
    """
    slide: Slide | None = getattr(canvas, "slide", None)
    if slide is None or canvas.modality != Modality.HISTOLOGY:
        return ""
    return slide.stain


def stains_offered(*, user: User, lab_id: uuid.UUID) -> list[str]:
    """Stains of a lab's slides, then standard ones that it has not used yet. One query.

    Only the standard ones if the person is not a member of the lab.
    """
    slides = Slide.objects.owned_by(user).filter(lab_id=lab_id).exclude(stain="").order_by()
    used = words_of(slides.values_list("stain", flat=True).distinct())
    used_words = {word.casefold() for word in used}
    return used + [name for name in STAIN_NAMES if name.casefold() not in used_words]
