"""Stain of a slide as entered by a person: files rarely state it, and not always correctly."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from ml.imaging.staining.terms import stain_named
from portal.archive.models import Slide
from portal.archive.rules import require_edit
from portal.core.errors import InvalidInputError
from portal.core.events import event_emit
from portal.core.text import name_clean
from portal.labs.models import User

STAIN_LONGEST = 80  # characters, as for an organ


def slide_stain_set(*, slide: Slide, user: User, stain: str) -> Slide:
    """Say how a slide was stained; "" if nobody knows. Emits ``slide.stained``.

    A word is written as the lab's other slides write it, else as standard terms are. Searches find
    it from the next one on. What the file says no longer counts.

    Raises:
        ForbiddenError: below annotator in the lab of the slide.
        InvalidInputError: longer than ``STAIN_LONGEST``.
    """
    require_edit(user, slide.lab_id)
    word = name_clean(stain)
    if len(word) > STAIN_LONGEST:
        raise InvalidInputError(
            f"stain: at most {STAIN_LONGEST} characters; {word[:20]!r}... has {len(word)}."
        )
    with transaction.atomic():
        Slide.objects.filter(pk=slide.pk).update(
            stain=stain_spelled(slide, word), is_stain_by_hand=True, updated_at=Now()
        )
        event_emit(
            "slide.stained",
            lab_id=slide.lab_id,
            payload={
                "slide_id": str(slide.pk),
                "case_id": str(slide.case_id),
                "user_id": str(user.pk),
            },
        )
    slide.refresh_from_db(fields=["stain", "is_stain_by_hand", "updated_at"])
    return slide


def stain_spelled(slide: Slide, word: str) -> str:
    """The word as the lab's other slides write it, ignoring case: "pas" and "PAS" would be two
    stains."""
    if not word:
        return ""
    same = Slide.objects.filter(lab_id=slide.lab_id, stain__iexact=word).exclude(pk=slide.pk)
    spelling = same.order_by("created_at").values_list("stain", flat=True).first()
    return str(spelling or stain_named(word) or word)
