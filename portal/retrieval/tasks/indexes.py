"""Work on whole archives: index files, and another encoder for all."""

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
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.retrieval import indexes, selectors, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import IndexSnapshot


@task(
    services.INDEX_KIND,
    title="Build search index",
    priority=Priority.BULK,
    retry_on=(OSError, IndexUnreachableError),
)
def index_build(context: JobContext, *, encoder_id: str, lab_id: str) -> JobResult:
    """Write a new index of what the database holds and name it as the newest snapshot."""
    scope = _scope(encoder_id, lab_id)
    began = time.monotonic()
    source = selectors.index_source(scope)
    if not source.count:
        return {"skipped": "no embeddings"}
    if settings.TESSERA_INDEX_ENGINE == indexes.QDRANT:
        return _filled(context, scope, source, began)
    with context.scratch() as scratch:
        ids, vectors = _read(context, scope, source, scratch)
        if not len(ids):
            return {"skipped": "no embeddings"}
        folder = scratch / "index"
        index = open_index(folder, dim=scope.encoder.dim, tag=indexes.encoder_tag(scope.encoder))
        index.build(ids, vectors, progress=context.progress)
        built = services.BuiltIndex(source, index.stats, time.monotonic() - began)
        with context.effect():
            snapshot = services.index_publish(scope=scope, built=built, made=folder)
    return _told(snapshot)


def _filled(
    context: JobContext, scope: Scope, source: selectors.IndexSource, began: float
) -> JobResult:
    """The same on the server. Continues where an earlier job was stopped.

    It keeps the source that the earlier job began with: what changed since is newer than the index,
    or masked, as with any other.
    """
    name, index = indexes.server_index(scope, services.index_version_next(scope))
    if not index.source:
        filling = index.fill(source.told())
        source, done = selectors.source_of(filling.source), filling.count
        after = filling.done_until or 0
        for ids, vectors in selectors.index_entries(scope, source, after=after):
            filling.put(ids, vectors)
            done += len(ids)
            context.progress(done, source.count, "filling")
        index.finish(filling)
    source = selectors.source_of(index.source)
    built = services.BuiltIndex(source, index.stats, time.monotonic() - began)
    with context.effect():
        snapshot = services.index_name(scope=scope, built=built, name=name)
    return _told(snapshot)


def _told(snapshot: IndexSnapshot) -> JobResult:
    return {
        "snapshot": str(snapshot.pk),
        "version": snapshot.version,
        "count": snapshot.count,
        "engine": snapshot.engine,
    }


def _read(
    context: JobContext, scope: Scope, source: selectors.IndexSource, scratch: Path
) -> tuple[ArrayI64, ArrayF32]:
    """Ids (N,) and vectors (N, D) as a file: millions of them do not fit into a worker's memory."""
    shape = (source.count, scope.encoder.dim)
    vectors = np.lib.format.open_memmap(
        scratch / "vectors.npy", mode="w+", dtype=np.float32, shape=shape
    )
    parts: list[ArrayI64] = []
    done = 0
    for ids, some in selectors.index_entries(scope, source):
        # What is superseded while it is read is left out: fewer may come than were counted.
        vectors[done : done + len(ids)] = some
        done += len(ids)
        parts.append(ids)
        context.progress(done, source.count, "reading")
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]), vectors[:done]


@task(
    selectors.BACKFILL_KIND,
    title="Embed the archive again",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def lab_embed(context: JobContext, *, lab_id: str, encoder_id: str) -> JobResult:
    """Submit every canvas of a lab whose ROIs an encoder has yet to embed."""
    scope = _scope(encoder_id, lab_id)
    with context.effect():
        count = services.embed_submit_missing(lab_id=scope.lab_id, encoder=scope.encoder)
    return {"submitted": count}


def _scope(encoder_id: str, lab_id: str) -> Scope:
    try:
        encoder = selectors.encoder_get(uuid.UUID(encoder_id))
    except NotFoundError as error:
        raise UserError("The encoder no longer exists.", code="encoder-gone") from error
    return Scope(encoder, uuid.UUID(lab_id))
