"""Reads of labels and of their labs, limited to those visible to the user."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from django.db.models import Count, Q, QuerySet

from portal.annotations.colors import too_close
from portal.annotations.models import Label, LabelMerge, LabelSet, LabelSetVersion, Roi
from portal.annotations.properties import PropertyType, types_of
from portal.core.errors import InvalidInputError, NotFoundError
from portal.labs.models import Lab, Membership, User


def label_list(user: User, *, lab_id: uuid.UUID | None = None) -> QuerySet[Label]:
    """The labels of the person's labs, in their order; or those of one lab.

    Of a lab that shares cases, those that their regions carry.
    """
    if lab_id is None:
        labels = Label.objects.owned_by(user)
    else:
        labels = Label.objects.visible_to(user).filter(lab_id=lab_id)
    return labels.order_by("lab_id", "position", "name")


def labels_with_use(user: User, lab: Lab) -> QuerySet[Label]:
    """Labels of a visible lab, with the number of ROIs visible to the user as ``roi_count``."""
    hidden = Roi.all_objects.hidden_from(user).order_by().values("pk")
    counted = Q(roi__deleted_at=None) & ~Q(roi__in=hidden)
    return (
        Label.objects.filter(lab=lab)
        .select_related("merged_into")
        .annotate(roi_count=Count("roi", filter=counted))
        .order_by("position", "name")
    )


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A label and its place in the tree.

    Attributes:
        depth: 0 at the top.
    """

    label: Label
    depth: int


@dataclass(frozen=True, slots=True)
class ColorClash:
    """Another label of a similar colour in the same images.

    Attributes:
        vision: The colour vision for which the colours are most similar.
        images: Number of images with regions of both labels.
    """

    other: Label
    vision: str
    images: int


def label_tree(labels: Iterable[Label]) -> list[LabelRow]:
    """Labels in their order, each followed by those below it; retired ones are left out."""
    active = [label for label in labels if label.retired_at is None]
    ids = {label.pk for label in active}
    below: defaultdict[uuid.UUID | None, list[Label]] = defaultdict(list)
    for label in active:
        below[label.parent_id if label.parent_id in ids else None].append(label)
    ordered: list[LabelRow] = []

    def walk(parent: uuid.UUID | None, depth: int) -> None:
        for label in below[parent]:
            ordered.append(LabelRow(label, depth))
            walk(label.pk, depth + 1)

    walk(None, 0)
    return ordered


def color_clashes(user: User, labels: Sequence[Label]) -> dict[uuid.UUID, ColorClash]:
    """Labels whose colour is hard to tell from that of another label in the same image.

    Only images in which the person sees regions of both labels count.

    Returns:
        By id of a label, its first clash.
    """
    close = [
        (labels[i], labels[j], vision)
        for i, j, vision in too_close([lab_label.color for lab_label in labels])
    ]
    if not close:
        return {}
    ids = {label.pk for first, second, _ in close for label in (first, second)}
    used = Roi.objects.visible_to(user).live().filter(label__in=ids).order_by()
    canvases: defaultdict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
    for label_id, canvas_id in used.values_list("label_id", "canvas_id").distinct():
        canvases[label_id].add(canvas_id)
    clashes: dict[uuid.UUID, ColorClash] = {}
    for first, second, vision in close:
        images = len(canvases[first.pk] & canvases[second.pk])
        if images:
            clashes.setdefault(first.pk, ColorClash(second, vision, images))
            clashes.setdefault(second.pk, ColorClash(first, vision, images))
    return clashes


class FrozenLabel(TypedDict):
    """A label as a published version keeps it."""

    id: str
    name: str
    color: str
    key: str
    parent: str | None


def labels_frozen(label_set: LabelSet) -> list[FrozenLabel]:
    """The labels of a set as a version keeps them: plain values, in their order."""
    return [
        {
            "id": str(row.label.pk),
            "name": row.label.name,
            "color": row.label.color,
            "key": row.label.key,
            "parent": str(row.label.parent_id) if row.label.parent_id else None,
        }
        for row in label_tree(label_set.labels.order_by("position", "name"))
    ]


def label_versions(user: User, *, lab_id: uuid.UUID | None = None) -> QuerySet[LabelSetVersion]:
    """Published versions of label sets, newest first."""
    versions = LabelSetVersion.objects.owned_by(user).select_related("published_by")
    if lab_id is not None:
        versions = versions.filter(lab_id=lab_id)
    return versions.order_by("-created_at", "id")


def label_version_now(lab_id: uuid.UUID) -> int | None:
    """The number of the version that was published last; None if there is none."""
    version: int | None = (
        LabelSetVersion.objects.filter(lab_id=lab_id)
        .order_by("-created_at")
        .values_list("number", flat=True)
        .first()
    )
    return version


def property_types_of(lab_id: uuid.UUID) -> list[PropertyType]:
    """The properties that the lab keeps; empty if it has set none."""
    sets = LabelSet.objects.filter(lab_id=lab_id).order_by("-is_default", "created_at")
    return types_of(sets.values_list("property_types", flat=True).first() or ())


def label_merge_get(user: User, merge_id: uuid.UUID) -> LabelMerge:
    """Merge in one of the user's labs; ``NotFoundError`` if it is not visible."""
    merge: LabelMerge | None = (
        LabelMerge.objects.owned_by(user)
        .select_related("source__label_set", "target", "lab")
        .filter(pk=merge_id)
        .first()
    )
    if merge is None:
        raise NotFoundError("There is no such merge.")
    return merge


def merges_of(lab: Lab) -> QuerySet[LabelMerge]:
    """The lab's merges that can be undone, newest first. Call with a lab found visible."""
    merges = LabelMerge.objects.filter(lab=lab, undone_at=None)
    return merges.select_related("source", "target", "author").order_by("-created_at")


def label_get(user: User, label_id: uuid.UUID) -> Label:
    """A label; ``NotFoundError`` also for another lab's."""
    label: Label | None = (
        Label.objects.visible_to(user).select_related("lab").filter(pk=label_id).first()
    )
    if label is None:
        raise NotFoundError("There is no such label.")
    return label


def label_of_lab(lab_id: uuid.UUID, label_id: uuid.UUID | None) -> Label | None:
    """The label to put on an ROI of this lab; ``InvalidInputError`` where the lab has none such."""
    if label_id is None:
        return None
    label: Label | None = Label.objects.filter(lab_id=lab_id, pk=label_id).first()
    if label is None:
        raise InvalidInputError(
            f"label: no label {label_id} in this lab. GET /api/v1/labels/ lists them.",
            code="unknown-label",
        )
    return label


def labs_without_labels(user: User) -> QuerySet[Lab]:
    """The person's labs that have no label set yet."""
    memberships = Membership.objects.of(user).values("lab_id")
    return Lab.objects.filter(pk__in=memberships).exclude(pk__in=LabelSet.objects.values("lab_id"))
