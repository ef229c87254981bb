"""Submit embedding jobs: one per ROI drawn or requested, one per canvas for bulk saves."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import transaction

from portal.annotations.marks import MARKS
from portal.annotations.models import Roi, RoiRevision
from portal.archive.models import Canvas, Modality
from portal.core.errors import ConflictError, NotFoundError
from portal.embeddings.models import Encoder, Unembeddable
from portal.embeddings.selectors.embeddings import (
    CANVAS_KIND,
    EMBED_KIND,
    NO_AREA,
    NO_TISSUE,
    canvas_job_open,
    embed_job,
    rois_without_embedding,
    unembeddable_for,
)
from portal.embeddings.selectors.encoders import (
    encoder_default,
    encoder_for,
    encoder_next,
)
from portal.embeddings.selectors.lab_encoders import lab_encoders_following
from portal.embeddings.services.embeddings import (
    canvas_embeddings_delete,
    embedding_carry_over,
    embeddings_supersede,
)
from portal.embeddings.services.lab_encoders import archive_embed_submit
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Role, User
from portal.labs.rules import require_role

_CHUNK_IDS = 500  # ids per statement


@dataclass(frozen=True, slots=True)
class RoiSave:
    """Saved version of an ROI.

    Attributes:
        is_bulk: Part of a bulk save; a job of the canvas embeds it (``rois_saved_in_bulk``).
    """

    roi_id: uuid.UUID
    version: int
    action: str
    geometry_changed: bool
    is_bulk: bool


def rois_changed(saves: Iterable[RoiSave]) -> None:
    """Mask the vectors of old outlines and submit the embedding of new ones.

    A change of name or label keeps the vector. A restored ROI gets its vector back if the outline
    is equal. ROIs of a bulk save are embedded by the job of their canvas.
    """
    changed = [save for save in saves if save.geometry_changed or save.action == "restore"]
    redrawn = [save.roi_id for save in changed if save.geometry_changed and save.action != "create"]
    for start in range(0, len(redrawn), _CHUNK_IDS):
        embeddings_supersede(roi_ids=redrawn[start : start + _CHUNK_IDS])
    for save in changed:
        if not save.is_bulk:
            _submit_saved(save)


def _submit_saved(save: RoiSave) -> None:
    roi = Roi.all_objects.select_related("canvas", "lab").get(pk=save.roi_id)
    if not save.geometry_changed and _restore_vectors(roi):
        return
    if roi.shape not in MARKS:
        of_it = RoiRevision.objects.select_related("author").filter(roi=roi, version=save.version)
        author = of_it.first()
        _embed_submit(roi, author.author if author else None)


def _restore_vectors(roi: Roi) -> bool:
    """Copy vectors of the ROI's outline; True if the encoder that workers use had one."""
    kind = roi.canvas.modality
    common = [encoder_default(kind), encoder_next(kind)]
    restored = [embedding_carry_over(roi, encoder) for encoder in common if encoder is not None]
    return restored[-1:] == [True]


def rois_saved_in_bulk(*, canvas_id: uuid.UUID, user_id: uuid.UUID | None) -> Job:
    """Ensure that the canvas of a bulk save has a job that embeds its ROIs."""
    canvas = Canvas.all_objects.select_related("lab").get(pk=canvas_id)
    user = User.objects.filter(pk=user_id).first() if user_id else None
    return canvas_embed_submit(canvas=canvas, user=user)


def canvas_changed(*, canvas_id: uuid.UUID, user_id: uuid.UUID) -> Job | None:
    """Invalidate the vectors of a canvas after its pixel size or display range has changed.

    They leave every search at once; one bulk job embeds the ROIs again, if there are any.
    """
    canvas = Canvas.all_objects.select_related("lab").filter(pk=canvas_id).first()
    if canvas is None:
        return None
    job = None
    if Roi.objects.live().filter(canvas=canvas).exclude(shape__in=MARKS).exists():
        user = User.objects.filter(pk=user_id).first()
        job = canvas_embed_submit(canvas=canvas, user=user)  # first: waits for a running part
    canvas_embeddings_delete(canvas_id=canvas_id)
    return job


