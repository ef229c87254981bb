"""Sets of embedding ids that restrict a search."""

from __future__ import annotations

import uuid

from django.db.models import Exists, OuterRef, QuerySet

from ml.types import ArrayI64
from portal.annotations.models import Roi
from portal.archive.models import Canvas, Case
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, Embedding
from portal.embeddings.selectors.embeddings import ids_in, ids_of_rows, ids_on
from portal.labs.models import User
from portal.search.selectors.filters import Filters, canvases_matching, rois_matching

_HIT_FIELDS = (
    *("lab", "roi_version", "roi__lab", "roi__name", "roi__version", "roi__review_state"),
    *("roi__left", "roi__top", "roi__right", "roi__bottom", "roi__frame_pts", "roi__area_px"),
    *("roi__label__name", "roi__label__color"),
    *("roi__canvas__lab", "roi__canvas__name", "roi__canvas__kind", "roi__canvas__modality"),
    *("roi__canvas__mpp_x", "roi__canvas__mpp_y", "roi__canvas__pixels_path"),
    *("roi__canvas__display_range", "roi__canvas__file_display_range", "roi__canvas__slide__stain"),
    *("roi__canvas__case__accession", "roi__canvas__case__organ"),
    *("roi__canvas__case__diagnosis", "roi__canvas__case__patient_key"),
)
"""Columns of a hit that pages, pictures and reports use, about a third of all."""


def ids_of_patient(scope: Scope, case: Case) -> ArrayI64:
    """Embeddings of the case's patient, or of the case if its patient is unknown, with those in the
    trash."""
    canvases = Canvas.all_objects.filter(lab_id=scope.lab_id)
    if case.patient_key:
        canvases = canvases.filter(case__patient_key=case.patient_key)
    else:
        canvases = canvases.filter(case=case)
    return ids_on(scope, canvases, Embedding.all_objects.all())


def ids_matching(scope: Scope, filters: Filters, *, case_id: uuid.UUID | None) -> ArrayI64:
    """Ids of the current embeddings of ROIs that match all filters.

    Args:
        case_id: Case of the query; None if it has none.
    """
    canvases = canvases_matching(scope.lab_id, filters, case_id=case_id)
    rois = rois_matching(scope.lab_id, filters)
    if rois is None:
        return ids_on(
            scope, canvases if canvases is not None else Canvas.objects.filter(lab_id=scope.lab_id)
        )
    if canvases is not None:
        rois = rois.filter(canvas__in=canvases.order_by().values("pk"))
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder)
    return ids_of_rows(rows.filter(roi__in=rois.order_by().values("pk")).order_by())


def ids_hidden(scope: Scope, user: User) -> ArrayI64:
    """Current embeddings of ROIs that are hidden from the person.

    The ROIs are read first, since they are few: in a single query, a planner walks all embeddings
    of the lab.
    """
    hidden = list(Roi.all_objects.hidden_from(user).order_by().values_list("pk", flat=True))
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder, lab_id=scope.lab_id)
    return ids_in(rows, "roi", hidden)


def hit_rows(user: User, ids: ArrayI64) -> QuerySet[Embedding]:
    """Embeddings of hits that the person may see."""
    rows: QuerySet[Embedding] = Embedding.objects.owned_by(user)
    return rows.filter(pk__in=ids.tolist(), roi__deleted_at__isnull=True)


def hits_of(user: User, ids: ArrayI64) -> dict[int, Embedding]:
    """Rows of the hits with the fields that pages show, filtered by permission. One query."""
    rows = hit_rows(user, ids).select_related(
        "roi__canvas__case", "roi__canvas__slide", "roi__label"
    )
    return {row.pk: row for row in rows.only(*_HIT_FIELDS)}


def cases_embedded_count(user: User, scope: Scope, *, left_out: Case | None, at_most: int) -> int:
    """Number of a lab's cases with an embedded region, counted up to ``at_most``.

    Args:
        left_out: Case whose patient does not count.
    """
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder, canvas=OuterRef("pk"))
    canvases = Canvas.objects.owned_by(user).filter(Exists(rows), lab_id=scope.lab_id).order_by()
    if left_out is not None and left_out.patient_key:
        canvases = canvases.exclude(case__patient_key=left_out.patient_key)
    elif left_out is not None:
        canvases = canvases.exclude(case=left_out)
    return int(canvases.values("case").distinct()[:at_most].count())
