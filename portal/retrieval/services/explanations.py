"""Writes of explanations: asked for by a person, worked out once by a job."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db import models, transaction
from django.utils import timezone

from portal.annotations.models import Roi
from portal.core.errors import ConflictError, NotFoundError
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Lab, User
from portal.retrieval import selectors
from portal.retrieval.models import Explanation, Query
from portal.retrieval.selectors import EXPLAIN_KIND, MatchFound
from portal.retrieval.services.queries import QUERY_DAYS


def roi_match_explain(
    *, roi: Roi, other: Roi, lab_id: uuid.UUID, user: User, is_retry: bool = False
) -> MatchFound | Job:
    """Why a search with an ROI found another region, or the job that works it out.

    Args:
        roi: seen by ``user``, as ``selectors.roi_to_search`` gives it with ``lab_id``.
        other: seen by ``user``.
        is_retry: start again after a failure.
    Raises:
        NotFoundError: the other is not of the lab that is searched, or has no vector.
        ConflictError: the ROI has no vector yet, or the last attempt failed.
    """
    encoder = selectors.encoder_for(roi)
    if other.lab_id != lab_id:
        raise NotFoundError("This region was not found by such a search.")
    embedding = selectors.embedding_searched_with(roi, encoder)
    hit = selectors.hit_embedding(user, other, embedding.encoder_id, roi=roi)
    row, _ = Explanation.objects.get_or_create(embedding=embedding, hit=hit, lab=other.lab)
    # Another lab's region is no target here: the hit of one's own lab is.
    target: models.Model = roi if roi.lab_id == lab_id else other
    return _found_or_submitted(row, user, other.lab, target, is_retry=is_retry)


def query_match_explain(
    *, query: Query, other: Roi, user: User, is_retry: bool = False
) -> MatchFound | Job:
    """As ``roi_match_explain``, of a query that has pixels of its own.

    Raises:
        InvalidInputError: it has none.
    """
    selectors.require_pixels(query)
    if other.lab_id != query.lab_id:
        raise NotFoundError("This region was not found by such a search.")
    hit = selectors.hit_embedding(user, other, query.encoder_id)
    row, _ = Explanation.objects.get_or_create(query=query, hit=hit, lab=query.lab)
    return _found_or_submitted(row, user, query.lab, query, is_retry=is_retry)


def explanation_save(*, explanation_id: uuid.UUID, found: MatchFound) -> None:
    """Keep what was worked out. Inside ``effect()``."""
    Explanation.everything.filter(pk=explanation_id).update(result=found.as_json())


def explanations_sweep() -> int:
    """Drop what was worked out long ago; it can be worked out again. Returns how many."""
    old = timezone.now() - timedelta(days=QUERY_DAYS)
    return Explanation.everything.filter(created_at__lt=old).delete()[0]


def _found_or_submitted(
    row: Explanation, user: User, lab: Lab, target: models.Model, *, is_retry: bool
) -> MatchFound | Job:
    if (found := selectors.match_of(row)) is not None:
        return found
    with transaction.atomic():
        row = Explanation.objects.select_for_update(of=("self",)).get(pk=row.pk)
        job = row.job
        if job is not None and not job.has_ended:
            return job
        if job is not None and job.state != JobState.SUCCEEDED and not is_retry:
            raise ConflictError(
                f"This match could not be explained: {job.error_message}",
                code="explanation-failed",
                details={"job": str(job.pk), "reason": job.error_code},
            )
        row.job = job_submit(
            kind=EXPLAIN_KIND,
            args={"explanation_id": str(row.pk)},
            lab=lab,
            user=user,
            target=target,
            target_name="Why a region was found",
        )
        row.save(update_fields=["job", "updated_at"])
    return row.job
