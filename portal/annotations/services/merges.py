"""Merges of labels: previewed, executed and undone in one step each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from portal.annotations.events import RoiEvent
from portal.annotations.models import Label, LabelMerge, Roi, RoiAction, RoiRevision
from portal.annotations.rules import require_manage_labels
from portal.annotations.services.labels import label_parent_check
from portal.annotations.services.writing import event_payload, label_words, roi_revision
from portal.core.database.rows import rows_insert
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit, events_emit
from portal.core.text import name_key
from portal.labs.models import User

CHUNK = 500  # rows of one statement


@dataclass(frozen=True, slots=True)
class MergePreview:
    """Extent of a merge.

    Attributes:
        rois, canvases, cases: Live ones that have the label.
        locked: Number of locked ROIs among these; they are relabelled as well, since the label
            itself changes.
    """

    rois: int
    canvases: int
    cases: int
    locked: int


def label_merge_preview(*, source: Label, target: Label, user: User) -> MergePreview:
    """Extent of ``label_merge``; nothing is written. Raises the same errors."""
    _require_mergeable(source, target, user)
    rois = Roi.objects.live().not_hidden_from(user).filter(label=source).order_by()
    return MergePreview(
        rois=rois.count(),
        canvases=rois.values("canvas_id").distinct().count(),
        cases=rois.values("canvas__case_id").distinct().count(),
        locked=rois.filter(is_locked=True).count(),
    )


def label_merge(*, source: Label, target: Label, user: User) -> LabelMerge:
    """Give every ROI of ``source`` the label ``target``, deleted ones too, and retire ``source``.

    Each ROI gets a revision that names the merge; reviews are preserved, as no outline changed.
    Labels below the source move below the target. Emits ``roi.saved`` for each, and
    ``label.merged``.

    Raises:
        InvalidInputError: the target is in another lab, the label itself, or below it.
        ConflictError: one of them is retired. ForbiddenError.
    """
    _require_mergeable(source, target, user)
    with transaction.atomic():
        merge: LabelMerge = LabelMerge.objects.create(
            lab_id=source.lab_id,
            source=source,
            target=target,
            author=user,
            key=source.key,
            children=[str(pk) for (pk,) in source.children.values_list("pk")],
        )
        rois = Roi.all_objects.filter(label=source)
        _relabel(rois, target, user, merge)
        source.children.update(parent=target)
        source.retired_at, source.merged_into, source.key = timezone.now(), target, ""
        source.save()
        payload = {"label_id": str(source.pk), "into": str(target.pk), "user_id": str(user.pk)}
        event_emit("label.merged", lab_id=source.lab_id, payload=payload)
    return merge


@dataclass(frozen=True, slots=True)
class MergeUndone:
    """Number of ROIs changed back, and of those kept because they were edited since."""

    reverted: int
    skipped: int


def label_merge_undo(*, merge: LabelMerge, user: User) -> MergeUndone:
    """Restore the label, also on ROIs unchanged since; emits ``label.merge_undone``.

    It has its key again, if no other label has it now, and the labels below it that were not moved.

    Raises:
        ConflictError: undone already, or another label has its name now. ForbiddenError.
    """
    require_manage_labels(user, merge.lab_id)
    source = merge.source
    with transaction.atomic():
        now = LabelMerge.objects.select_for_update().get(pk=merge.pk)
        if now.undone_at is not None:
            raise ConflictError("This merge has already been undone.", code="merge-undone")
        other_labels = source.label_set.labels.exclude(pk=source.pk).filter(retired_at=None)
        if other_labels.filter(name_key=name_key(source.name)).exists():
            raise ConflictError(
                f'Another label is called "{source.name}" now. Rename it first.',
                code="label-exists",
            )
        source.retired_at = source.merged_into = None
        source.key = "" if other_labels.filter(key=now.key).exists() else now.key
        source.save()
        _children_return(now, source)
        merge_revisions = RoiRevision.objects.filter(label_merge=merge, label=merge.target)
        untouched = merge_revisions.filter(roi__version=F("version"))
        total, rois = (
            merge_revisions.count(),
            Roi.all_objects.filter(pk__in=untouched.values("roi_id")),
        )
        reverted = _relabel(rois, source, user, merge)
        LabelMerge.objects.filter(pk=merge.pk).update(undone_at=timezone.now())
        payload = {"label_id": str(source.pk), "user_id": str(user.pk)}
        event_emit("label.merge_undone", lab_id=source.lab_id, payload=payload)
    return MergeUndone(reverted=reverted, skipped=total - reverted)


def _require_mergeable(source: Label, target: Label, user: User) -> None:
    require_manage_labels(user, source.lab_id)
    if target.lab_id != source.lab_id:
        raise InvalidInputError("into: no such label in this lab.", code="unknown-label")
    above: Label | None = target
    while above is not None:
        if above.pk == source.pk:
            raise InvalidInputError(
                "into: a label cannot be merged into itself or into one below it."
            )
        above = above.parent
    if source.retired_at is not None or target.retired_at is not None:
        raise ConflictError("A retired label cannot be merged.", code="label-retired")


def _children_return(merge: LabelMerge, source: Label) -> None:
    """Move children back below the source, except those moved since, or now above it."""
    for child in merge.target.children.filter(pk__in=merge.children):
        child.parent = source
        try:
            label_parent_check(child)
        except InvalidInputError:
            continue
        child.save(update_fields=["parent", "updated_at"])


def _relabel(rois: QuerySet[Roi], label: Label, user: User, merge: LabelMerge) -> int:
    """Give the ROIs the label, with a revision and an event each; how many."""
    words, count = label_words(merge.lab_id), 0
    for part in _parts(rois):
        now = timezone.now()
        for roi in part:
            roi.label, roi.version, roi.updated_at = label, roi.version + 1, now
        Roi.all_objects.filter(pk__in=[roi.pk for roi in part]).update(
            label=label, version=F("version") + 1, updated_at=now
        )
        revisions = [roi_revision(roi, RoiAction.UPDATE, user, words=words) for roi in part]
        for revision in revisions:
            revision.label_merge = merge
        rows_insert(revisions)
        payloads = [event_payload(roi, RoiAction.UPDATE, geometry_changed=False) for roi in part]
        events_emit(RoiEvent.SAVED, lab_id=merge.lab_id, payloads=payloads)
        count += len(part)
    return count


def _parts(rois: QuerySet[Roi]) -> Iterator[list[Roi]]:
    """The rows as they are now, locked in the order of their ids, a part at a time."""
    ids: list[uuid.UUID] = list(rois.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), CHUNK):
        chunk_ids = ids[start : start + CHUNK]
        rows = Roi.all_objects.select_for_update().filter(pk__in=chunk_ids).order_by("pk")
        yield list(rows.defer("foreign").prefetch_related("canvas"))
