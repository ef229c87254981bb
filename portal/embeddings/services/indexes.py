"""Build, publish and delete index files."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max

from ml.index.protocol import IndexStats
from portal.archive.storage import files as storage
from portal.embeddings import indexes
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot
from portal.embeddings.selectors.index_files.snapshots import IndexSource, snapshot_latest
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab

INDEX_KIND = "index_build"
MIN_REBUILD = 500
"""Number of changes that cause a new index file, or a twentieth of the file if that is more. Newer
vectors are searched exactly, in about 1 ms for each 5,000."""
REBUILD_SHARE = 20  # a twentieth
MAX_REBUILD = 10_000  # 2 ms of exact search


def index_build_if_due(*, scope: Scope) -> Job | None:
    """Submit a new index file after enough changes; one job per version."""
    snapshot = snapshot_latest(scope)
    in_file = snapshot.count if snapshot else 0
    limit = min(max(MIN_REBUILD, in_file // REBUILD_SHARE), MAX_REBUILD)
    rows = Embedding.all_objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    current = rows.filter(superseded_at__isnull=True)
    if snapshot is None:
        changes = current.count()
    else:
        last = snapshot.last_embedding_id
        superseded = rows.filter(pk__lte=last, superseded_at__gte=snapshot.read_at)
        changes = current.filter(pk__gt=last).count() + superseded.count()
    if changes < limit:
        return None
    return index_build_submit(scope=scope)


def index_build_submit(*, scope: Scope) -> Job:
    """Submit the build of the scope's next index file, unless one is running."""
    return job_submit(
        kind=INDEX_KIND,
        args={"encoder_id": str(scope.encoder.pk), "lab_id": str(scope.lab_id)},
        lab=Lab.objects.get(pk=scope.lab_id),
        user=None,
        target_name=f"Search index of {scope.encoder}",
        is_unique=True,
    )


def indexes_delete(*, lab_id: uuid.UUID | None = None) -> int:
    """Delete the index files of a lab, or of all labs, and submit new ones where due.

    Files are removed on commit, indexes on a server at once: if the server is unreachable, nothing
    is deleted. Until new ones exist, searches read the database.

    Returns:
        Number of submitted jobs.
    Raises:
        IndexUnreachableError: The server does not answer.
    """
    labs = list(Lab.objects.filter(pk=lab_id) if lab_id else Lab.objects.all())
    scopes = [Scope(encoder, lab.pk) for encoder in Encoder.objects.all() for lab in labs]
    for scope in scopes:
        indexes.server_drop(scope)
    IndexSnapshot.objects.filter(lab__in=labs).delete()
    for scope in scopes:
        transaction.on_commit(partial(storage.folder_drop, indexes.scope_folder(scope)))
    return sum(index_build_if_due(scope=scope) is not None for scope in scopes)


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """A finished index without a snapshot.

    Attributes:
        source: Embeddings that it was built from.
        seconds: Time from the first vector read to the last byte written.
    """

    source: IndexSource
    stats: IndexStats
    seconds: float


def index_publish(*, scope: Scope, built: BuiltIndex, built_folder: Path) -> IndexSnapshot:
    """Rename a finished index folder into place and create its snapshot. Call inside ``effect()``.

    A reader of an older snapshot keeps its folder, which stays for an hour.
    """
    snapshot_id = uuid.uuid4()
    folder = indexes.scope_folder(scope) / str(snapshot_id)
    size_bytes = sum(file.stat().st_size for file in built_folder.rglob("*") if file.is_file())
    storage.folder_publish(built_folder, folder)
    fields = {"pk": snapshot_id, "path": storage.relative(folder), "size_bytes": size_bytes}
    return _snapshot_create(scope, built, **fields)


def index_name(*, scope: Scope, built: BuiltIndex, name: str) -> IndexSnapshot:
    """Create the snapshot of an index that was filled on the server. Call inside ``effect()``.

    A reader of the previous snapshot continues with it; older ones are removed.
    """
    return _snapshot_create(scope, built, path=name, engine=indexes.MILVUS)


def index_version_next(scope: Scope) -> int:
    """Version of the scope's next snapshot."""
    snapshots = IndexSnapshot.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    return (snapshots.aggregate(last=Max("version"))["last"] or 0) + 1


def _snapshot_create(scope: Scope, built: BuiltIndex, **fields: Any) -> IndexSnapshot:
    snapshots = IndexSnapshot.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    source, stats = built.source, built.stats
    snapshot = IndexSnapshot.objects.create(
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        version=index_version_next(scope),
        last_embedding_id=source.last_embedding_id,
        read_at=source.read_at,
        count=stats.count,
        kind=stats.kind,
        recall=stats.recall,
        seconds=built.seconds,
        **fields,
    )
    indexes.prune(scope, keep=snapshots.order_by("-version")[:2])
    return snapshot
