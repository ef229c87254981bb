"""Reads of encoders."""

from __future__ import annotations

import uuid

from django.db.models import Q, QuerySet

from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.jobs.models import ENDED, Job
from portal.labs.models import Membership, User
from portal.retrieval.models import (
    CANVASES_OF,
    Encoder,
    EncoderKind,
)
from portal.retrieval.selectors.embeddings import CANVAS_KIND, embedding_current

BACKFILL_KIND = "lab_embed"


def encoder_kind_for(canvas: Canvas) -> EncoderKind:
    """The kind of encoder that embeds the ROIs of this canvas."""
    return next(kind for kind, canvases in CANVASES_OF.items() if canvas.kind in canvases)


def encoder_default(kind: str = EncoderKind.HISTOLOGY) -> Encoder | None:
    """The encoder of a kind that all labs have vectors of; None before its first use.

    Searches use it unless told otherwise, or their lab has one of its own (``encoder_to_search``).
    """
    return Encoder.objects.filter(is_default=True, kind=kind, lab=None).first()


def encoder_next(kind: str) -> Encoder | None:
    """The encoder that is about to take the place of the kind's default, if one is."""
    return Encoder.objects.filter(is_next=True, kind=kind, lab=None).first()


def encoder_for(roi: Roi) -> Encoder | None:
    """The common encoder of an ROI: its kind's default, or the one that follows it.

    An ROI drawn while the default is being replaced is embedded by the next one alone.
    """
    kind = encoder_kind_for(roi.canvas)
    return _common_for(roi, encoder_default(kind), encoder_next(kind))


def encoder_to_search(roi: Roi, lab_id: uuid.UUID | None = None) -> Encoder | None:
    """The encoder to search a lab with from this ROI.

    The lab's own, where it has one in use and the ROI a vector of it; else as ``encoder_for``.

    Args:
        lab_id: whose regions are searched; None for the lab of the ROI.
    """
    kind = encoder_kind_for(roi.canvas)
    own, chosen, following = _in_force(kind, lab_id or roi.lab_id)
    if own is not None and embedding_current(roi=roi, encoder=own):
        return own
    return _common_for(roi, chosen, following)


def encoder_of_lab(kind: str, lab_id: uuid.UUID) -> Encoder | None:
    """The encoder that a lab's searches use: its own if it has one in use."""
    own, chosen, _ = _in_force(kind, lab_id)
    return own or chosen


def encoders_visible(user: User) -> QuerySet[Encoder]:
    """Those of all labs, and the own ones of this person's labs."""
    mine = Membership.objects.of(user).values("lab_id")
    return Encoder.objects.filter(Q(lab=None) | Q(lab__in=mine))


def _in_force(
    kind: str, lab_id: uuid.UUID
) -> tuple[Encoder | None, Encoder | None, Encoder | None]:
    """In one query: the lab's own that is in use, the common default, and what follows it."""
    rows = Encoder.objects.filter(Q(is_default=True) | Q(is_next=True), kind=kind)
    found = list(rows.filter(Q(lab=None) | Q(lab_id=lab_id)))
    own = next((row for row in found if row.lab_id and row.is_default), None)
    common = [row for row in found if row.lab_id is None]
    chosen = next((row for row in common if row.is_default), None)
    return own, chosen, next((row for row in common if row.is_next), None)


def _common_for(roi: Roi, chosen: Encoder | None, following: Encoder | None) -> Encoder | None:
    if following is None or chosen is None or embedding_current(roi=roi, encoder=chosen):
        return chosen
    return following if embedding_current(roi=roi, encoder=following) else chosen


def backfill_jobs_open(encoder: Encoder) -> QuerySet[Job]:
    """Jobs that embed an archive with this encoder and have not ended."""
    whole_labs = Q(kind=BACKFILL_KIND, args__encoder_id=str(encoder.pk))
    canvases = Q(kind=CANVAS_KIND, args__encoder_id=str(encoder.pk))
    return Job.objects.exclude(state__in=ENDED).filter(whole_labs | canvases)


def encoder_get(encoder_id: uuid.UUID, *, lab_id: uuid.UUID | None = None) -> Encoder:
    """One encoder, or ``NotFoundError``.

    Args:
        lab_id: whose regions are to be searched with it: no other lab's own will do.
    """
    encoder = Encoder.objects.filter(pk=encoder_id).first()
    is_others = encoder and lab_id and encoder.lab_id not in (None, lab_id)
    if encoder is None or is_others:
        raise NotFoundError("There is no such encoder. GET /api/v1/encoders/ lists them.")
    return encoder
