"""Search for similar cases: permission, then search, then the data of each hit.

One lab is searched: that of the query or ROI or, if the ROI's case is shared, the lab it is shared
with. Nobody searches regions of a lab that they are not a member of.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypedDict, cast

import numpy as np

from portal.annotations.models import Roi
from portal.annotations.selectors.rois import roi_get
from portal.archive.models import Canvas, Case, Modality
from portal.archive.selectors.sharing import share_seen
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors.embeddings import embedding_current, vector_of, vectors_by_id
from portal.labs.models import User
from portal.search.models import Query
from portal.search.selectors.candidates import (
    cases_embedded_count,
    hit_rows,
    hits_of,
    ids_hidden,
    ids_matching,
    ids_of_patient,
)
from portal.search.selectors.facets import Facets, SearchedSet, facets_of
from portal.search.selectors.filters import CaseScope, Filters
from portal.search.selectors.hits import Hit, Significance, best_per_case, calibration_for, hit_of
from portal.search.selectors.nearest import Candidates, Examples, IndexUsed, Ranking
from portal.search.selectors.queries import NotEmbeddedError, QueryVector, query_vector
from portal.search.selectors.votes import VoteTally, diagnosis_tally, label_tally

MAX_K = 200  # a page shows no more
MAX_EXPAND = 10  # farther neighbours may be dissimilar
MAX_EXAMPLES = 50  # per search; for more, train an encoder
_FETCH_GROWTH, _MAX_FETCH = 4, 2_000
"""Factor by which each attempt fetches more regions, and the most that are fetched."""


class SimilarOptions(TypedDict, total=False):
    """Options of a search; see ``SimilarQuery``."""

    k: int
    exclude_same_patient: bool
    filters: Filters
    expand: int
    expand_from: int
    diffuse: bool
    by_case: bool
    liked: tuple[uuid.UUID, ...]
    unliked: tuple[uuid.UUID, ...]
    with_facets: bool


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """A search request.

    Attributes:
        roi: ROI visible to the person, with its canvas and case.
        stored_query: Query that replaces the ROI.
        lab_id: Lab to search, see ``roi_to_search``; None for the lab of the ROI.
        k: Number of hits, 1 to 200; with ``by_case``, number of cases.
        exclude_same_patient: Leave out ROIs of the patient (of the case if the patient is unknown).
            The ROI itself is never found. A filter by its case takes precedence. For another lab's
            ROI the patient is ignored: a pseudonym is meaningful only within its lab.
        expand: Number of nearest neighbours for query expansion, 0 to 10; 0 orders by distance.
            Each pass finds only regions that the filters and the patient allow.
        expand_from: Smallest number of searched regions for query expansion.
        diffuse: Order hits by diffusion over the neighbour graph of the allowed regions.
        by_case: One hit per case, with the case's others in ``also``.
        liked, unliked: ROIs of the lab, up to 50 each, that move the query towards and away from
            them, instead of ``expand``. Unliked ROIs are not found.
        with_facets: Count the searched set too.
    """

    encoder: Encoder
    roi: Roi | None = None
    stored_query: Query | None = None
    k: int = 20
    exclude_same_patient: bool = True
    filters: Filters = field(default_factory=Filters)
    expand: int = 0
    expand_from: int = 0
    diffuse: bool = False
    by_case: bool = False
    liked: tuple[uuid.UUID, ...] = ()
    unliked: tuple[uuid.UUID, ...] = ()
    with_facets: bool = False
    lab_id: uuid.UUID | None = None

    @property
    def scope(self) -> Scope:
        """Vectors to search."""
        return Scope(self.encoder, self.lab_id or self.subject_lab_id)

    @property
    def subject_lab_id(self) -> uuid.UUID:
        return self.subject.lab_id

    @property
    def subject(self) -> Roi | Query:
        """The query: an ROI or another query."""
        subject = self.roi or self.stored_query
        if subject is None:
            raise ValueError("a search needs a region or a query")
        return subject

    @property
    def case(self) -> Case | None:
        """Case whose patient is left out; None for a picture or examples."""
        canvas = self.subject.canvas
        return canvas.case if canvas else None

    @property
    def scale_unknown(self) -> bool:
        """True if the scale of the query is assumed."""
        return self.assumes_scale_of(self.subject.canvas)

    def assumes_scale_of(self, canvas: Canvas | None) -> bool:
        """True if the encoder has to assume a scale of 0.5 microns per pixel for the canvas.

        Endoscopic images have no scale, and their encoder needs none.
        """
        is_histology = self.encoder.kind == Modality.HISTOLOGY
        return is_histology and canvas is not None and canvas.mpp is None

    @property
    def is_of_other_lab(self) -> bool:
        """True for an ROI of another lab."""
        return self.scope.lab_id != self.subject_lab_id

    @property
    def leaves_patient_out(self) -> bool:
        """True if the patient of the query is not searched."""
        return self.excludes_patient and self.filters.case is not CaseScope.ONLY

    @property
    def excludes_patient(self) -> bool:
        """Return whether the patient is left out; False if ``filters`` select the case."""
        return self.exclude_same_patient and not self.is_of_other_lab and self.case is not None


@dataclass(frozen=True, slots=True)
class SimilarResult:
    """Hits, best first, ties by embedding id, and their origin.

    Attributes:
        embedding_id, roi_version: Of the ROI; None for another query.
        labels, diagnoses: Votes of the hits.
        facets: Facets of the searched set; None if not requested.
        expanded_by: Embeddings used for query expansion; empty if hits are ordered by distance or
            examples moved the query.
        refined_by: Number of examples that moved the query.
        says_nothing_close: There are hits, but by the encoder's calibration the nearest candidate
            is no nearer than the nearest of as many unrelated regions.
    """

    query: SimilarQuery
    embedding_id: int | None
    roi_version: int | None
    hits: tuple[Hit, ...]
    labels: VoteTally
    diagnoses: VoteTally
    facets: Facets | None
    index: IndexUsed
    expanded_by: tuple[int, ...]
    refined_by: int
    says_nothing_close: bool


def roi_to_search(user: User, roi_id: uuid.UUID) -> tuple[Roi, uuid.UUID]:
    """ROI that the person may search with, and the id of the lab to search.

    Members search the ROI's own lab; members of a lab that the case is shared with search that lab.

    Raises:
        NotFoundError: Neither applies.
    """
    rows = Roi.objects.owned_by(user).select_related("canvas__case")
    roi: Roi | None = rows.filter(pk=roi_id).first()
    if roi is not None:
        return roi, roi.lab_id
    roi = roi_get(user, roi_id)
    share = share_seen(user, roi.canvas.case)
    if share is None:  # it ended in the meantime
        raise NotFoundError("There is no such region.")
    return roi, share.with_lab_id


def similar_search(user: User, query: SimilarQuery) -> SimilarResult:
    """Find the ROIs most similar to the query that the person may see.

    Raises:
        ConflictError: The ROI is deleted, or no example of the query has a vector.
        NotEmbeddedError: The query has no vector by this encoder yet.
        InvalidInputError: ``k`` outside 1 to 200, ``expand`` outside 0 to 10, too many examples, an
            example that is hidden or has no vector, or a filter by case without a case.
    """
    _validate(query)
    probe = _probe(user, query)
    candidates = _candidates(user, query, probe)
    examples = _examples(user, query, candidates)
    searched = candidates.searched()
    if searched < query.expand_from:
        query = replace(
            query, expand=0
        )  # record the options used, so that the answer can be repeated
    rank = partial(
        candidates.ranked,
        probe.vector,
        expand=query.expand,
        diffuse=query.diffuse,
        examples=examples,
    )
    significance = Significance(calibration_for(query.encoder), searched)
    ranking, hits = _find_hits(user, query, rank, significance)
    facets = _facets(user, query, probe) if query.with_facets else None
    voters: list[Hit] = [voter for hit in hits for voter in (hit, *hit.also)]
    return SimilarResult(
        query,
        probe.embedding.pk if probe.embedding else None,
        probe.embedding.roi_version if probe.embedding else None,
        hits,
        label_tally(voters, facets),
        diagnosis_tally(voters, facets),
        facets,
        candidates.used,
        ranking.expanded_by,
        refined_by=0 if examples is None else len(examples.liked) + len(examples.unliked),
        says_nothing_close=bool(hits) and significance.is_close(ranking.nearest) is False,
    )


def _find_hits(
    user: User,
    query: SimilarQuery,
    rank: Callable[[int], Ranking],
    significance: Significance,
) -> tuple[Ranking, tuple[Hit, ...]]:
    """Ranking and as many hits as requested, if available.

    One hit per case takes more regions than cases; more are also fetched if a region is deleted
    between search and read.
    """
    if query.by_case:
        ranking = _ranked_by_case(user, query, rank)
        return ranking, best_per_case(_hits(user, ranking, significance))[: query.k]
    n = query.k
    while True:
        ranking = rank(n)
        hits = _hits(user, ranking, significance)
        if len(hits) >= query.k or len(ranking.ids) < n or n == _MAX_FETCH:
            return ranking, hits[: query.k]
        n = min(n * _FETCH_GROWTH, _MAX_FETCH)


def _ranked_by_case(user: User, query: SimilarQuery, rank: Callable[[int], Ranking]) -> Ranking:
    """Shortest ranking with as many cases as requested, or with all that have regions.

    Without the count of these, a case of thousands of regions would be ranked whole.
    """
    left_out = query.case if query.leaves_patient_out else None
    n = min(query.k * _FETCH_GROWTH, _MAX_FETCH)
    while True:
        ranking = rank(n)
        if len(ranking.ids) < n or n == _MAX_FETCH:
            return ranking
        rows = hit_rows(user, ranking.ids).order_by()
        found = rows.values("canvas__case").distinct().count()
        if found >= query.k or found >= cases_embedded_count(
            user, query.scope, left_out=left_out, at_most=query.k
        ):
            return ranking
        n = min(n * _FETCH_GROWTH, _MAX_FETCH)


def _hits(user: User, ranking: Ranking, significance: Significance) -> tuple[Hit, ...]:
    rows = hits_of(user, ranking.ids)
    ranked = [
        (rows[pk], distance)
        for pk, distance in zip(ranking.ids.tolist(), ranking.distance.tolist(), strict=True)
        if pk in rows
    ]
    return tuple(
        hit_of(rank, row, distance, significance)
        for rank, (row, distance) in enumerate(ranked, start=1)
    )


def _validate(query: SimilarQuery) -> None:
    if not 1 <= query.k <= MAX_K:
        raise InvalidInputError(f"k: expected a whole number from 1 to {MAX_K}, got {query.k}.")
    if not 0 <= query.expand <= MAX_EXPAND:
        raise InvalidInputError(
            f"expand: expected a whole number from 0 to {MAX_EXPAND}, got {query.expand}."
        )
    if max(len(query.liked), len(query.unliked)) > MAX_EXAMPLES:
        raise InvalidInputError(f"liked, unliked: at most {MAX_EXAMPLES} regions each.")
    if query.roi and query.roi.deleted_at is not None:
        raise ConflictError("This region is deleted. Restore it first.", code="roi-deleted")
    if query.filters.case and query.case is None:
        raise InvalidInputError("case: this query belongs to no case.", code="no-case")


def _probe(user: User, query: SimilarQuery) -> QueryVector:
    if query.roi is None:
        return query_vector(user, cast(Query, query.subject), query.encoder)
    embedding = embedding_current(roi=query.roi, encoder=query.encoder)
    if embedding is None:
        raise NotEmbeddedError("This region is still being embedded. Try again in a moment.")
    source_ids = np.array([embedding.pk], dtype=np.int64)
    return QueryVector(vector_of(embedding), source_ids, embedding)


def _candidates(user: User, query: SimilarQuery, probe: QueryVector) -> Candidates:
    scope, case = query.scope, query.case
    candidates = Candidates(scope)
    candidates.exclude(probe.source_ids)
    candidates.exclude(ids_hidden(scope, user))
    if case and query.leaves_patient_out:
        candidates.exclude(ids_of_patient(scope, case))
    if query.filters:
        candidates.allow_only(ids_matching(scope, query.filters, case_id=case.pk if case else None))
    return candidates


def _examples(user: User, query: SimilarQuery, candidates: Candidates) -> Examples | None:
    """Vectors of liked and unliked regions; unliked ones are excluded from the search."""
    if not (query.liked or query.unliked):
        return None
    roi_ids = {*query.liked, *query.unliked}
    rows = dict(
        Embedding.objects.owned_by(user)
        .filter(
            lab_id=query.scope.lab_id,
            encoder=query.encoder,
            roi__in=roi_ids,
            superseded_at__isnull=True,
        )
        .values_list("roi_id", "pk")
    )
    if missing := roi_ids - set(rows):
        raise InvalidInputError(
            f"liked, unliked: this lab has no region {min(missing)} with a vector of this encoder.",
            code="example-unknown",
        )
    unliked = np.array(sorted({rows[pk] for pk in query.unliked}), dtype=np.int64)
    liked = np.array(sorted({rows[pk] for pk in query.liked}), dtype=np.int64)
    candidates.exclude(unliked)
    dim = query.encoder.dim
    return Examples(vectors_by_id(liked, dim=dim)[1], vectors_by_id(unliked, dim=dim)[1])


def _facets(user: User, query: SimilarQuery, probe: QueryVector) -> Facets:
    return facets_of(
        SearchedSet(
            user,
            query.scope,
            query.filters,
            query.case,
            leave_out=probe.source_ids.tolist(),
            excludes_patient=query.excludes_patient,
        )
    )
