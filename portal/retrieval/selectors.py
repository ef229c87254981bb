"""Reads of encoders, embeddings and index snapshots."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from ml.types import ArrayF32, ArrayI64
from portal.annotations.models import Roi
from portal.archive.models import Canvas, Case
from portal.core.errors import NotFoundError
from portal.jobs.models import ENDED, Job
from portal.labs.models import User
from portal.retrieval.models import (
    CANVASES_OF,
    CURRENT,
    CanvasStain,
    Embedding,
    Encoder,
    EncoderKind,
    IndexSnapshot,
)

EMBED_KIND = "roi_embed"
BACKFILL_KIND = "lab_embed"
CLOCK_SLACK = timedelta(hours=1)
"""How far clocks of machines may differ, and how long a transaction may last. Rows superseded so
long before a snapshot was read are masked once more, which costs nothing and changes nothing."""
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose vectors are searched: one encoder's, of one lab."""

    encoder: Encoder
    lab_id: uuid.UUID


def encoder_list() -> QuerySet[Encoder]:
    """Every encoder that has embedded something, the default first. Encoders belong to no lab."""
    return Encoder.objects.all()


def encoder_kind_for(canvas: Canvas) -> EncoderKind:
    """The kind of encoder that embeds the ROIs of this canvas."""
    return next(kind for kind, canvases in CANVASES_OF.items() if canvas.kind in canvases)


def encoder_default(kind: str = EncoderKind.HISTOLOGY) -> Encoder | None:
    """The encoder of a kind that searches use unless told otherwise; None before its first use."""
    return Encoder.objects.filter(is_default=True, kind=kind).first()


def encoder_next(kind: str) -> Encoder | None:
    """The encoder that is about to take the place of the kind's default, if one is."""
    return Encoder.objects.filter(is_next=True, kind=kind).first()


def encoder_for(roi: Roi) -> Encoder | None:
    """The encoder to search with from this ROI: its kind's default, or the one that follows it.

    An ROI drawn while the default is being replaced is embedded by the next one alone.
    """
    kind = encoder_kind_for(roi.canvas)
    chosen, following = encoder_default(kind), encoder_next(kind)
    if following is None or chosen is None or embedding_current(roi=roi, encoder=chosen):
        return chosen
    return following if embedding_current(roi=roi, encoder=following) else chosen


def backfill_key(encoder: Encoder) -> str:
    """How the idempotency keys of jobs that embed an archive with this encoder begin."""
    return f"{EMBED_KIND}:{encoder.pk}:"


def backfill_jobs_open(encoder: Encoder) -> QuerySet[Job]:
    """Jobs that embed an archive with this encoder and have not ended."""
    whole_labs = Q(kind=BACKFILL_KIND, args__encoder_id=str(encoder.pk))
    rois = Q(kind=EMBED_KIND, idempotency_key__startswith=backfill_key(encoder))
    return Job.objects.exclude(state__in=ENDED).filter(whole_labs | rois)


def encoder_get(encoder_id: uuid.UUID) -> Encoder:
    """One encoder, or ``NotFoundError``."""
    encoder = Encoder.objects.filter(pk=encoder_id).first()
    if encoder is None:
        raise NotFoundError("There is no such encoder. GET /api/v1/encoders/ lists them.")
    return encoder


def embedding_current(*, roi: Roi, encoder: Encoder) -> Embedding | None:
    """The embedding of the ROI's present outline, or None while there is none."""
    # There is one at most; asked for in an order, SQLite would walk the table in it.
    rows = Embedding.objects.filter(CURRENT, encoder=encoder, roi=roi).order_by()
    return next(iter(rows[:1]), None)


