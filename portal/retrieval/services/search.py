"""Similar ROIs, or, where the ROI has no vector yet, the job that makes it one."""

from __future__ import annotations

import uuid

from django.conf import settings

from portal.annotations.models import Roi
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import Job
from portal.labs.models import User
from portal.retrieval.models import Encoder, EncoderKind, Query, Verdict
from portal.retrieval.selectors import (
    EXAMPLES_MOST,
    EXPAND_MOST,
    NotEmbeddedError,
    SimilarOptions,
    SimilarQuery,
    SimilarResult,
    encoder_get,
    encoder_to_search,
    encoder_to_search_query,
    examples_to_go_by,
    judgements_to_go_by,
    similar_search,
)
from portal.retrieval.services.queries import query_embed_request
from portal.retrieval.services.submissions import embed_request

EXPAND_FROM = 23
"""The smallest gallery that expansion was chosen on; among a few regions, the nearest are whatever
there is."""


def similar_or_embed(
    *,
    roi: Roi,
    user: User,
    options: SimilarOptions,
    lab_id: uuid.UUID | None = None,
    encoder_id: uuid.UUID | None = None,
    by_marks: bool = False,
) -> SimilarResult | Job:
    """Search with the ROI; where its present outline has no vector yet, submit the embedding.

    Args:
        roi: seen by ``user``, with its canvas and case.
        lab_id: whose regions are searched, see ``roi_to_search``; None for the lab of the ROI. For
            another lab's ROI nothing is submitted.
        options: without ``expand`` the query is expanded as ``TESSERA_SEARCH_EXPAND`` says, and
            without ``diffuse`` it is diffused as ``TESSERA_SEARCH_DIFFUSE`` says. Either alone, as
            0 or false, asks for the order by distance. Unless asked for, a search among fewer than
            ``EXPAND_FROM`` regions is not expanded.
        by_marks: the person's own judgements join ``liked`` and ``unliked``.
        encoder_id: the encoder to search with; None for the lab's own, where it has one in use,
            or the one that ROIs of this kind go to.
    Returns:
        The hits, or the job that is embedding the ROI.
    Raises:
        NotFoundError: no such encoder.
        InvalidInputError: another encoder than the default has not embedded this ROI, or an
            option is not as ``SimilarQuery`` says.
        ConflictError: the ROI is deleted, or its last embedding failed; another lab's has none.
    """
    searched_id = lab_id or roi.lab_id
    encoder = (
        encoder_get(encoder_id, lab_id=searched_id)
        if encoder_id
        else encoder_to_search(roi, searched_id)
    )
    if encoder is not None:
        try:
            asked = _as_set(encoder, options)
            if by_marks and lab_id in (None, roi.lab_id):
                asked |= _with_marks(user, roi, encoder, asked)
            return similar_search(
                user, SimilarQuery(roi=roi, encoder=encoder, lab_id=lab_id, **asked)
            )
        except NotEmbeddedError:
            if encoder_id is not None and (encoder.lab_id or not encoder.is_default):
                raise InvalidInputError(
                    (
                        "encoder: it has not embedded this ROI. New ROIs are embedded by the "
                        "default encoder."
                    ),
                    code="roi-not-embedded",
                ) from None
    if lab_id not in (None, roi.lab_id):
        raise ConflictError(
            f"{roi.lab} has not prepared this region for searches yet. Try again later.",
            code="roi-not-embedded",
        )
    return embed_request(roi=roi, user=user)


def similar_to_query(*, query: Query, user: User, options: SimilarOptions) -> SimilarResult | Job:
    """Search with a query that is not an ROI; its own examples join those of ``options``.

    Args:
        query: seen by ``user``.
    Returns:
        The hits, or the job that is embedding the query.
    Raises:
        ConflictError: its embedding failed, or nothing that it goes by has a vector.
        InvalidInputError: an option is not as ``SimilarQuery`` says.
    """
    encoder = encoder_to_search_query(query)
    if encoder is not None:
        asked = _as_set(encoder, options)
        liked, unliked = examples_to_go_by(user, query, encoder)
        asked["liked"] = (*asked.get("liked", ()), *liked)[-EXAMPLES_MOST:]
        asked["unliked"] = (*asked.get("unliked", ()), *unliked)[-EXAMPLES_MOST:]
        try:
            return similar_search(user, SimilarQuery(encoder=encoder, asked=query, **asked))
        except NotEmbeddedError:
            pass
    return query_embed_request(query=query, user=user)


def _as_set(encoder: Encoder, options: SimilarOptions) -> SimilarOptions:
    """The options, and what the portal is set to where they are silent."""
    return {
        "expand": expand_default(encoder) if options.get("diffuse") is not False else 0,
        "expand_from": 0 if "expand" in options else EXPAND_FROM,
        "diffuse": diffuse_default(encoder) and options.get("expand") != 0,
        **options,
    }


def expand_default(encoder: Encoder) -> int:
    """By how many neighbours a search with this encoder expands its query unless told.

    Histology only: an endoscopic region looks for its own place, not for its like.
    """
    if encoder.kind != EncoderKind.HISTOLOGY:
        return 0
    return min(int(settings.TESSERA_SEARCH_EXPAND), EXPAND_MOST)


def diffuse_default(encoder: Encoder) -> bool:
    """Whether a search with this encoder is diffused unless told: as ``expand_default``."""
    return encoder.kind == EncoderKind.HISTOLOGY and bool(settings.TESSERA_SEARCH_DIFFUSE)


def _with_marks(user: User, roi: Roi, encoder: Encoder, asked: SimilarOptions) -> SimilarOptions:
    """The examples asked for and the person's last marks, as many as a search takes."""
    found: dict[Verdict, tuple[uuid.UUID, ...]] = {
        Verdict.ALIKE: asked.get("liked", ()),
        Verdict.UNLIKE: asked.get("unliked", ()),
    }
    for other_id, verdict in judgements_to_go_by(user, roi, encoder):
        found[Verdict(verdict)] += (other_id,)
    return {
        "liked": found[Verdict.ALIKE][-EXAMPLES_MOST:],
        "unliked": found[Verdict.UNLIKE][-EXAMPLES_MOST:],
    }
