"""What an index file holds against what the database says, and against an exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ml.errors import IndexUnreachableError
from ml.index import VectorIndex
from ml.index.sample import ExactSample
from ml.types import ArrayF32, ArrayI64
from portal.labs.models import Lab
from portal.retrieval.indexes import Scope, server
from portal.retrieval.models import Embedding, Encoder, IndexSnapshot
from portal.retrieval.selectors.candidates import ids_masked, ids_newer
from portal.retrieval.selectors.embeddings import vectors_by_id
from portal.retrieval.selectors.files.readers import readers
from portal.retrieval.selectors.files.snapshots import (
    IndexSource,
    index_entries,
    snapshot_latest,
)

_SEED = 1  # of the sample: the same rows each time, so that two runs can be compared


@dataclass(frozen=True, slots=True)
class IndexVerdict:
    """How an index file does.

    Attributes:
        checked: embeddings that the database says it should hold.
        missing: of these, not in the file. orphans: in the file and not masked, though the
            database has none of that id in use.
        altered: of the sample, those whose vector in the file differs from the database's.
        recall: share of the exact ``k`` nearest that the file's search found, over the sample; NaN
            where there is nothing to ask with.
    """

    snapshot: IndexSnapshot
    checked: int
    missing: int
    orphans: int
    altered: int
    sampled: int
    recall: float

    def is_good(self, least_recall: float) -> bool:
        """True if nothing is wrong and enough is found."""
        flawed = self.missing or self.orphans or self.altered
        return not flawed and not self.recall < least_recall


@dataclass(frozen=True, slots=True)
class ScopeState:
    """A scope's newest index file, and what searches add to it and leave out of it."""

    snapshot: IndexSnapshot | None
    is_readable: bool
    newer: int
    masked: int


def index_state_of(scope: Scope) -> ScopeState:
    """How a scope is searched now."""
    snapshot = snapshot_latest(scope)
    index = readers.get(snapshot, scope.encoder) if snapshot else None
    return ScopeState(
        snapshot,
        index is not None,
        len(ids_newer(scope, snapshot)),
        len(ids_masked(scope, snapshot)),
    )


def index_server_answers() -> bool:
    """Whether the server of indexes can be asked; True if none is configured."""
    found = server()
    try:
        return found is None or bool(found.answers())
    except IndexUnreachableError:
        return False


def index_scopes() -> Iterator[tuple[Scope, Lab]]:
    """Every encoder and lab that has embeddings in use."""
    labs = {lab.pk: lab for lab in Lab.objects.all()}
    for encoder in Encoder.objects.order_by("name", "version"):
        rows = Embedding.everything.filter(encoder=encoder, superseded_at__isnull=True)
        held = rows.order_by().values_list("lab_id", flat=True).distinct()
        for lab_id in sorted(held, key=lambda pk: labs[pk].name):
            yield Scope(encoder, lab_id), labs[lab_id]


def index_verify(
    scope: Scope,
    *,
    sample: int = 64,
    k: int = 25,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> IndexVerdict | None:
    """Compare the scope's newest index file with the database; None if none can be read.

    Reads every vector of the scope once.
    """
    snapshot = snapshot_latest(scope)
    index = readers.get(snapshot, scope.encoder) if snapshot else None
    if snapshot is None or index is None:
        return None
    in_file = index.ids()
    # As of now: what was superseded since is masked by every search, so it is no orphan.
    masked = ids_masked(scope, snapshot)
    source = IndexSource(snapshot.read_at, snapshot.last_embedding_id, snapshot.count)
    rng = np.random.default_rng(_SEED)
    chosen = np.sort(rng.choice(in_file, min(sample, len(in_file)), replace=False))
    asked_ids, asked = vectors_by_id(chosen, dim=scope.encoder.dim)
    exact = ExactSample(asked, k)
    parts: list[ArrayI64] = []
    for ids, vectors in index_entries(scope, source):
        parts.append(ids)
        exact.add(ids, vectors)
        progress(sum(map(len, parts)), snapshot.count)
    current = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    gone = np.setdiff1d(in_file, current)
    orphans = np.setdiff1d(gone, masked)
    shares, altered = _asked(index, exact, (asked_ids, asked), k=k, gone=gone)
    return IndexVerdict(
        snapshot=snapshot,
        checked=len(current),
        missing=len(np.setdiff1d(current, in_file)),
        orphans=len(orphans),
        altered=altered,
        sampled=len(asked_ids),
        recall=float(np.mean(shares)) if shares else float("nan"),
    )


def _asked(
    index: VectorIndex,
    exact: ExactSample,
    asked: tuple[ArrayI64, ArrayF32],
    *,
    k: int,
    gone: ArrayI64,
) -> tuple[list[float], int]:
    """The share found of each query's exact answer, and how many are not found at distance 0."""
    shares, altered = [], 0
    for own, q, (want, _) in zip(*asked, exact.found(), strict=True):
        _, at = index.search(q, 1, allowed=[own])
        altered += int(len(at) == 0 or at[0] > 0)
        found, _ = index.search(q, k, excluded=gone)
        shares.append(float(np.isin(want, found).mean()) if len(want) else 1.0)
    return shares, altered
