"""Writes of index files: when one is due, and how it is put in place."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max

from ml.index import IndexStats
from portal.archive import storage
from portal.jobs.models import ENDED, Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab
from portal.retrieval import indexes, selectors
from portal.retrieval.indexes import Scope
from portal.retrieval.models import (
    Embedding,
    Encoder,
    IndexSnapshot,
    RegionMap,
)
from portal.retrieval.selectors import IndexSource

INDEX_KIND = "index_build"
REBUILD_LEAST = 500
"""So many changes since the last index file cause a new one, or a twentieth of the file if that is
more: what is newer is searched exactly, in about 1 ms for each 5,000."""
REBUILD_SHARE = 20  # one twentieth
REBUILD_MOST = 10_000  # 2 ms of exact search


def index_build_if_due(*, scope: Scope) -> Job | None:
    """Submit a new index file where much changed since the last one; one job for each version."""
    snapshot = selectors.snapshot_latest(scope)
    in_file = snapshot.count if snapshot else 0
    limit = min(max(REBUILD_LEAST, in_file // REBUILD_SHARE), REBUILD_MOST)
    rows = Embedding.everything.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    current = rows.filter(superseded_at__isnull=True)
    if snapshot is None:
        changes = current.count()
    else:
        last = snapshot.last_embedding_id
        gone = rows.filter(pk__lte=last, superseded_at__gte=snapshot.read_at)
        changes = current.filter(pk__gt=last).count() + gone.count()
    if changes < limit:
        return None
    return index_build_submit(scope=scope, version=snapshot.version + 1 if snapshot else 1)


def index_build_submit(*, scope: Scope, version: int) -> Job:
    """Submit the build of the scope's index file ``version``."""
    return job_submit(
        kind=INDEX_KIND,
        args={"encoder_id": str(scope.encoder.pk), "lab_id": str(scope.lab_id)},
        lab=Lab.objects.get(pk=scope.lab_id),
        user=None,
        target_name=f"Search index of {scope.encoder}",
        idempotency_key=f"{INDEX_KIND}:{scope.encoder.pk}:{version}",
    )


def indexes_forget(*, lab_id: uuid.UUID | None = None) -> int:
    """Forget the index files of a lab (of all labs), and submit new ones where they are due.

    Its maps go as well: they are drawn anew when somebody asks.

    The files go on commit, what is on a server at once: where it cannot be asked, nothing is
    forgotten. Until there are new ones, searches read the database. Returns how many were
    submitted.

    Raises:
        IndexUnreachableError: the server does not answer.
    """
    labs = list(Lab.objects.filter(pk=lab_id) if lab_id else Lab.objects.all())
    scopes = [Scope(encoder, lab.pk) for encoder in Encoder.objects.all() for lab in labs]
    for scope in scopes:
        indexes.server_drop(scope)
    IndexSnapshot.objects.filter(lab__in=labs).delete()
    RegionMap.objects.filter(lab__in=labs).delete()
    builds = Job.objects.filter(lab__in=labs, kind=INDEX_KIND, state__in=ENDED)
    builds.update(idempotency_key=None)  # versions begin at 1 again
    for scope in scopes:
        transaction.on_commit(partial(storage.folder_drop, indexes.scope_folder(scope)))
    return sum(index_build_if_due(scope=scope) is not None for scope in scopes)


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that is whole and that no snapshot names yet.

    Attributes:
        source: what it was built from. seconds: from the first vector read to the last byte.
    """

    source: IndexSource
    stats: IndexStats
    seconds: float


def index_publish(*, scope: Scope, built: BuiltIndex, made: Path) -> IndexSnapshot:
    """Put a finished index folder in place by one rename and name it. Call inside ``effect()``.

    A reader that knows an older snapshot continues with its folder, which stays for an hour.
    """
    snapshot_id = uuid.uuid4()
    folder = indexes.scope_folder(scope) / str(snapshot_id)
    size_bytes = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
    storage.folder_publish(made, folder)
    named = {"pk": snapshot_id, "path": storage.relative(folder), "size_bytes": size_bytes}
    return _snapshot_create(scope, built, **named)


def index_name(*, scope: Scope, built: BuiltIndex, name: str) -> IndexSnapshot:
    """Name an index that was filled on the server. Call inside ``effect()``.

    A reader that knows the snapshot before continues with it; what is older goes.
    """
    return _snapshot_create(scope, built, path=name, engine=indexes.QDRANT)


def index_version_next(scope: Scope) -> int:
    """The version of the scope's next snapshot."""
    snapshots = IndexSnapshot.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    return (snapshots.aggregate(last=Max("version"))["last"] or 0) + 1


def _snapshot_create(scope: Scope, built: BuiltIndex, **named: Any) -> IndexSnapshot:
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
        **named,
    )
    indexes.prune(scope, keep=snapshots.order_by("-version")[:2])
    return snapshot
