"""Queries other than ROIs, and the vectors to search with."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet

from ml.types import ArrayF32, ArrayI64
from portal.annotations.models import Roi
from portal.core.errors import ConflictError, NotFoundError
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import ids_of_rows, vectors_by_id
from portal.embeddings.selectors.encoders import encoder_default, encoder_of_lab
from portal.embeddings.selectors.lab_encoders import mapped
from portal.jobs.models import Job
from portal.labs.models import User
from portal.search.models import EMBEDDED_SOURCES, Query, QuerySource

QUERY_KIND = "query_embed"
MAX_ROIS = 2_000  # newest ROIs of a slide; more do not change their mean
_LARGE_FIELDS = ("upload", "picture")


class NotEmbeddedError(ConflictError):
    """The query has no vector of its present outline yet."""

    code = "roi-not-embedded"


@dataclass(frozen=True, slots=True)
class QueryVector:
    """Vector of a query.

    Attributes:
        vector: (D,).
        source_ids: Embeddings that it was computed from, which are never found.
        embedding: Embedding of the ROI; None for other queries.
    """

    vector: ArrayF32
    source_ids: ArrayI64
    embedding: Embedding | None = None


def query_list(user: User) -> QuerySet[Query]:
    """Queries of the person's labs, newest first, without their pictures."""
    rows = Query.objects.owned_by(user).select_related("canvas__case", "lab", "user", "encoder")
    return rows.defer(*_LARGE_FIELDS)


def query_get(user: User, query_id: uuid.UUID) -> Query:
    """A query; ``NotFoundError`` if it is not visible."""
    query = query_list(user).filter(pk=query_id).first()
    if query is None:
        raise NotFoundError(
            "There is no such query. It may have been removed; start the search again."
        )
    return query


def query_to_embed(query_id: uuid.UUID) -> Query | None:
    """The query with its picture, or None if it was deleted (for tasks)."""
    query: Query | None = Query.objects.select_related("canvas", "lab").filter(pk=query_id).first()
    return query


def query_job(query: Query) -> Job | None:
    """Newest job that embeds the query. The caller has checked that the query is visible."""
    jobs = Job.objects.filter(target_type="query", target_id=query.pk, kind=QUERY_KIND)
    return jobs.order_by("-created_at").first()


def encoder_of_query(query: Query) -> Encoder | None:
    """Encoder that embedded a query's pixels, else the default of its kind."""
    return query.encoder or encoder_default(query.kind)


def encoder_to_search_query(query: Query) -> Encoder | None:
    """Encoder to search with: the lab's own, if its base embedded the query.

    The query is embedded again if it was embedded by a lab encoder no longer in use, or by the base
    of one that reads pixels: ``query_vector`` then raises.
    """
    lab_encoder = encoder_of_lab(query.kind, query.lab_id)
    if lab_encoder is not None and query.encoder_id in (None, lab_encoder.pk, lab_encoder.base_id):
        return lab_encoder
    is_own = query.encoder is not None and query.encoder.lab_id is not None
    return lab_encoder if is_own else query.encoder or lab_encoder


def query_examples(user: User, query: Query) -> tuple[list[Roi], list[Roi]]:
    """Liked and unliked example ROIs that are visible and not deleted."""
    rois = {str(roi.pk): roi for roi in rois_visible(user, [*query.liked, *query.unliked])}
    liked, unliked = (
        [rois[key] for key in keys if key in rois] for keys in (query.liked, query.unliked)
    )
    return liked, unliked


def examples_with_vectors(
    user: User, query: Query, encoder: Encoder
) -> tuple[tuple[uuid.UUID, ...], tuple[uuid.UUID, ...]]:
    """The query's liked and unliked examples that have a vector."""
    rows = Embedding.objects.owned_by(user).filter(CURRENT, encoder=encoder, lab_id=query.lab_id)
    roi_ids = set(
        rows.filter(roi__in=[*query.liked, *query.unliked], roi__deleted_at__isnull=True)
        .order_by()
        .values_list("roi_id", flat=True)
    )
    liked, unliked = (
        tuple(key for key in map(uuid.UUID, keys) if key in roi_ids)
        for keys in (query.liked, query.unliked)
    )
    return liked, unliked


def query_vector(user: User, query: Query, encoder: Encoder) -> QueryVector:
    """Vector to search with.

    Raises:
        NotEmbeddedError: The query's pixels are not embedded yet.
        ConflictError: None of its example ROIs has a vector.
    """
    if query.source in EMBEDDED_SOURCES:
        is_map = encoder.base_id is not None and not encoder.is_trained
        is_mapped = is_map and query.encoder_id == encoder.base_id
        if query.vector is None or not (is_mapped or query.encoder_id == encoder.pk):
            raise NotEmbeddedError("This query is still being embedded. Try again in a moment.")
        vector = np.frombuffer(bytes(query.vector), dtype="<f4").astype(np.float32)
        if is_mapped:
            vector = mapped(encoder, vector[None])[0]
        return QueryVector(vector, np.empty(0, dtype=np.int64))
    rows = Embedding.objects.owned_by(user).filter(CURRENT, encoder=encoder, lab_id=query.lab_id)
    rows = rows.filter(roi__deleted_at__isnull=True)
    is_examples = query.source == QuerySource.EXAMPLES
    embeddings = (
        rows.filter(roi__in=query.liked) if is_examples else rows.filter(canvas=query.canvas)
    )
    ids = np.sort(ids_of_rows(embeddings.order_by("-pk")[:MAX_ROIS]))
    if not len(ids):
        raise ConflictError(
            "None of the regions of this query can be searched with: they were deleted, or are not"
            " embedded yet.",
            code="query-empty",
        )
    return QueryVector(_mean_vector(vectors_by_id(ids, dim=encoder.dim)[1]), ids)


def _mean_vector(vectors: ArrayF32) -> ArrayF32:
    """Mean direction with the mean length, (D,)."""
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(vectors, axis=1).mean())
    return np.asarray(mean * (length / max(float(np.linalg.norm(mean)), 1e-12)), np.float32)


def rois_visible(user: User, keys: Collection[str | uuid.UUID]) -> QuerySet[Roi]:
    """ROIs of these ids that are visible and not deleted."""
    rois = Roi.objects.owned_by(user).filter(pk__in=keys, deleted_at__isnull=True)
    return rois.select_related("canvas__case", "canvas__slide", "label")