def canvas_embed_submit(
    *, canvas: Canvas, user: User | None, encoder: Encoder | None = None
) -> Job:
    """Return the unfinished job that embeds missing ROIs of a canvas, or submit one.

    An unfinished job stays locked until the transaction ends. It checks for more work in its last
    transaction, and so sees the rows written here.

    Args:
        encoder: Encoder that re-embeds its archive: a separate job, which the switch waits for.
    """
    encoder_id = str(encoder.pk) if encoder else ""
    with transaction.atomic():
        open_job = canvas_job_open(canvas.pk, encoder_id=encoder_id)
        if open_job is not None:
            return open_job
        return job_submit(
            kind=CANVAS_KIND,
            args={"canvas_id": str(canvas.pk), "encoder_id": encoder_id},
            lab=canvas.lab,
            user=user,
            target=canvas,
            target_name=canvas.name,
            is_unique=True,
        )


def embed_request(*, roi: Roi, user: User, is_retry: bool = False) -> Job:
    """Return the unfinished job that embeds this ROI, or submit one.

    It runs before bulk work of the same canvas.

    Args:
        is_retry: Start again after a failure; needs the role annotator.
    Raises:
        ConflictError: The last attempt failed (``details``: job and reason) and this is not a
            retry; ``no-tissue`` or ``no-area`` if there is nothing to embed.
        ForbiddenError: A retry by a viewer.
        NotFoundError: The ROI was deleted with its image or case in the meantime.
    """
    if is_retry:
        require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    if roi.shape in MARKS:
        raise ConflictError("Points and lines have no area to search with.", code=NO_AREA)
    with transaction.atomic():
        if Roi.objects.select_for_update().filter(pk=roi.pk).first() is None:
            raise NotFoundError("There is no such region.")  # moved to the trash in the meantime
        job = embed_job(roi=roi)
        if job is not None and not job.has_ended:
            return job
        if is_retry:
            Unembeddable.objects.filter(roi=roi).delete()
        else:
            _refuse_repeated_failure(roi, job)
        return _embed_submit(roi, user)


def _refuse_repeated_failure(roi: Roi, job: Job | None) -> None:
    """Refuse to repeat a failed embedding without a person's request."""
    details = {"job": str(job.pk)} if job else {}
    failure = unembeddable_for(roi=roi, encoder=encoder_for(roi))
    if failure is not None and failure.code == NO_TISSUE:
        raise ConflictError(
            f"There is nothing to search with: {failure.message}.", code=NO_TISSUE, details=details
        )
    if failure is None and (job is None or job.state == JobState.SUCCEEDED):
        return
    code, message = (failure.code, failure.message) if failure else _failure(job)
    raise ConflictError(
        f"This region could not be embedded: {message}",
        code="embedding-failed",
        details=details | {"reason": code},
    )


def _failure(job: Job | None) -> tuple[str, str]:
    return (job.error_code, job.error_message) if job else ("", "")


def embed_submit_missing(*, lab_id: uuid.UUID, encoder: Encoder) -> int:
    """Submit the lab's canvases with ROIs that the encoder lacks; returns their number."""
    missing = rois_without_embedding(lab_id=lab_id, encoder=encoder)
    return _canvases_submit(set(missing.order_by().values_list("canvas_id", flat=True)), encoder)


def canvases_restored(*, lab_id: uuid.UUID, canvas_ids: Collection[uuid.UUID]) -> None:
    """Submit the canvases whose ROIs were skipped while they were in the trash."""
    for kind in Modality:
        encoder = encoder_default(kind)
        if encoder is None:
            continue
        missing = rois_without_embedding(lab_id=lab_id, encoder=encoder)
        rois = missing.filter(canvas__in=canvas_ids).order_by()
        _canvases_submit(set(rois.values_list("canvas_id", flat=True)), None)
        for lab_encoder in lab_encoders_following(encoder, lab_id):
            if lab_encoder.is_trained:  # mapped vectors are kept up to date in the trash too
                with transaction.atomic():
                    Encoder.objects.select_for_update().get(pk=encoder.pk)
                    archive_embed_submit(lab_encoder, None)


def _canvases_submit(canvas_ids: Collection[uuid.UUID], encoder: Encoder | None) -> int:
    for canvas in Canvas.objects.select_related("lab").filter(pk__in=canvas_ids):
        canvas_embed_submit(canvas=canvas, user=None, encoder=encoder)
    return len(canvas_ids)


def _embed_submit(roi: Roi, user: User | None) -> Job:
    return job_submit(
        kind=EMBED_KIND,
        args={"roi_id": str(roi.pk)},
        lab=roi.lab,
        user=user,
        target=roi,
        target_name=f"{roi.name or 'Region'} on {roi.canvas.name}",
    )
