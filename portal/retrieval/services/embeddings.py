"""Writes of embeddings: submitted when an ROI is saved, masked when its outline changes."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from ml.types import ArrayF32
from portal.annotations.models import Roi, RoiRevision
from portal.archive.models import Canvas
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.indexes import Scope
from portal.retrieval.models import (
    CanvasStain,
    Embedding,
    Encoder,
    EncoderKind,
)
from portal.retrieval.selectors import EMBED_KIND
from portal.retrieval.services.indexes import index_build_if_due


def roi_changed(
    *, roi_id: uuid.UUID, version: int, action: str, geometry_changed: bool
) -> Job | None:
    """An ROI was saved: mask vectors of an old outline at once, submit the embedding of the new.

    A change of name or label leaves the vector as it is. A restored ROI gets its vector back
    without work if its outline is the one that was embedded.
    """
    roi = Roi.everything.select_related("canvas", "lab").get(pk=roi_id)
    if action == "create":
        pass  # it has no vector yet
    elif geometry_changed:
        embeddings_supersede(roi_id=roi.pk)
    elif action != "restore" or _carry_over(roi):
        return None
    author = RoiRevision.objects.select_related("author").filter(roi=roi, version=version).first()
    return _embed_submit(
        roi, author.author if author else None, key=f"{EMBED_KIND}:{roi.pk}:{version}"
    )


def embeddings_supersede(*, roi_id: uuid.UUID) -> int:
    """Take the ROI's vectors out of every search, now. Returns how many there were."""
    current = Embedding.objects.filter(roi_id=roi_id, superseded_at__isnull=True)
    return int(current.update(superseded_at=Now()))


def _carry_over(roi: Roi) -> bool:
    """Give the ROI a copy of its newest vector, if that is of its present outline."""
    encoder = selectors.encoder_default(selectors.encoder_kind_for(roi.canvas))
    newest = Embedding.objects.filter(roi=roi, encoder=encoder).order_by("-pk").first()
    if encoder is None or newest is None:
        return False
    seen = RoiRevision.objects.filter(roi=roi, version=newest.roi_version).first()
    if seen is None or seen.geometry != roi.geometry:
        return False
    _write_embedding(
        roi,
        encoder,
        vector=bytes(newest.vector),
        patch_count=newest.patch_count,
        seconds=newest.seconds,
    )
    return True


def embed_request(*, roi: Roi, user: User, is_retry: bool = False) -> Job:
    """The job that embeds this ROI: the one under way, or a new one where there is none.

    Args:
        is_retry: start again after a failure; needs the role annotator.
    Raises:
        ConflictError: the last attempt failed (``details``: job and reason) and this is no retry.
        ForbiddenError: a retry by a viewer.
    """
    if is_retry:
        require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    with transaction.atomic():
        Roi.objects.select_for_update().get(pk=roi.pk)
        job = selectors.embed_job(roi=roi)
        if job is not None and not job.has_ended:
            return job
        if job is not None and job.state != JobState.SUCCEEDED and not is_retry:
            raise ConflictError(
                f"This ROI could not be embedded: {job.error_message}",
                code="embedding-failed",
                details={"job": str(job.pk), "reason": job.error_code},
            )
        return _embed_submit(roi, user, key=None)


def embed_submit_missing(*, lab_id: uuid.UUID, encoder: Encoder) -> int:
    """Submit every ROI of the lab that the encoder has yet to embed; returns how many."""
    rois = selectors.rois_without_embedding(lab_id=lab_id, encoder=encoder)
    count = 0
    for roi in rois.select_related("canvas", "lab").iterator(chunk_size=500):
        key = f"{selectors.backfill_key(encoder)}{roi.pk}:{roi.version}"
        _embed_submit(roi, None, key=key)
        count += 1
    return count


def canvases_restored(*, lab_id: uuid.UUID, canvas_ids: Collection[uuid.UUID]) -> None:
    """Submit the ROIs whose embedding was passed over while their canvases were in the bin."""
    for kind in EncoderKind:
        encoder = selectors.encoder_default(kind)
        if encoder is None:
            continue
        missing = selectors.rois_without_embedding(lab_id=lab_id, encoder=encoder)
        rois = missing.filter(canvas__in=canvas_ids)
        for roi in rois.select_related("canvas", "lab").iterator(chunk_size=500):
            _embed_submit(roi, None, key=None)


def _embed_submit(roi: Roi, user: User | None, *, key: str | None) -> Job:
    return job_submit(
        kind=EMBED_KIND,
        args={"roi_id": str(roi.pk)},
        lab=roi.lab,
        user=user,
        target=roi,
        target_name=f"{roi.name or 'ROI'} on {roi.canvas.name}",
        idempotency_key=key,
    )


def stain_save(*, canvas: Canvas, method: str, estimate: Mapping[str, object]) -> None:
    """Store a slide's stains. Two workers find the same; the first one's row stays."""
    CanvasStain.objects.get_or_create(canvas=canvas, method=method, defaults={"estimate": estimate})


def embedding_save(
    *,
    roi_id: uuid.UUID,
    geometry: dict[str, Any],
    encoder: Encoder,
    vector: ArrayF32,
    patch_count: int,
    seconds: float,
) -> Embedding | None:
    """Write the vector of an outline, unless the ROI was deleted or redrawn in the meantime.

    Call inside ``effect()``. Emits ``roi.embedded``; submits a new index file where one is due.

    Returns:
        The row; None where the outline is no longer the ROI's.
    """
    with transaction.atomic():
        roi = Roi.objects.live().select_for_update().filter(pk=roi_id).first()
        if roi is None or roi.geometry != geometry:
            return None
        data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        return _write_embedding(roi, encoder, vector=data, patch_count=patch_count, seconds=seconds)


def _write_embedding(roi: Roi, encoder: Encoder, **fields: Any) -> Embedding:
    """Insert under the encoder's lock, so that ids become visible in their order."""
    Encoder.objects.select_for_update().get(pk=encoder.pk)
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    outdated = Q(encoder=encoder) & ~Q(roi_version=roi.version) | ~Q(encoder__kind=encoder.kind)
    current.filter(outdated).update(superseded_at=Now())
    row, is_new = Embedding.objects.get_or_create(
        encoder=encoder,
        roi=roi,
        roi_version=roi.version,
        defaults={"lab_id": roi.lab_id, "canvas_id": roi.canvas_id, **fields},
    )
    if is_new:
        event_emit(
            "roi.embedded",
            lab_id=roi.lab_id,
            payload={"roi_id": str(roi.pk), "encoder_id": str(encoder.pk), "version": roi.version},
        )
        index_build_if_due(scope=Scope(encoder, roi.lab_id))
    return row
