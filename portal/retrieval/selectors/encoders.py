"""Reads of encoders."""

from __future__ import annotations

import uuid

from django.db.models import Q, QuerySet

from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.core.errors import NotFoundError
from portal.jobs.models import ENDED, Job
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
    """The encoder of a kind that searches use unless told otherwise; None before its first use."""
    return Encoder.objects.filter(is_default=True, kind=kind).first()


def encoder_next(kind: str) -> Encoder | None:
    """The encoder that is about to take the place of the kind's default, if one is."""
    return Encoder.objects.filter(is_next=True, kind=kind).first()


def encoder_for(roi: Roi) -> Encoder | None:
    """The encoder to search with from this ROI: its kind's default, or the one that follows it.

    An ROI drawn while the default is being replaced is embedded by the next one alone.
    """
    kind = encoder_kind_for(roi.canvas)
    chosen, following = encoder_default(kind), encoder_next(kind)
    if following is None or chosen is None or embedding_current(roi=roi, encoder=chosen):
        return chosen
    return following if embedding_current(roi=roi, encoder=following) else chosen


def backfill_jobs_open(encoder: Encoder) -> QuerySet[Job]:
    """Jobs that embed an archive with this encoder and have not ended."""
    whole_labs = Q(kind=BACKFILL_KIND, args__encoder_id=str(encoder.pk))
    canvases = Q(kind=CANVAS_KIND, args__encoder_id=str(encoder.pk))
    return Job.objects.exclude(state__in=ENDED).filter(whole_labs | canvases)


def encoder_get(encoder_id: uuid.UUID) -> Encoder:
    """One encoder, or ``NotFoundError``."""
    encoder = Encoder.objects.filter(pk=encoder_id).first()
    if encoder is None:
        raise NotFoundError("There is no such encoder. GET /api/v1/encoders/ lists them.")
    return encoder
