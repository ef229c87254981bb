"""Request and store explanations."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db import models, transaction
from django.utils import timezone

from portal.annotations.models import Roi
from portal.core.errors import ConflictError, NotFoundError
from portal.embeddings.selectors.encoders import encoder_for
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Lab, User
from portal.search.models import Explanation, Query
from portal.search.selectors.explanations import (
    EXPLAIN_KIND,
    MatchExplanation,
    embedding_searched_with,
    explanation_result,
    hit_embedding,
    require_pixels,
)
from portal.search.services.queries import QUERY_DAYS


def roi_match_explain(
    *, roi: Roi, other: Roi, lab_id: uuid.UUID, user: User, is_retry: bool = False
) -> MatchExplanation | Job:
    """Explanation of why a search with an ROI found a region, or the job that computes it.

    Args:
        roi: ROI visible to ``user``, as returned by ``roi_to_search`` with ``lab_id``.
        other: Region visible to ``user``.
        is_retry: Start again after a failure.
    Raises:
        NotFoundError: The region is not of the searched lab, or has no vector.
        ConflictError: The ROI has no vector yet, or the last attempt failed.
    """
    encoder = encoder_for(roi)
    if other.lab_id != lab_id:
        raise NotFoundError("This region was not found by such a search.")
    embedding = embedding_searched_with(roi, encoder)
    hit = hit_embedding(user, other, embedding.encoder_id, roi=roi)
    row, _ = Explanation.objects.get_or_create(embedding=embedding, hit=hit, lab=other.lab)
    # A job may only target rows of its own lab.
    target: models.Model = roi if roi.lab_id == lab_id else other
    return _found_or_submitted(row, user, other.lab, target, is_retry=is_retry)


def query_match_explain(
    *, query: Query, other: Roi, user: User, is_retry: bool = False
) -> MatchExplanation | Job:
    """Explain a match of a query with pixels, like ``roi_match_explain``.

    Raises:
        InvalidInputError: The query has no pixels.
    """
    require_pixels(query)
    if other.lab_id != query.lab_id:
        raise NotFoundError("This region was not found by such a search.")
    hit = hit_embedding(user, other, query.encoder_id)
    row, _ = Explanation.objects.get_or_create(query=query, hit=hit, lab=query.lab)
    return _found_or_submitted(row, user, query.lab, query, is_retry=is_retry)


def explanation_save(*, explanation_id: uuid.UUID, explanation: MatchExplanation) -> None:
    """Store a result. Call inside ``effect()``."""
    Explanation.all_objects.filter(pk=explanation_id).update(result=explanation.as_json())


def explanations_sweep() -> int:
    """Delete old explanations, which can be computed again. Returns their number."""
    old = timezone.now() - timedelta(days=QUERY_DAYS)
    return Explanation.all_objects.filter(created_at__lt=old).delete()[0]


def _found_or_submitted(
    row: Explanation, user: User, lab: Lab, target: models.Model, *, is_retry: bool
) -> MatchExplanation | Job:
    if (explanation := explanation_result(row)) is not None:
        return explanation
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
