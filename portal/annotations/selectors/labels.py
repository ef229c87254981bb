"""Reads of labels, and of the labs they belong to. All begin with what the person may see."""

from __future__ import annotations

import uuid

from django.db.models import Count, QuerySet

from portal.annotations.models import Label, LabelSet
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


def labels_with_use(lab: Lab) -> QuerySet[Label]:
    """The lab's labels with ``roi_count``. Call with a lab found visible."""
    return (
        Label.objects.filter(lab=lab).annotate(roi_count=Count("roi")).order_by("position", "name")
    )


def label_get(user: User, label_id: uuid.UUID) -> Label:
    """One label; ``NotFoundError`` also where it is another lab's."""
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
    mine = Membership.objects.of(user).values("lab_id")
    return Lab.objects.filter(pk__in=mine).exclude(pk__in=LabelSet.objects.values("lab_id"))
