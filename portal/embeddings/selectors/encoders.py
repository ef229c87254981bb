"""Reads of encoders."""

from __future__ import annotations

import uuid

from django.db.models import Q, QuerySet

from portal.annotations.models import Roi
from portal.archive.models import Modality
from portal.core.errors import NotFoundError
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.embeddings import CANVAS_KIND, embedding_current
from portal.jobs.models import ENDED_STATES, Job
from portal.labs.models import Membership, User

BACKFILL_KIND = "lab_embed"


def encoder_default(kind: str = Modality.HISTOLOGY) -> Encoder | None:
    """The shared default encoder of a kind, which has embedded all labs; None before its first use.

    Searches use it unless another is requested or the lab has its own (``encoder_to_search``).
    """
    return Encoder.objects.filter(is_default=True, kind=kind, lab=None).first()


def encoder_next(kind: str) -> Encoder | None:
    """The encoder that will replace the default of the kind, or None."""
    return Encoder.objects.filter(is_next=True, kind=kind, lab=None).first()


def encoder_for(roi: Roi) -> Encoder | None:
    """The shared encoder of an ROI: the default of its kind, or the next default.

    While the default is being replaced, new ROIs are embedded by the next one only.
    """
    kind = roi.canvas.modality
    return _common_for(roi, encoder_default(kind), encoder_next(kind))


def encoder_to_search(roi: Roi, lab_id: uuid.UUID | None = None) -> Encoder | None:
    """The encoder to search a lab with from this ROI.

    The lab's own encoder if it is in use and has a vector of the ROI; else as ``encoder_for``.

    Args:
        lab_id: Lab to search; None for the lab of the ROI.
    """
    kind = roi.canvas.modality
    lab_encoder, chosen, following = _encoders_in_use(kind, lab_id or roi.lab_id)
    if lab_encoder is not None and embedding_current(roi=roi, encoder=lab_encoder):
        return lab_encoder
    return _common_for(roi, chosen, following)


def encoder_of_lab(kind: str, lab_id: uuid.UUID) -> Encoder | None:
    """The encoder that a lab's searches use: its own if it has one in use."""
    lab_encoder, chosen, _ = _encoders_in_use(kind, lab_id)
    return lab_encoder or chosen


def encoders_visible(user: User) -> QuerySet[Encoder]:
    """Shared encoders and those of the person's labs."""
    memberships = Membership.objects.of(user).values("lab_id")
    return Encoder.objects.filter(Q(lab=None) | Q(lab__in=memberships))


def _encoders_in_use(
    kind: str, lab_id: uuid.UUID
) -> tuple[Encoder | None, Encoder | None, Encoder | None]:
    """Encoders in use by a lab: its own, the shared default and the next default. One query."""
    rows = Encoder.objects.filter(Q(is_default=True) | Q(is_next=True), kind=kind)
    encoders = list(rows.filter(Q(lab=None) | Q(lab_id=lab_id)))
    lab_encoder = next((row for row in encoders if row.lab_id and row.is_default), None)
    common = [row for row in encoders if row.lab_id is None]
    chosen = next((row for row in common if row.is_default), None)
    return lab_encoder, chosen, next((row for row in common if row.is_next), None)


def _common_for(roi: Roi, chosen: Encoder | None, following: Encoder | None) -> Encoder | None:
    if following is None or chosen is None or embedding_current(roi=roi, encoder=chosen):
        return chosen
    return following if embedding_current(roi=roi, encoder=following) else chosen


def backfill_jobs_open(encoder: Encoder) -> QuerySet[Job]:
    """Jobs that embed an archive with this encoder and have not ended."""
    whole_labs = Q(kind=BACKFILL_KIND, args__encoder_id=str(encoder.pk))
    canvases = Q(kind=CANVAS_KIND, args__encoder_id=str(encoder.pk))
    return Job.objects.exclude(state__in=ENDED_STATES).filter(whole_labs | canvases)


def encoder_get(encoder_id: uuid.UUID, *, lab_id: uuid.UUID | None = None) -> Encoder:
    """An encoder; ``NotFoundError`` if it is not visible.

    Args:
        lab_id: Lab to search with it; encoders of other labs are not found.
    """
    encoder = Encoder.objects.filter(pk=encoder_id).first()
    is_others = encoder and lab_id and encoder.lab_id not in (None, lab_id)
    if encoder is None or is_others:
        raise NotFoundError("There is no such encoder. GET /api/v1/encoders/ lists them.")
    return encoder
