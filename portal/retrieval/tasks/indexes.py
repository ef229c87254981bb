"""Work on whole archives: index files, and another encoder for all."""

from __future__ import annotations

import uuid

import numpy as np

from ml.index import open_index
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.retrieval import indexes, selectors, services
from portal.retrieval.indexes import Scope


@task(
    services.INDEX_KIND,
    title="Build search index",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def index_build(context: JobContext, *, encoder_id: str, lab_id: str) -> JobResult:
    """Write a new index file of what the database holds and name it as the newest snapshot."""
    scope = _scope(encoder_id, lab_id)
    source = selectors.index_source(scope)
    id_parts, vector_parts = [], []
    for ids, vectors in selectors.index_entries(scope, source):
        id_parts.append(ids)
        vector_parts.append(vectors)
        context.progress(sum(map(len, id_parts)), source.count, "reading")
    if not id_parts:
        return {"skipped": "no embeddings"}
    with context.scratch() as scratch:
        folder = scratch / "index"
        index = open_index(folder, dim=scope.encoder.dim, tag=indexes.encoder_tag(scope.encoder))
        index.build(
            np.concatenate(id_parts), np.concatenate(vector_parts), progress=context.progress
        )
        count = index.stats.count
        with context.effect():
            snapshot = services.index_publish(scope=scope, source=source, made=folder, count=count)
    return {"snapshot": str(snapshot.pk), "version": snapshot.version, "count": count}


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
        raise UserError("The encoder is gone.", code="encoder-gone") from error
    return Scope(encoder, uuid.UUID(lab_id))
