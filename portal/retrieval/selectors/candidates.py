"""What a search needs: each one query of few rows, whatever the lab holds."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import numpy as np
from django.db.models import QuerySet

from ml.types import ArrayI64
from portal.annotations.models import Roi
from portal.archive.models import Canvas, Case, canvases_in_bin
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import (
    CURRENT,
    Embedding,
    IndexSnapshot,
)
from portal.retrieval.selectors.embeddings import CHUNK_ROWS, ids_of_rows
from portal.retrieval.selectors.filters import Filters, canvases_matching, rois_matching

CLOCK_SLACK = timedelta(hours=1)
"""How far clocks of machines may differ, and how long a transaction may last. Rows superseded so
long before a snapshot was read are masked once more, which costs nothing and changes nothing."""


def ids_newer(scope: Scope, snapshot: IndexSnapshot | None) -> ArrayI64:
    """Current embeddings that the snapshot cannot hold (without a snapshot: all), ascending."""
    rows = Embedding.objects.filter(
        lab_id=scope.lab_id, encoder=scope.encoder, superseded_at__isnull=True
    )
    if snapshot is not None:
        rows = rows.filter(pk__gt=snapshot.last_embedding_id)
    return ids_of_rows(rows.order_by("pk"))


def ids_masked(scope: Scope, snapshot: IndexSnapshot | None) -> ArrayI64:
    """Embeddings that the snapshot may hold and that are superseded or in the bin."""
    if snapshot is None:
        return np.empty(0, dtype=np.int64)
    superseded = Embedding.everything.filter(
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        pk__lte=snapshot.last_embedding_id,
        superseded_at__gte=snapshot.read_at - CLOCK_SLACK,
    )
    gone = ids_of_rows(superseded.order_by())
    binned = _ids_on(
        scope, canvases_in_bin().filter(lab_id=scope.lab_id), Embedding.everything.all()
    )
    return np.concatenate([gone, binned[binned <= snapshot.last_embedding_id]])


def patient_of(case_id: uuid.UUID, key: str) -> str:
    """The patient's key; a case without one is a patient of its own."""
    return key or str(case_id)


def ids_of_patient(scope: Scope, case: Case) -> ArrayI64:
    """Embeddings of the case's patient; of the case alone where its patient is not known."""
    canvases = Canvas.objects.filter(lab_id=scope.lab_id)
    if case.patient_key:
        canvases = canvases.filter(case__patient_key=case.patient_key)
    else:
        canvases = canvases.filter(case=case)
    return _ids_on(scope, canvases)


def ids_matching(scope: Scope, filters: Filters, *, case_id: uuid.UUID | None) -> ArrayI64:
    """Current embeddings of ROIs that match every filter given.

    Args:
        case_id: of what is searched with; None if it has none.
    """
    canvases = canvases_matching(scope.lab_id, filters, case_id=case_id)
    rois = rois_matching(scope.lab_id, filters)
    if rois is None:
        return _ids_on(
            scope, canvases if canvases is not None else Canvas.objects.filter(lab_id=scope.lab_id)
        )
    if canvases is not None:
        rois = rois.filter(canvas__in=canvases.order_by().values("pk"))
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder)
    return ids_of_rows(rows.filter(roi__in=rois.order_by().values("pk")).order_by())


def ids_hidden(scope: Scope, user: User) -> ArrayI64:
    """Current embeddings of ROIs that are kept from the person for now.

    Those ROIs first, which are few and mostly none: in one query a planner walks all embeddings of
    the lab and looks each ROI up.
    """
    hidden = list(Roi.everything.hidden_from(user).order_by().values_list("pk", flat=True))
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder, lab_id=scope.lab_id)
    return _ids_in(rows, "roi", hidden)


def hits_of(user: User, ids: ArrayI64) -> dict[int, Embedding]:
    """What a page shows of each hit, in one query, once more only what the person may see."""
    rows = (
        Embedding.objects.owned_by(user)
        .filter(pk__in=ids.tolist(), roi__deleted_at__isnull=True)
        .select_related("roi__canvas__case", "roi__canvas__slide", "roi__label")
        .defer("vector", "roi__foreign", "roi__geometry", "roi__canvas__levels")
        .defer("roi__canvas__slide__properties", "roi__canvas__slide__warnings")
    )
    return {row.pk: row for row in rows}


def _ids_on(
    scope: Scope, canvases: QuerySet[Any], rows: QuerySet[Embedding] | None = None
) -> ArrayI64:
    """Current embeddings on these canvases, each looked up in its index; ``rows``: among these.

    The canvases first, then their embeddings by the ids: in one query a planner without statistics,
    as after a first import, walks all embeddings of the lab, and on PostgreSQL for minutes.
    """
    rows = Embedding.objects.all() if rows is None else rows
    found = rows.filter(CURRENT, encoder=scope.encoder)
    return _ids_in(found, "canvas", list(canvases.order_by().values_list("pk", flat=True)))


def _ids_in(rows: QuerySet[Embedding], name: str, keys: list[uuid.UUID]) -> ArrayI64:
    """Those that name one of these; nothing is asked where there are none."""
    chunks = [keys[start : start + CHUNK_ROWS] for start in range(0, len(keys), CHUNK_ROWS)]
    found = [ids_of_rows(rows.filter(**{f"{name}__in": chunk}).order_by()) for chunk in chunks]
    return np.concatenate([np.empty(0, dtype=np.int64), *found])
