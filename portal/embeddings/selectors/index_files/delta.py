"""Differences between the database and an index file."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from ml.types import ArrayI64
from portal.archive.models.records import canvases_in_trash
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, IndexSnapshot
from portal.embeddings.selectors.embeddings import ids_of_rows, ids_on

CLOCK_SLACK = timedelta(hours=1)
"""Largest difference of machines' clocks plus longest transaction. Rows superseded up to this long
before a snapshot was read are masked again, which costs nothing and changes no result."""


def ids_newer(scope: Scope, snapshot: IndexSnapshot | None) -> ArrayI64:
    """Current embeddings that the snapshot cannot hold (without a snapshot: all), ascending."""
    rows = Embedding.objects.filter(
        lab_id=scope.lab_id, encoder=scope.encoder, superseded_at__isnull=True
    )
    if snapshot is not None:
        rows = rows.filter(pk__gt=snapshot.last_embedding_id)
    return ids_of_rows(rows.order_by("pk"))


def ids_masked(scope: Scope, snapshot: IndexSnapshot | None) -> ArrayI64:
    """Embeddings that the snapshot may hold and that are superseded or in the trash."""
    if snapshot is None:
        return np.empty(0, dtype=np.int64)
    superseded = Embedding.all_objects.filter(
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        pk__lte=snapshot.last_embedding_id,
        superseded_at__gte=snapshot.read_at - CLOCK_SLACK,
    )
    superseded_ids = ids_of_rows(superseded.order_by())
    trashed = ids_on(
        scope, canvases_in_trash().filter(lab_id=scope.lab_id), Embedding.all_objects.all()
    )
    return np.concatenate([superseded_ids, trashed[trashed <= snapshot.last_embedding_id]])
