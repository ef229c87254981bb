"""Similar cases of an ROI or a query: permission, then search, then what a page shows of each hit.

The scope of a search is one lab: that of its query or its ROI or, where the ROI's case is shared,
the lab it is shared with. Nobody searches the regions of a lab that they are not a member of.
``nearest`` searches.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypedDict, cast

import numpy as np

from portal.annotations.models import Roi
from portal.annotations.selectors import roi_get
from portal.archive.models import Canvas, Case
from portal.archive.selectors import share_seen
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Embedding, Encoder, EncoderKind, Query
from portal.retrieval.selectors.candidates import hits_of, ids_hidden, ids_matching, ids_of_patient
from portal.retrieval.selectors.embeddings import embedding_current, vector_of, vectors_by_id
from portal.retrieval.selectors.facets import Facets, SearchedSet, facets_of
from portal.retrieval.selectors.filters import CaseScope, Filters
from portal.retrieval.selectors.hits import Hit, Meaning, calibration_for, hit_of, one_a_case
from portal.retrieval.selectors.nearest import Candidates, Examples, IndexUsed, Ranking
from portal.retrieval.selectors.queries import NotEmbeddedError, QueryVector, query_vector
from portal.retrieval.selectors.votes import VoteTally, diagnosis_tally, label_tally

K_MOST = 200  # what a page can show; more belongs in an export
EXPAND_MOST = 10  # beyond the few nearest, what is found may no longer be alike
EXAMPLES_MOST = 50  # marks of one search: more belong in a trained encoder
_CASES_FETCH, _FETCH_MOST = 4, 2_000
"""For one hit a case: how many regions are looked at first, as a multiple of k, and at most."""


class SimilarOptions(TypedDict, total=False):
    """How a search is asked; see ``SimilarQuery``."""

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
    """What is asked.

    Attributes:
        roi: seen by the person who asks, with its canvas and case. asked: in the place of an ROI.
        lab_id: whose regions are searched, see ``roi_to_search``; None for the lab of the ROI.
        k: how many hits, 1 to 200; with ``by_case``, how many cases.
        exclude_same_patient: leave out ROIs of the patient (of the case, where the patient is not
            known). The ROI itself is never found. A filter by its case alone takes precedence.
            For another lab's ROI the patient does not matter: a pseudonym means something only
            within its own lab.
        expand: by how many of its nearest the query is expanded, 0 to 10; 0 orders by distance
            alone. Each pass finds only what the filters and the patient allow.
        expand_from: regions; a search among fewer is not expanded.
        diffuse: order hits by diffusion, in which near regions pass on what reaches them from the
            query, over what the filters and the patient allow.
        by_case: one hit a case, its others beside it.
        liked, unliked: ROIs of the lab, up to 50 each, that move the query towards and away from
            them, in the place of ``expand``. What is unliked is not found.
        with_facets: count the searched set too.
    """

    encoder: Encoder
    roi: Roi | None = None
    asked: Query | None = None
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
        """What is searched."""
        return Scope(self.encoder, self.lab_id or self.home_lab_id)

    @property
    def home_lab_id(self) -> uuid.UUID:
        """The lab of what is searched with."""
        return self.subject.lab_id

    @property
    def subject(self) -> Roi | Query:
        """What is searched with."""
        found = self.roi or self.asked
        if found is None:
            raise ValueError("a search needs an ROI or a query")
        return found

    @property
    def case(self) -> Case | None:
        """Whose patient is left out; None for a picture, or for examples."""
        canvas = self.subject.canvas
        return canvas.case if canvas else None

    @property
    def scale_unknown(self) -> bool:
        """True if the scale of what is searched with is assumed."""
        return self.assumes_scale_of(self.subject.canvas)

    def assumes_scale_of(self, canvas: Canvas | None) -> bool:
        """True if the encoder takes a canvas for a scan of 0.5 microns per pixel, as it may not be.

        Endoscopic images have no scale, and their encoder needs none.
        """
        is_histology = self.encoder.kind == EncoderKind.HISTOLOGY
        return is_histology and canvas is not None and canvas.mpp is None

    @property
    def is_foreign(self) -> bool:
        """True if another lab's ROI is searched with."""
        return self.scope.lab_id != self.home_lab_id

    @property
    def leaves_patient_out(self) -> bool:
        """True if the patient of the ROI is not searched."""
        return self.excludes_patient and self.filters.case is not CaseScope.ONLY

    @property
    def excludes_patient(self) -> bool:
        """True if the patient is left out unless ``filters`` ask for the case alone."""
        return self.exclude_same_patient and not self.is_foreign and self.case is not None


