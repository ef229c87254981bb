"""Similar ROIs, or, where the ROI has no vector yet, the job that makes it one."""

from __future__ import annotations

import uuid

from django.conf import settings

from portal.annotations.models import Roi
from portal.core.errors import InvalidInputError
from portal.jobs.models import Job
from portal.labs.models import User
from portal.retrieval.models import Encoder, EncoderKind
from portal.retrieval.selectors import (
    EXPAND_MOST,
    NotEmbeddedError,
    SimilarFilters,
    SimilarQuery,
    SimilarResult,
    encoder_for,
    encoder_get,
    similar_search,
)
from portal.retrieval.services.submissions import embed_request


def similar_or_embed(
    *, roi: Roi, user: User, filters: SimilarFilters, encoder_id: uuid.UUID | None = None
) -> SimilarResult | Job:
    """Search with the ROI; where its present outline has no vector yet, submit the embedding.

    Args:
        roi: seen by ``user``, with its canvas and case.
        filters: without ``expand`` the query is expanded as ``TESSERA_SEARCH_EXPAND`` says.
        encoder_id: the encoder to search with; None for the one that ROIs of this kind go to.
    Returns:
        The hits, or the job that is embedding the ROI.
    Raises:
        NotFoundError: no such encoder.
        InvalidInputError: another encoder than the default has not embedded this ROI.
        ConflictError: the ROI is deleted, or its last embedding failed.
    """
    encoder = encoder_get(encoder_id) if encoder_id else encoder_for(roi)
    if encoder is not None:
        try:
            asked: SimilarFilters = {"expand": expand_default(encoder), **filters}
            return similar_search(user, SimilarQuery(roi=roi, encoder=encoder, **asked))
        except NotEmbeddedError:
            if encoder_id is not None and not encoder.is_default:
                raise InvalidInputError(
                    "encoder: it has not embedded this ROI; new ROIs go to the default encoder.",
                    code="roi-not-embedded",
                ) from None
    return embed_request(roi=roi, user=user)


def expand_default(encoder: Encoder) -> int:
    """By how many neighbours a search with this encoder expands its query unless told.

    Histology only: an endoscopic region looks for its own place, not for its like.
    """
    if encoder.kind != EncoderKind.HISTOLOGY:
        return 0
    return min(int(settings.TESSERA_SEARCH_EXPAND), EXPAND_MOST)
