"""Reads of index files: the newest snapshot, and the source of the next one."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Count, Max, Q
from django.db.models.functions import Now
from django.utils import timezone

from ml.types import ArrayF32, ArrayI64
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, Embedding, Encoder, IndexSnapshot
from portal.embeddings.selectors.embeddings import CHUNK_ROWS, vectors_stacked
from portal.labs.models import Lab

_SCOPES_AT_ONCE = 200  # terms of one condition; SQLite's limit is a depth of 1,000


def snapshot_latest(scope: Scope) -> IndexSnapshot | None:
    """The newest index file of the scope."""
    snapshot: IndexSnapshot | None = (
        IndexSnapshot.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
        .order_by("-version")
        .first()
    )
    return snapshot


@dataclass(frozen=True, slots=True)
class IndexSource:
    """Embeddings that go into the next snapshot."""

    read_at: datetime
    last_embedding_id: int
    count: int

    def as_json(self) -> str:
        """Serialise for an index on a server."""
        return json.dumps([self.read_at.isoformat(), self.last_embedding_id, self.count])


def index_source_from_json(text: str) -> IndexSource:
    """Parse the text that ``IndexSource.as_json`` wrote."""
    read_at, last_embedding_id, count = json.loads(text)
    return IndexSource(datetime.fromisoformat(read_at), last_embedding_id, count)


def index_source(scope: Scope) -> IndexSource:
    """Fix the content of the next snapshot.

    Embeddings are written under a lock on their encoder's row. With this lock held, every id up to
    ``last_embedding_id`` is committed, so none can appear below it later.
    """
    with transaction.atomic():
        locked = Encoder.objects.select_for_update().annotate(read_at=Now())
        read_at = locked.get(pk=scope.encoder.pk).read_at  # same clock as superseded_at
        rows = Embedding.all_objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
        last = rows.aggregate(last=Max("pk"))["last"] or 0
        count = rows.filter(superseded_at__isnull=True).count()
    return IndexSource(read_at=read_at, last_embedding_id=last, count=count)


def index_entries(
    scope: Scope, source: IndexSource, *, after: int = 0
) -> Iterator[tuple[ArrayI64, ArrayF32]]:
    """Ids above ``after`` and vectors of the source, a few thousand at a time, ascending."""
    while True:
        rows = Embedding.all_objects.filter(
            lab_id=scope.lab_id,
            encoder=scope.encoder,
            superseded_at__isnull=True,
            pk__gt=after,
            pk__lte=source.last_embedding_id,
        )
        pairs = list(rows.order_by("pk").values_list("pk", "vector")[:CHUNK_ROWS])
        if not pairs:
            return
        after = pairs[-1][0]
        yield vectors_stacked(pairs, scope.encoder.dim)


@dataclass(frozen=True, slots=True)
class IndexState:
    """Newest index files of an encoder over all labs.

    Attributes:
        age_s: Age of the oldest file; 0 without one.
        newer: Current embeddings missing from the files.
        vectors, size_bytes: Totals of all files.
        recall: Smallest recall measured when a file was written; 1 without files.
    """

    encoder: str
    age_s: float
    newer: int
    vectors: int = 0
    size_bytes: int = 0
    recall: float = 1.0


def index_states() -> list[IndexState]:
    """State of every encoder's index. Vectors in a file are not recounted."""
    now = timezone.now()
    newest = {
        (row.encoder_id, row.lab_id): row for row in IndexSnapshot.objects.order_by("version")
    }
    labs = list(Lab.objects.order_by().values_list("pk", flat=True))
    encoders = list(Encoder.objects.all())
    scopes = {
        (encoder.pk, lab): newest.get((encoder.pk, lab))
        for encoder in encoders
        for lab in labs
        if encoder.lab_id in {None, lab}
    }
    newer = _newer({key: file.last_embedding_id if file else 0 for key, file in scopes.items()})
    states = []
    for encoder in encoders:
        files = [file for key, file in scopes.items() if file and key[0] == encoder.pk]
        states.append(
            IndexState(
                str(encoder),
                max([0.0, *((now - file.created_at).total_seconds() for file in files)]),
                newer[encoder.pk],
                sum(file.count for file in files),
                sum(file.size_bytes for file in files),
                min([1.0, *(file.recall for file in files)]),
            )
        )
    return states


def _newer(last: Mapping[tuple[uuid.UUID, uuid.UUID], int]) -> Counter[uuid.UUID]:
    """Number of current embeddings newer than each lab's file, by encoder."""
    newer_counts: Counter[uuid.UUID] = Counter()
    keys = list(last)
    for start in range(0, len(keys), _SCOPES_AT_ONCE):
        behind = Q()
        for encoder, lab in keys[start : start + _SCOPES_AT_ONCE]:
            behind |= Q(encoder=encoder, lab=lab, pk__gt=last[encoder, lab])
        rows = Embedding.objects.filter(CURRENT, behind).order_by()
        newer_counts.update(dict(rows.values_list("encoder").annotate(Count("pk"))))
    return newer_counts