def rois_with_embedding(roi_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the ROIs that can be searched with as they are now. One query."""
    current = Embedding.objects.filter(
        Q(encoder__is_default=True) | Q(encoder__is_next=True),
        roi_id__in=roi_ids,
        superseded_at__isnull=True,
    )
    return set(current.values_list("roi_id", flat=True))


def embeddings_of_other_kinds(encoder: Encoder) -> QuerySet[Embedding]:
    """Current embeddings of ROIs of the encoder's kind by encoders of another kind."""
    return Embedding.objects.filter(
        CURRENT, canvas__kind__in=CANVASES_OF[EncoderKind(encoder.kind)]
    ).exclude(encoder__kind=encoder.kind)


def roi_to_embed(roi_id: uuid.UUID) -> Roi | None:
    """For a task: the ROI with its canvas, or None where it is deleted or gone."""
    found: Roi | None = Roi.objects.live().select_related("canvas", "lab").filter(pk=roi_id).first()
    return found


def rois_without_embedding(*, lab_id: uuid.UUID, encoder: Encoder) -> QuerySet[Roi]:
    """For a task: the lab's live ROIs of the encoder's kind that it has yet to embed."""
    current = Embedding.objects.filter(lab_id=lab_id, encoder=encoder, superseded_at__isnull=True)
    rois = Roi.objects.live().filter(
        lab_id=lab_id, canvas__kind__in=CANVASES_OF[EncoderKind(encoder.kind)]
    )
    return rois.exclude(pk__in=current.values("roi_id"))


def stain_of(canvas: Canvas, *, method: str) -> dict[str, Any] | None:
    """For a task: the stored stains of a slide by this method, None where they are yet unknown."""
    found = CanvasStain.objects.filter(canvas=canvas, method=method).first()
    return found.estimate if found else None


def embed_job(*, roi: Roi) -> Job | None:
    """The newest job that embeds this ROI. The caller has checked that the ROI may be seen."""
    jobs = Job.objects.filter(target_type="roi", target_id=roi.pk, kind=EMBED_KIND)
    return jobs.order_by("-created_at").first()


def vector_of(row: Embedding) -> ArrayF32:
    """(dim,) float32 of a row."""
    return np.frombuffer(bytes(row.vector), dtype="<f4").astype(np.float32)


# -- what a search needs: each one query of few rows, whatever the lab holds -----------------------


def snapshot_latest(scope: Scope) -> IndexSnapshot | None:
    """The newest index file of the scope."""
    found: IndexSnapshot | None = (
        IndexSnapshot.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
        .order_by("-version")
        .first()
    )
    return found


def ids_newer(scope: Scope, snapshot: IndexSnapshot | None) -> ArrayI64:
    """Current embeddings that the snapshot cannot hold (without a snapshot: all), ascending."""
    rows = Embedding.objects.filter(
        lab_id=scope.lab_id, encoder=scope.encoder, superseded_at__isnull=True
    )
    if snapshot is not None:
        rows = rows.filter(pk__gt=snapshot.last_embedding_id)
    return _ids(rows.order_by("pk"))


def ids_masked(scope: Scope, snapshot: IndexSnapshot | None) -> ArrayI64:
    """Embeddings that the snapshot may hold and that are no longer current."""
    if snapshot is None:
        return np.empty(0, dtype=np.int64)
    gone = Embedding.objects.filter(
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        superseded_at__gte=snapshot.read_at - CLOCK_SLACK,
        pk__lte=snapshot.last_embedding_id,
    )
    return _ids(gone.order_by())


def ids_of_patient(scope: Scope, case: Case) -> ArrayI64:
    """Embeddings of the case's patient; of the case alone where its patient is not known."""
    canvases = Canvas.objects.filter(lab_id=scope.lab_id)
    if case.patient_key:
        canvases = canvases.filter(case__patient_key=case.patient_key)
    else:
        canvases = canvases.filter(case=case)
    return _ids_on(scope, canvases)


def ids_matching(
    scope: Scope, *, organ: str = "", label_id: uuid.UUID | None = None, kind: str = ""
) -> ArrayI64:
    """Current embeddings of ROIs that match every filter given."""
    canvases = Canvas.objects.filter(lab_id=scope.lab_id)
    if organ:
        canvases = canvases.filter(case__organ__iexact=organ)
    if kind:
        canvases = canvases.filter(kind=kind)
    if label_id is None:
        return _ids_on(scope, canvases)
    rois = Roi.objects.filter(lab_id=scope.lab_id, label_id=label_id)
    if organ or kind:
        rois = rois.filter(canvas__in=canvases.order_by().values("pk"))
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder)
    return _ids(rows.filter(roi__in=rois.order_by().values("pk")).order_by())


