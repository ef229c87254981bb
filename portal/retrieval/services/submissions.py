"""Which jobs embed which ROIs: one of its own for an ROI that somebody drew or asked for, one for
each canvas for whatever came in bulk."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import transaction

from portal.annotations.marks import MARKS
from portal.annotations.models import Roi, RoiRevision
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, NotFoundError
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.models import Encoder, EncoderKind, Unembeddable
from portal.retrieval.selectors import CANVAS_KIND, EMBED_KIND, NO_AREA, NO_TISSUE
from portal.retrieval.services.embeddings import (
    embedding_carry_over,
    embeddings_forget,
    embeddings_supersede,
)
from portal.retrieval.services.learning.own import archive_embed_submit

_SUPERSEDED_AT_ONCE = 500  # ids of one statement, as everywhere where ROIs are written


@dataclass(frozen=True, slots=True)
class RoiSave:
    """What happened to an ROI.

    Attributes:
        is_bulk: one of many, whose canvas has a job for all of them (``rois_saved_in_bulk``).
    """

    roi_id: uuid.UUID
    version: int
    action: str
    geometry_changed: bool
    is_bulk: bool


def rois_changed(saves: Iterable[RoiSave]) -> None:
    """ROIs were saved: mask vectors of old outlines at once, submit the embedding of the new.

    A change of name or label leaves the vector as it is. A restored ROI gets its vector back
    without work if its outline is the one that was embedded. Those saved in bulk get no jobs of
    their own: the job of their canvas sees to them.
    """
    changed = [one for one in saves if one.geometry_changed or one.action == "restore"]
    redrawn = [one.roi_id for one in changed if one.geometry_changed and one.action != "create"]
    for start in range(0, len(redrawn), _SUPERSEDED_AT_ONCE):
        embeddings_supersede(roi_ids=redrawn[start : start + _SUPERSEDED_AT_ONCE])
    for one in changed:
        if not one.is_bulk:
            _follow(one)


def _follow(save: RoiSave) -> None:
    roi = Roi.everything.select_related("canvas", "lab").get(pk=save.roi_id)
    if not save.geometry_changed and _gets_back(roi):
        return
    if roi.shape not in MARKS:
        of_it = RoiRevision.objects.select_related("author").filter(roi=roi, version=save.version)
        author = of_it.first()
        key = f"{EMBED_KIND}:{roi.pk}:{save.version}"
        _embed_submit(roi, author.author if author else None, key=key)


def _gets_back(roi: Roi) -> bool:
    """Whether the encoder that workers use, the next one if there is one, had a vector of it."""
    kind = selectors.encoder_kind_for(roi.canvas)
    common = [selectors.encoder_default(kind), selectors.encoder_next(kind)]
    given = [embedding_carry_over(roi, encoder) for encoder in common if encoder is not None]
    return given[-1:] == [True]


def rois_saved_in_bulk(*, canvas_id: uuid.UUID, user_id: uuid.UUID | None) -> Job:
    """Many ROIs of a canvas were written at once: see to it that it has a job that embeds them."""
    canvas = Canvas.everything.select_related("lab").get(pk=canvas_id)
    user = User.objects.filter(pk=user_id).first() if user_id else None
    return canvas_embed_submit(canvas=canvas, user=user)


def canvas_changed(*, canvas_id: uuid.UUID, user_id: uuid.UUID) -> Job | None:
    """Forget the vectors of a canvas whose pixel size or display range was set or taken back.

    They leave every search at once, and one job in bulk embeds the ROIs anew, if there are any.
    """
    canvas = Canvas.everything.select_related("lab").filter(pk=canvas_id).first()
    if canvas is None:
        return None
    job = None
    if Roi.objects.live().filter(canvas=canvas).exclude(shape__in=MARKS).exists():
        user = User.objects.filter(pk=user_id).first()
        job = canvas_embed_submit(canvas=canvas, user=user)  # first: it waits for a part under way
    embeddings_forget(canvas_id=canvas_id)
    return job


def canvas_embed_submit(
    *, canvas: Canvas, user: User | None, encoder: Encoder | None = None
) -> Job:
    """The open job that embeds what is missing on a canvas, or a new one.

    The open one stays locked until the transaction ends: it ends in a transaction in which it has
    looked once more, and so sees what this one writes.

    Args:
        encoder: that has to embed its whole archive: a job of its own, which the switch waits for.
    """
    encoder_id = str(encoder.pk) if encoder else ""
    with transaction.atomic():
        known = selectors.canvas_job_open(canvas.pk, encoder_id=encoder_id)
        if known is not None:
            return known
        before = Job.objects.filter(kind=CANVAS_KIND, target_id=canvas.pk).count()
        return job_submit(
            kind=CANVAS_KIND,
            args={"canvas_id": str(canvas.pk), "encoder_id": encoder_id},
            lab=canvas.lab,
            user=user,
            target=canvas,
            target_name=canvas.name,
            # Two that ask at once get one job.
            idempotency_key=f"{CANVAS_KIND}:{canvas.pk}:{encoder_id}:{before}",
        )


def embed_request(*, roi: Roi, user: User, is_retry: bool = False) -> Job:
    """The job that embeds this ROI: the one under way, or a new one where there is none.

    It is urgent: whatever is done in bulk on its canvas lets it go first.

    Args:
        is_retry: start again after a failure; needs the role annotator.
    Raises:
        ConflictError: the last attempt failed (``details``: job and reason) and this is not a
            retry; ``no-tissue`` or ``no-area`` where there is nothing to embed.
        ForbiddenError: a retry by a viewer.
        NotFoundError: it was deleted with its image or case in the meantime.
    """
    if is_retry:
        require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    if roi.shape in MARKS:
        raise ConflictError("Points and lines have no area to search with.", code=NO_AREA)
    with transaction.atomic():
        if Roi.objects.select_for_update().filter(pk=roi.pk).first() is None:
            raise NotFoundError("There is no such ROI.")  # into the bin since it was looked up
        job = selectors.embed_job(roi=roi)
        if job is not None and not job.has_ended:
            return job
        if is_retry:
            Unembeddable.objects.filter(roi=roi).delete()
        else:
            _refuse_hopeless(roi, job)
        return _embed_submit(roi, user, key=None)


def _refuse_hopeless(roi: Roi, job: Job | None) -> None:
    """Refuse to repeat what failed, unless a person asks for it."""
    details = {"job": str(job.pk)} if job else {}
    known = selectors.unembeddable_for(roi=roi, encoder=selectors.encoder_for(roi))
    if known is not None and known.code == NO_TISSUE:
        raise ConflictError(
            f"There is nothing to search with: {known.message}.", code=NO_TISSUE, details=details
        )
    if known is None and (job is None or job.state == JobState.SUCCEEDED):
        return
    code, message = (known.code, known.message) if known else _failure(job)
    raise ConflictError(
        f"This ROI could not be embedded: {message}",
        code="embedding-failed",
        details=details | {"reason": code},
    )


def _failure(job: Job | None) -> tuple[str, str]:
    return (job.error_code, job.error_message) if job else ("", "")


def embed_submit_missing(*, lab_id: uuid.UUID, encoder: Encoder) -> int:
    """Submit the lab's canvases with ROIs that the encoder has yet to embed; returns how many."""
    missing = selectors.rois_without_embedding(lab_id=lab_id, encoder=encoder)
    return _canvases_submit(set(missing.order_by().values_list("canvas_id", flat=True)), encoder)


def canvases_restored(*, lab_id: uuid.UUID, canvas_ids: Collection[uuid.UUID]) -> None:
    """Submit the canvases whose ROIs were passed over while they were in the bin."""
    for kind in EncoderKind:
        encoder = selectors.encoder_default(kind)
        if encoder is None:
            continue
        missing = selectors.rois_without_embedding(lab_id=lab_id, encoder=encoder)
        rois = missing.filter(canvas__in=canvas_ids).order_by()
        _canvases_submit(set(rois.values_list("canvas_id", flat=True)), None)
        for own in selectors.encoders_to_keep_up(encoder, lab_id):
            if own.is_trained:  # a map follows in the bin as well
                with transaction.atomic():
                    Encoder.objects.select_for_update().get(pk=encoder.pk)
                    archive_embed_submit(own, None)


def _canvases_submit(canvas_ids: Collection[uuid.UUID], encoder: Encoder | None) -> int:
    for canvas in Canvas.objects.select_related("lab").filter(pk__in=canvas_ids):
        canvas_embed_submit(canvas=canvas, user=None, encoder=encoder)
    return len(canvas_ids)


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
