"""Writes: encoders, embeddings, index snapshots, and the jobs that make them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from ml.types import ArrayF32
from portal.annotations.models import Roi, RoiRevision
from portal.archive import storage
from portal.archive.models import Canvas
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.retrieval import indexes, selectors
from portal.retrieval.models import (
    CanvasStain,
    Embedding,
    Encoder,
    EncoderKind,
    IndexSnapshot,
)
from portal.retrieval.selectors import BACKFILL_KIND, EMBED_KIND, IndexSource, Scope

INDEX_KIND = "index_build"
DEFAULT_ENCODERS = {EncoderKind.HISTOLOGY: "default", EncoderKind.ENDOSCOPY: "endoscopy"}
"""The encoder of each kind, by its name in ``ml.roi``."""
REBUILD_LEAST = 500
"""So many changes since the last index file cause a new one, or a twentieth of the file if that is
more: what is newer is searched exactly, in about 1 ms for each 5,000."""
REBUILD_SHARE = 20
REBUILD_MOST = 10_000


@dataclass(frozen=True, slots=True)
class EncoderFacts:
    """What identifies an encoder, free of torch."""

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str


def encoder_register(*, facts: EncoderFacts, is_default: bool) -> Encoder:
    """The encoder's row, made on first sight. Called by workers, which alone can load encoders.

    The first default of a kind is the default at once. Another one that is to take its place is
    ``is_next`` until it has embedded every lab's ROIs (``encoder_switch_if_complete``); until then
    searches go on with the old one.
    """
    known = Encoder.objects.filter(
        name=facts.name, version=facts.version, config_hash=facts.config_hash
    ).first()
    if known is not None and (known.is_default or known.is_next or not is_default):
        return known
    with transaction.atomic():
        encoder, _ = Encoder.objects.get_or_create(
            name=facts.name,
            version=facts.version,
            config_hash=facts.config_hash,
            defaults={"dim": facts.dim, "kind": facts.kind},
        )
        if is_default:
            _promote(encoder)
    return encoder


def _promote(encoder: Encoder) -> None:
    """Make it its kind's default, or the next one where there is a default to search meanwhile."""
    is_first = selectors.encoder_default(encoder.kind) is None
    Encoder.objects.filter(is_next=True, kind=encoder.kind).update(is_next=False)
    encoder.is_default, encoder.is_next = is_first, not is_first
    encoder.save(update_fields=["is_default", "is_next", "updated_at"])
    # Before a kind had an encoder of its own, another kind's embedded its ROIs.
    if encoder.is_next or selectors.embeddings_of_other_kinds(encoder).exists():
        _backfill_submit(encoder)


def encoder_switch_if_complete() -> bool:
    """Make each next encoder the default of its kind if no job that embeds with it is left.

    Called whenever such a job ends. ROIs that could not be embedded (no tissue) hold up nothing.
    """
    switched = [_switch_if_complete(encoder) for encoder in Encoder.objects.filter(is_next=True)]
    return any(switched)


def _switch_if_complete(encoder: Encoder) -> bool:
    if selectors.backfill_jobs_open(encoder).exists():
        return False
    with transaction.atomic():
        if not Encoder.objects.filter(pk=encoder.pk, is_next=True).update(is_next=False):
            return False
        Encoder.objects.filter(is_default=True, kind=encoder.kind).update(is_default=False)
        Encoder.objects.filter(pk=encoder.pk).update(is_default=True)
        event_emit("encoder.switched", lab_id=None, payload={"encoder_id": str(encoder.pk)})
    return True


def _backfill_submit(encoder: Encoder) -> None:
    for lab in Lab.objects.all():
        job_submit(
            kind=BACKFILL_KIND,
            args={"lab_id": str(lab.pk), "encoder_id": str(encoder.pk)},
            lab=lab,
            user=None,
            target_name=f"All ROIs with {encoder}",
        )


# -- what happens to ROIs --------------------------------------------------------------------------


def roi_changed(
    *, roi_id: uuid.UUID, version: int, action: str, geometry_changed: bool
) -> Job | None:
    """An ROI was saved: mask vectors of an old outline at once, submit the embedding of the new.

    A change of name or label leaves the vector as it is. A restored ROI gets its vector back
    without work if its outline is the one that was embedded.
    """
    roi = Roi.objects.select_related("canvas", "lab").get(pk=roi_id)
    if geometry_changed:
        embeddings_supersede(roi_id=roi.pk)
    elif action != "restore" or _carry_over(roi):
        return None
    author = RoiRevision.objects.select_related("author").filter(roi=roi, version=version).first()
    return _embed_submit(
        roi, author.author if author else None, key=f"{EMBED_KIND}:{roi.pk}:{version}"
    )


def embeddings_supersede(*, roi_id: uuid.UUID) -> int:
    """Take the ROI's vectors out of every search, now. Returns how many there were."""
    current = Embedding.objects.filter(roi_id=roi_id, superseded_at__isnull=True)
    return int(current.update(superseded_at=timezone.now()))


def _carry_over(roi: Roi) -> bool:
    """Give the ROI a copy of its newest vector, if that is of its present outline."""
    encoder = selectors.encoder_default(selectors.encoder_kind_for(roi.canvas))
    newest = Embedding.objects.filter(roi=roi, encoder=encoder).order_by("-pk").first()
    if encoder is None or newest is None:
        return False
    seen = RoiRevision.objects.filter(roi=roi, version=newest.roi_version).first()
    if seen is None or seen.geometry != roi.geometry:
        return False
    _write_embedding(
        roi,
        encoder,
        vector=bytes(newest.vector),
        patch_count=newest.patch_count,
        seconds=newest.seconds,
    )
    return True