def vectors_by_id(ids: ArrayI64, *, dim: int) -> tuple[ArrayI64, ArrayF32]:
    """Ids that still exist, ascending, and their (N, dim) vectors."""
    found: list[tuple[int, bytes | memoryview]] = []
    for start in range(0, len(ids), _CHUNK):
        rows = Embedding.objects.filter(pk__in=ids[start : start + _CHUNK].tolist())
        found += rows.order_by("pk").values_list("pk", "vector")
    return _stacked(found, dim)


def ids_missing(ids: ArrayI64) -> ArrayI64:
    """Those of the ids that no row has any more."""
    found = _ids(Embedding.objects.filter(pk__in=ids.tolist()).order_by())
    return ids[~np.isin(ids, found)]


def hits_of(user: User, ids: ArrayI64) -> dict[int, Embedding]:
    """What a page shows of each hit, in one query, once more only what the person may see."""
    rows = (
        Embedding.objects.visible_to(user)
        .filter(pk__in=ids.tolist(), roi__deleted_at__isnull=True)
        .select_related("roi__canvas__case", "roi__label")
        .defer("vector", "roi__foreign", "roi__geometry", "roi__canvas__levels")
    )
    return {row.pk: row for row in rows}


def organs_of(lab_id: uuid.UUID) -> list[str]:
    """Organs that the lab's cases name, for the filter."""
    organs = Case.objects.filter(lab_id=lab_id).exclude(organ="").order_by("organ")
    return list(organs.values_list("organ", flat=True).distinct())


# -- what a build needs ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexSource:
    """What the next snapshot is built from."""

    read_at: datetime
    last_embedding_id: int
    count: int


def index_source(scope: Scope) -> IndexSource:
    """Fix what the next snapshot holds.

    Embeddings are written under a lock on their encoder's row. Taking it here means that every id
    up to ``last_embedding_id`` is committed: none can appear below it later.
    """
    with transaction.atomic():
        Encoder.objects.select_for_update().get(pk=scope.encoder.pk)
        read_at = timezone.now()
        rows = Embedding.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
        last = rows.aggregate(last=Max("pk"))["last"] or 0
        count = rows.filter(superseded_at__isnull=True).count()
    return IndexSource(read_at=read_at, last_embedding_id=last, count=count)


def index_entries(scope: Scope, source: IndexSource) -> Iterator[tuple[ArrayI64, ArrayF32]]:
    """Ids and vectors of the source, a few thousand at a time, ascending."""
    after = 0
    while True:
        rows = Embedding.objects.filter(
            lab_id=scope.lab_id,
            encoder=scope.encoder,
            superseded_at__isnull=True,
            pk__gt=after,
            pk__lte=source.last_embedding_id,
        )
        found = list(rows.order_by("pk").values_list("pk", "vector")[:_CHUNK])
        if not found:
            return
        after = found[-1][0]
        yield _stacked(found, scope.encoder.dim)


def _ids_on(scope: Scope, canvases: QuerySet[Canvas]) -> ArrayI64:
    """Current embeddings on these canvases, each looked up in its index.

    A subquery on the embedding's own column: with a join, and a condition on the lab, a planner
    without statistics walks all embeddings of the lab.
    """
    rows = Embedding.objects.filter(CURRENT, encoder=scope.encoder)
    return _ids(rows.filter(canvas__in=canvases.order_by().values("pk")).order_by())


def _ids(rows: QuerySet[Embedding]) -> ArrayI64:
    return np.array(list(rows.values_list("pk", flat=True)), dtype=np.int64)


def _stacked(found: list[tuple[int, bytes | memoryview]], dim: int) -> tuple[ArrayI64, ArrayF32]:
    ids = np.array([pk for pk, _ in found], dtype=np.int64)
    joined = b"".join(bytes(vector) for _, vector in found)
    return ids, np.frombuffer(joined, dtype="<f4").reshape(len(ids), dim).astype(np.float32)
