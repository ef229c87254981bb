"""Search with an ROI or a query, or submit its embedding first."""

from __future__ import annotations

import uuid

from django.conf import settings

from portal.annotations.models import Roi
from portal.archive.models import Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_get, encoder_to_search
from portal.embeddings.services.submissions import embed_request
from portal.jobs.models import Job
from portal.labs.models import User
from portal.search.models import Query, Verdict
from portal.search.selectors.judgements import judgements_with_vectors
from portal.search.selectors.queries import (
    NotEmbeddedError,
    encoder_to_search_query,
    examples_with_vectors,
)
from portal.search.selectors.similar_cases import (
    MAX_EXAMPLES,
    MAX_EXPAND,
    SimilarOptions,
    SimilarQuery,
    SimilarResult,
    similar_search,
)
from portal.search.services.queries import query_embed_request

EXPAND_FROM = 23
"""The smallest gallery that expansion was chosen on; among a few regions, the nearest are whatever
there is."""


def roi_search(
    *,
    roi: Roi,
    user: User,
    options: SimilarOptions,
    lab_id: uuid.UUID | None = None,
    encoder_id: uuid.UUID | None = None,
    use_judgements: bool = False,
) -> SimilarResult | Job:
    """Search with the ROI; submit its embedding if its present outline has no vector yet.

    Args:
        roi: ROI visible to ``user``, with its canvas and case.
        lab_id: Lab to search, see ``roi_to_search``; None for the lab of the ROI. For another lab's
            ROI nothing is submitted.
        options: ``expand`` defaults to ``TESSERA_SEARCH_EXPAND`` and ``diffuse`` to
            ``TESSERA_SEARCH_DIFFUSE``. Setting only one of them, to 0 or false, orders by distance.
            By default, a search among fewer than ``EXPAND_FROM`` regions is not expanded.
        use_judgements: Add the person's own judgements to ``liked`` and ``unliked``.
        encoder_id: Encoder to search with; None for the lab's own if in use, else the default of
            its kind.
    Returns:
        The result, or the job that embeds the ROI.
    Raises:
        NotFoundError: No such encoder.
        InvalidInputError: An encoder other than the default has not embedded this ROI, or an option
            is invalid by ``SimilarQuery``.
        ConflictError: The ROI is deleted, or its last embedding failed, or it belongs to another
            lab and has no embedding.
    """
    searched_id = lab_id or roi.lab_id
    encoder = (
        encoder_get(encoder_id, lab_id=searched_id)
        if encoder_id
        else encoder_to_search(roi, searched_id)
    )
    if encoder is not None:
        try:
            params = _with_defaults(encoder, options)
            if use_judgements and lab_id in (None, roi.lab_id):
                params |= _with_judgements(user, roi, encoder, params)
            return similar_search(
                user, SimilarQuery(roi=roi, encoder=encoder, lab_id=lab_id, **params)
            )
        except NotEmbeddedError:
            if encoder_id is not None and (encoder.lab_id or not encoder.is_default):
                raise InvalidInputError(
                    (
                        "encoder: it has not embedded this region. New regions are embedded by the "
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


def query_search(*, query: Query, user: User, options: SimilarOptions) -> SimilarResult | Job:
    """Search with a query other than an ROI; its examples are added to those of ``options``.

    Args:
        query: Query visible to ``user``.
    Returns:
        The result, or the job that embeds the query.
    Raises:
        ConflictError: Its embedding failed, or none of its examples has a vector.
        InvalidInputError: An option is invalid by ``SimilarQuery``.
    """
    encoder = encoder_to_search_query(query)
    if encoder is not None:
        params = _with_defaults(encoder, options)
        liked, unliked = examples_with_vectors(user, query, encoder)
        params["liked"] = (*params.get("liked", ()), *liked)[-MAX_EXAMPLES:]
        params["unliked"] = (*params.get("unliked", ()), *unliked)[-MAX_EXAMPLES:]
        try:
            return similar_search(user, SimilarQuery(encoder=encoder, stored_query=query, **params))
        except NotEmbeddedError:
            pass
    return query_embed_request(query=query, user=user)


def _with_defaults(encoder: Encoder, options: SimilarOptions) -> SimilarOptions:
    """Options completed with the portal's settings."""
    return {
        "expand": expand_default(encoder) if options.get("diffuse") is not False else 0,
        "expand_from": 0 if "expand" in options else EXPAND_FROM,
        "diffuse": diffuse_default(encoder) and options.get("expand") != 0,
        **options,
    }


def expand_default(encoder: Encoder) -> int:
    """Default number of neighbours for query expansion with this encoder.

    Histology only: an endoscopic region searches for the same place, not for similar ones.
    """
    if encoder.kind != Modality.HISTOLOGY:
        return 0
    return min(int(settings.TESSERA_SEARCH_EXPAND), MAX_EXPAND)


def diffuse_default(encoder: Encoder) -> bool:
    """Default of diffusion for searches with this encoder, as for ``expand_default``."""
    return encoder.kind == Modality.HISTOLOGY and bool(settings.TESSERA_SEARCH_DIFFUSE)


def _with_judgements(
    user: User, roi: Roi, encoder: Encoder, params: SimilarOptions
) -> SimilarOptions:
    """Add the person's latest judgements to the examples, up to the maximum of a search."""
    judged: dict[Verdict, tuple[uuid.UUID, ...]] = {
        Verdict.ALIKE: params.get("liked", ()),
        Verdict.UNLIKE: params.get("unliked", ()),
    }
    for other_id, verdict in judgements_with_vectors(user, roi, encoder):
        judged[Verdict(verdict)] += (other_id,)
    return {
        "liked": judged[Verdict.ALIKE][-MAX_EXAMPLES:],
        "unliked": judged[Verdict.UNLIKE][-MAX_EXAMPLES:],
    }