def embed_request(*, roi: Roi, user: User, is_retry: bool = False) -> Job:
    """The job that embeds this ROI: the one under way, or a new one where there is none.

    Args:
        is_retry: start again after a failure; needs the role annotator.
    Raises:
        ConflictError: the last attempt failed (``details``: job and reason) and this is no retry.
        ForbiddenError: a retry by a viewer.
    """
    if is_retry:
        require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    with transaction.atomic():
        Roi.objects.select_for_update().get(pk=roi.pk)
        job = selectors.embed_job(roi=roi)
        if job is not None and not job.has_ended:
            return job
        if job is not None and job.state != JobState.SUCCEEDED and not is_retry:
            raise ConflictError(
                f"This ROI could not be embedded: {job.error_message}",
                code="embedding-failed",
                details={"job": str(job.pk), "reason": job.error_code},
            )
        return _embed_submit(roi, user, key=None)


def embed_submit_missing(*, lab_id: uuid.UUID, encoder: Encoder) -> int:
    """Submit every ROI of the lab that the encoder has yet to embed; returns how many."""
    rois = selectors.rois_without_embedding(lab_id=lab_id, encoder=encoder)
    count = 0
    for roi in rois.select_related("canvas", "lab").iterator(chunk_size=500):
        key = f"{selectors.backfill_key(encoder)}{roi.pk}:{roi.version}"
        _embed_submit(roi, None, key=key)
        count += 1
    return count


def _embed_submit(roi: Roi, user: User | None, *, key: str | None) -> Job:
    return job_submit(
        kind=EMBED_KIND,
        args={"roi_id": str(roi.pk)},
        lab=roi.lab,
        user=user,
        target=roi,
        target_name=f"{roi.name or 'ROI'} on {roi.canvas.name}",
        idempotency_key=key,
    )


def stain_save(*, canvas: Canvas, method: str, estimate: dict[str, Any]) -> None:
    """Store a slide's stains. Two workers find the same; the first one's row stays."""
    CanvasStain.objects.get_or_create(canvas=canvas, method=method, defaults={"estimate": estimate})


# -- embeddings ------------------------------------------------------------------------------------


def embedding_save(
    *,
    roi_id: uuid.UUID,
    geometry: dict[str, Any],
    encoder: Encoder,
    vector: ArrayF32,
    patch_count: int,
    seconds: float,
) -> Embedding | None:
    """Write the vector of an outline, unless the ROI was deleted or redrawn in the meantime.

    Call inside ``effect()``. Emits ``roi.embedded``; submits a new index file where one is due.

    Returns:
        The row; None where the outline is no longer the ROI's.
    """
    with transaction.atomic():
        roi = Roi.objects.live().select_for_update().filter(pk=roi_id).first()
        if roi is None or roi.geometry != geometry:
            return None
        data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        return _write_embedding(roi, encoder, vector=data, patch_count=patch_count, seconds=seconds)


def _write_embedding(roi: Roi, encoder: Encoder, **fields: Any) -> Embedding:
    """Insert under the encoder's lock, so that ids become visible in their order."""
    Encoder.objects.select_for_update().get(pk=encoder.pk)
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    outdated = Q(encoder=encoder) & ~Q(roi_version=roi.version) | ~Q(encoder__kind=encoder.kind)
    current.filter(outdated).update(superseded_at=timezone.now())
    row, is_new = Embedding.objects.get_or_create(
        encoder=encoder,
        roi=roi,
        roi_version=roi.version,
        defaults={"lab_id": roi.lab_id, "canvas_id": roi.canvas_id, **fields},
    )
    if is_new:
        event_emit(
            "roi.embedded",
            lab_id=roi.lab_id,
            payload={"roi_id": str(roi.pk), "encoder_id": str(encoder.pk), "version": roi.version},
        )
        index_build_if_due(scope=Scope(encoder, roi.lab_id))
    return row


# -- index files -----------------------------------------------------------------------------------


def index_build_if_due(*, scope: Scope) -> Job | None:
    """Submit a new index file where much changed since the last one; one job a version."""
    snapshot = selectors.snapshot_latest(scope)
    in_file = snapshot.count if snapshot else 0
    limit = min(max(REBUILD_LEAST, in_file // REBUILD_SHARE), REBUILD_MOST)
    rows = Embedding.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
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


def index_publish(*, scope: Scope, source: IndexSource, made: Path, count: int) -> IndexSnapshot:
    """Put a finished index folder in place by one rename and name it. Call inside ``effect()``.

    A reader that knows an older snapshot goes on with its folder, which stays for an hour.
    """
    snapshots = IndexSnapshot.objects.filter(lab_id=scope.lab_id, encoder=scope.encoder)
    version = (snapshots.aggregate(last=Max("version"))["last"] or 0) + 1
    snapshot_id = uuid.uuid4()
    folder = indexes.scope_folder(scope) / str(snapshot_id)
    storage.folder_publish(made, folder)
    snapshot = IndexSnapshot.objects.create(
        pk=snapshot_id,
        lab_id=scope.lab_id,
        encoder=scope.encoder,
        version=version,
        path=storage.relative(folder),
        last_embedding_id=source.last_embedding_id,
        read_at=source.read_at,
        count=count,
    )
    newest = set(snapshots.order_by("-version").values_list("pk", flat=True)[:2])
    indexes.prune(scope, keep=newest)
    return snapshot