@dataclass(frozen=True, slots=True)
class SimilarResult:
    """Hits, the best first, ties by embedding id; and what they came from.

    Attributes:
        embedding_id, roi_version: of the ROI; None if a query was searched with.
        labels, diagnoses: what the hits say together.
        facets: the searched set; None if it was not asked for.
        expanded_by: embeddings that the query was expanded by; none if the hits are in the order
            of their distances, or where examples moved the query.
        refined_by: how many examples moved it.
        says_nothing_close: there are hits, and by the encoder's calibration not even the nearest of
            what may be found is nearer to the ROI itself than that of as many unrelated regions.
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
    """An ROI that this person may search with, and the id of the lab that is searched.

    That is the ROI's own lab for its members, and for the members of a lab that its case is shared
    with, their own.

    Raises:
        NotFoundError: neither.
    """
    try:
        roi = roi_get(user, roi_id, with_shared=False)
    except NotFoundError:
        roi = roi_get(user, roi_id)
        share = share_seen(user, roi.canvas.case)
        if share is None:  # it has ended since
            raise
        return roi, share.with_lab_id
    return roi, roi.lab_id


def similar_search(user: User, query: SimilarQuery) -> SimilarResult:
    """The ROIs most similar to one that the person may see.

    Raises:
        ConflictError: the ROI is deleted, or no ROI that the query goes by has a vector.
        NotEmbeddedError: what is searched with has no vector by this encoder yet.
        InvalidInputError: ``k`` outside of 1 to 200, ``expand`` of 0 to 10, too many examples, one
            that is hidden from the person or has no vector, or a filter by case without a case.
    """
    _check(query)
    probe = _probe(user, query)
    candidates = _candidates(user, query, probe)
    examples = _examples(user, query, candidates)
    searched = candidates.searched()
    if searched < query.expand_from:
        query = replace(query, expand=0)  # the answer says how it was asked, and can be repeated
    ask = partial(
        candidates.ranked,
        probe.vector,
        expand=query.expand,
        diffuse=query.diffuse,
        examples=examples,
    )
    meaning = Meaning(calibration_for(query.encoder), searched)
    found, hits = _found(user, query, ask, meaning)
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
        found.expanded_by,
        refined_by=0 if examples is None else len(examples.liked) + len(examples.unliked),
        says_nothing_close=bool(hits) and meaning.is_close(found.nearest) is False,
    )


def _found(
    user: User,
    query: SimilarQuery,
    ask: Callable[[int], Ranking],
    meaning: Meaning,
) -> tuple[Ranking, tuple[Hit, ...]]:
    """The ranking and its hits: as many as are asked for, if there are that many.

    One hit for each case takes more regions than cases; more are needed as well where a region is
    deleted between the search and the read.
    """
    n = query.k * _CASES_FETCH if query.by_case else query.k
    while True:
        n = min(n, _FETCH_MOST)
        found = ask(n)
        hits = _hits(user, found, meaning)
        if query.by_case:
            hits = one_a_case(hits)
        if len(hits) >= query.k or len(found.ids) < n or n == _FETCH_MOST:
            return found, hits[: query.k]
        n *= _CASES_FETCH


def _hits(user: User, found: Ranking, meaning: Meaning) -> tuple[Hit, ...]:
    rows = hits_of(user, found.ids)
    ranked = [
        (rows[pk], distance)
        for pk, distance in zip(found.ids.tolist(), found.distance.tolist(), strict=True)
        if pk in rows
    ]
    return tuple(
        hit_of(rank, row, distance, meaning) for rank, (row, distance) in enumerate(ranked, start=1)
    )


def _check(query: SimilarQuery) -> None:
    if not 1 <= query.k <= K_MOST:
        raise InvalidInputError(f"k: expected a whole number from 1 to {K_MOST}, got {query.k}.")
    if not 0 <= query.expand <= EXPAND_MOST:
        raise InvalidInputError(
            f"expand: expected a whole number from 0 to {EXPAND_MOST}, got {query.expand}."
        )
    if max(len(query.liked), len(query.unliked)) > EXAMPLES_MOST:
        raise InvalidInputError(f"liked, unliked: at most {EXAMPLES_MOST} regions each.")
    if query.roi and query.roi.deleted_at is not None:
        raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")
    if query.filters.case and query.case is None:
        raise InvalidInputError("case: this query belongs to no case.", code="no-case")


def _probe(user: User, query: SimilarQuery) -> QueryVector:
    if query.roi is None:
        return query_vector(user, cast(Query, query.subject), query.encoder)
    embedding = embedding_current(roi=query.roi, encoder=query.encoder)
    if embedding is None:
        raise NotEmbeddedError("This ROI is still being embedded. Try again in a moment.")
    own = np.array([embedding.pk], dtype=np.int64)
    return QueryVector(vector_of(embedding), own, embedding)


def _candidates(user: User, query: SimilarQuery, probe: QueryVector) -> Candidates:
    scope, case = query.scope, query.case
    found = Candidates(scope)
    found.exclude(probe.own_ids)
    found.exclude(ids_hidden(scope, user))
    if case and query.leaves_patient_out:
        found.exclude(ids_of_patient(scope, case))
    if query.filters:
        found.allow_only(ids_matching(scope, query.filters, case_id=case.pk if case else None))
    return found


def _examples(user: User, query: SimilarQuery, candidates: Candidates) -> Examples | None:
    """The vectors of what is liked and unliked; what is unliked can no longer be found."""
    if not (query.liked or query.unliked):
        return None
    wanted = {*query.liked, *query.unliked}
    rows = dict(
        Embedding.objects.owned_by(user)
        .filter(
            lab_id=query.scope.lab_id,
            encoder=query.encoder,
            roi__in=wanted,
            superseded_at__isnull=True,
        )
        .values_list("roi_id", "pk")
    )
    if missing := wanted - set(rows):
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
            leave_out=probe.own_ids.tolist(),
            excludes_patient=query.excludes_patient,
        )
    )
