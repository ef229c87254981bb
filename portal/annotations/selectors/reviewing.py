"""Reads of review: a lab's rules, and whose work an ROI is."""

from __future__ import annotations

import uuid

from portal.annotations.models import ReviewRules, Roi, RoiRevision
from portal.labs.models import User


def review_rules_of(lab_id: uuid.UUID) -> ReviewRules:
    """Review rules of the lab; unsaved defaults if none are stored."""
    rules: ReviewRules | None = ReviewRules.objects.filter(lab_id=lab_id).first()
    return rules or ReviewRules(lab_id=lab_id)


def is_own(roi: Roi, user: User) -> bool:
    """Return whether the person drew the ROI, or gave it another outline or label in any revision.

    Not by merging two labels of the lab, which says nothing about this ROI.
    """
    if roi.created_by_id == user.pk:
        return True
    rows = RoiRevision.objects.filter(roi=roi).order_by()
    versions = list(rows.filter(author=user, label_merge=None).values_list("version", flat=True))
    compared = rows.filter(version__in={*versions, *(version - 1 for version in versions)})
    reviewed = compared.values_list("version", "geometry", "track", "label_id")
    contents = {version: fields for version, *fields in reviewed}
    return any(contents[version] != contents.get(version - 1) for version in versions)
