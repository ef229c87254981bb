"""Build index files; embed an archive with another encoder."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import numpy as np
from django.conf import settings

from ml.errors import IndexUnreachableError
from ml.index import open_index
from ml.types import ArrayF32, ArrayI64
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.embeddings import indexes
from portal.embeddings.indexes import Scope
from portal.embeddings.models import IndexSnapshot
from portal.embeddings.selectors.encoders import BACKFILL_KIND, encoder_get
from portal.embeddings.selectors.index_files.snapshots import (
    IndexSource,
    index_entries,
    index_source,
    index_source_from_json,
)
from portal.embeddings.services.indexes import (
    INDEX_KIND,
    BuiltIndex,
    index_name,
    index_publish,
    index_version_next,
)
from portal.embeddings.services.submissions import embed_submit_missing


@job_task(
    INDEX_KIND,
    title="Build search index",
    priority=Priority.BULK,
    retry_on=(OSError, IndexUnreachableError),
)
def index_build(context: JobContext, *, encoder_id: str, lab_id: str) -> JobResult:
    """Build an index of the scope's vectors and publish it as the newest snapshot."""
    scope = _scope(encoder_id, lab_id)
    began = time.monotonic()
    source = index_source(scope)
    if not source.count:
        return {"skipped": "no embeddings"}
    if settings.TESSERA_INDEX_ENGINE == indexes.MILVUS:
        return _fill_on_server(context, scope, source, began)
    with context.scratch() as scratch:
        ids, vectors = _read_vectors(context, scope, source, scratch)
        if not len(ids):
            return {"skipped": "no embeddings"}
        folder = scratch / "index"
        index = open_index(folder, dim=scope.encoder.dim, tag=indexes.encoder_tag(scope.encoder))
        index.build(ids, vectors, progress=context.progress)
        built = BuiltIndex(source, index.stats, time.monotonic() - began)
        with context.effect():
            snapshot = index_publish(scope=scope, built=built, built_folder=folder)
    return _job_result(snapshot)


def _fill_on_server(
    context: JobContext, scope: Scope, source: IndexSource, began: float
) -> JobResult:
    """Fill an index on the server; continues an interrupted fill.

    It keeps the source of the interrupted job: later changes are newer than the index, or masked.
    """
    name, index = indexes.server_index(scope, index_version_next(scope))
    if not index.source:
        filling = index.fill(source.as_json())
        source, row_count = index_source_from_json(filling.source), filling.count
        after = filling.done_until or 0
        for ids, vectors in index_entries(scope, source, after=after):
            filling.put(ids, vectors)
            row_count += len(ids)
            context.progress(row_count, source.count, "filling")
        index.finish(filling)
    source = index_source_from_json(index.source)
    built = BuiltIndex(source, index.stats, time.monotonic() - began)
    with context.effect():
        snapshot = index_name(scope=scope, built=built, name=name)
    return _job_result(snapshot)


def _job_result(snapshot: IndexSnapshot) -> JobResult:
    return {
        "snapshot": str(snapshot.pk),
        "version": snapshot.version,
        "count": snapshot.count,
        "engine": snapshot.engine,
    }


def _read_vectors(
    context: JobContext, scope: Scope, source: IndexSource, scratch: Path
) -> tuple[ArrayI64, ArrayF32]:
    """Ids (N,) and memory-mapped vectors (N, D), which may exceed a worker's memory."""
    shape = (source.count, scope.encoder.dim)
    vectors = np.lib.format.open_memmap(
        scratch / "vectors.npy", mode="w+", dtype=np.float32, shape=shape
    )
    parts: list[ArrayI64] = []
    row_count = 0
    for ids, part in index_entries(scope, source):
        # Rows superseded while reading are left out, so there may be fewer than counted.
        vectors[row_count : row_count + len(ids)] = part
        row_count += len(ids)
        parts.append(ids)
        context.progress(row_count, source.count, "reading")
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]), vectors[:row_count]


@job_task(
    BACKFILL_KIND,
    title="Prepare the archive for search again",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def lab_embed(context: JobContext, *, lab_id: str, encoder_id: str) -> JobResult:
    """Submit every canvas of a lab with ROIs that an encoder has not embedded."""
    scope = _scope(encoder_id, lab_id)
    with context.effect():
        count = embed_submit_missing(lab_id=scope.lab_id, encoder=scope.encoder)
    return {"submitted": count}


def _scope(encoder_id: str, lab_id: str) -> Scope:
    try:
        encoder = encoder_get(uuid.UUID(encoder_id))
    except NotFoundError as error:
        raise UserError("The encoder no longer exists.", code="encoder-gone") from error
    return Scope(encoder, uuid.UUID(lab_id))
