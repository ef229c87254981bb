"""Verify an index file against the database and against exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ml.errors import IndexUnreachableError
from ml.index.ground_truth import ExactSample
from ml.index.protocol import VectorIndex
from ml.types import ArrayF32, ArrayI64
from portal.embeddings.indexes import Scope, server
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot
from portal.embeddings.selectors.embeddings import vectors_by_id
from portal.embeddings.selectors.index_files.delta import ids_masked, ids_newer
from portal.embeddings.selectors.index_files.readers import readers
from portal.embeddings.selectors.index_files.snapshots import (
    IndexSource,
    index_entries,
    snapshot_latest,
)
from portal.labs.models import Lab

_SEED = 1  # same sample in each run, for comparison


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """Result of verifying an index file.

    Attributes:
        checked: Embeddings that the file should hold according to the database.
        missing: Of these, the ones not in the file.
        orphans: Unmasked vectors in the file without a current row in the database.
        altered: Sampled vectors that differ from the database.
        recall: Share of the exact ``k`` nearest neighbours that the file's search found, over the
            sample; NaN if there is no query vector.
    """

    snapshot: IndexSnapshot
    checked: int
    missing: int
    orphans: int
    altered: int
    sampled: int
    recall: float

    def is_good(self, min_recall: float) -> bool:
        """True if nothing is missing, orphaned or altered, and recall is high enough."""
        flawed = self.missing or self.orphans or self.altered
        return not flawed and not self.recall < min_recall


@dataclass(frozen=True, slots=True)
class ScopeState:
    """Newest index file of a scope, and the vectors that searches add and mask."""

    snapshot: IndexSnapshot | None
    is_readable: bool
    newer: int
    masked: int


def index_state_of(scope: Scope) -> ScopeState:
    snapshot = snapshot_latest(scope)
    index = readers.get(snapshot, scope.encoder) if snapshot else None
    return ScopeState(
        snapshot,
        index is not None,
        len(ids_newer(scope, snapshot)),
        len(ids_masked(scope, snapshot)),
    )


def index_server_answers() -> bool:
    """Return whether the index server answers; True if none is configured."""
    milvus = server()
    try:
        return milvus is None or bool(milvus.ping())
    except IndexUnreachableError:
        return False


def index_scopes() -> Iterator[tuple[Scope, Lab]]:
    """Encoders and labs with embeddings in use."""
    labs = {lab.pk: lab for lab in Lab.objects.all()}
    for encoder in Encoder.objects.order_by("name", "version"):
        rows = Embedding.all_objects.filter(encoder=encoder, superseded_at__isnull=True)
        lab_ids = rows.order_by().values_list("lab_id", flat=True).distinct()
        for lab_id in sorted(lab_ids, key=lambda pk: labs[pk].name):
            yield Scope(encoder, lab_id), labs[lab_id]


def index_verify(
    scope: Scope,
    *,
    sample: int = 64,
    k: int = 25,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> IndexCheck | None:
    """Compare the scope's newest index file with the database; None if none can be read.

    Reads every vector of the scope once.
    """
    snapshot = snapshot_latest(scope)
    index = readers.get(snapshot, scope.encoder) if snapshot else None
    if snapshot is None or index is None:
        return None
    in_file = index.ids()
    # Rows superseded since are masked by searches, so they are no orphans.
    masked = ids_masked(scope, snapshot)
    source = IndexSource(snapshot.read_at, snapshot.last_embedding_id, snapshot.count)
    rng = np.random.default_rng(_SEED)
    chosen = np.sort(rng.choice(in_file, min(sample, len(in_file)), replace=False))
    query_ids, queries = vectors_by_id(chosen, dim=scope.encoder.dim)
    exact = ExactSample(queries, k)
    parts: list[ArrayI64] = []
    for ids, vectors in index_entries(scope, source):
        parts.append(ids)
        exact.add(ids, vectors)
        progress(sum(map(len, parts)), snapshot.count)
    current = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    outdated = np.setdiff1d(in_file, current)
    orphans = np.setdiff1d(outdated, masked)
    shares, altered = _compare(index, exact, (query_ids, queries), k=k, outdated=outdated)
    return IndexCheck(
        snapshot=snapshot,
        checked=len(current),
        missing=len(np.setdiff1d(current, in_file)),
        orphans=len(orphans),
        altered=altered,
        sampled=len(query_ids),
        recall=float(np.mean(shares)) if shares else float("nan"),
    )


def _compare(
    index: VectorIndex,
    exact: ExactSample,
    queries: tuple[ArrayI64, ArrayF32],
    *,
    k: int,
    outdated: ArrayI64,
) -> tuple[list[float], int]:
    """Share of each query's exact answer that was found, and number of altered vectors."""
    shares, altered = [], 0
    for query_id, q, (want, _) in zip(*queries, exact.found(), strict=True):
        _, at = index.search(q, 1, allowed=[query_id])
        altered += int(len(at) == 0 or at[0] > 0)
        ids_found, _ = index.search(q, k, excluded=outdated)
        shares.append(float(np.isin(want, ids_found).mean()) if len(want) else 1.0)
    return shares, altered
