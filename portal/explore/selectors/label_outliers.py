"""Regions whose label differs from those of their nearest neighbours."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np

from ml.types import ArrayBool, ArrayI64
from portal.annotations.models import Label, Roi
from portal.explore.models import LabelConfirmation
from portal.explore.selectors.duplicates import rois_shown
from portal.explore.selectors.maps import VisibleMap, close_radius
from portal.labs.models import User

MIN_SUPPORT = 3
"""Smallest number of voting patients; two may both be wrong."""
MAX_AGREEMENT = 0.2  # share with the region's label; one in five may be chance
MIN_MAJORITY = 0.6  # share with the same other label


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Nearest region of another patient, and whether it has the suggested label."""

    roi: Roi
    is_for: bool


@dataclass(frozen=True, slots=True)
class LabelOutlier:
    """Region whose neighbours have another label, one vote per patient.

    Attributes:
        suggested: Label with the most votes.
        says: Votes for ``suggested``.
        agree: Votes for the region's own label, or one above or below it.
        support: Number of votes.
    """

    roi: Roi
    suggested: Label
    says: int
    agree: int
    support: int
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class LabelOutliers:
    """A page of regions whose neighbours have another label, clearest first.

    Attributes:
        total: Number of regions on all pages.
        looked_at: Labelled regions with enough close labelled neighbours.
        silent: Labelled regions without them.
        confirmed: Regions left out because a person confirmed the label.
        is_calibrated: Only close neighbours count; otherwise all do.
    """

    found: tuple[LabelOutlier, ...]
    total: int
    looked_at: int
    silent: int
    confirmed: int
    is_calibrated: bool


def label_outliers(user: User, visible: VisibleMap, *, start: int, count: int) -> LabelOutliers:
    """Page of visible regions that look unlike their label."""
    labels = list(Label.objects.filter(lab_id=visible.map.lab_id).order_by("position", "pk"))
    code = {label.pk: at for at, label in enumerate(labels)}
    numbers = visible.numbers
    of_row = np.full(_rows(visible), -1, dtype=np.int64)
    if len(numbers):
        of_row[numbers] = [code.get(row.label_id, -1) for row in visible.rows.values()]  # type: ignore[arg-type]
    labelled = numbers[of_row[numbers] >= 0]
    radius = close_radius(visible)
    near, votes = _voters(visible, labelled, of_row, radius)
    own_code = of_row[labelled]
    counts = _count_votes(of_row[near], votes, len(labels))
    alike = _related_labels(labels)
    support = votes.sum(axis=1)
    agree = (counts * alike[own_code]).sum(axis=1)
    other_counts = np.where(alike[own_code], 0, counts)
    suggested = other_counts.argmax(axis=1) if labels else np.zeros(len(own_code), dtype=np.int64)
    says = other_counts.max(axis=1, initial=0)
    has_votes = support >= MIN_SUPPORT
    doubt = has_votes & (agree <= MAX_AGREEMENT * support) & (says >= MIN_MAJORITY * support)
    confirmed = _confirmed_labels(visible)
    is_confirmed = np.array([pk in confirmed for pk in _keys(visible, labelled)], dtype=np.bool_)
    chosen = np.flatnonzero(doubt & ~is_confirmed)
    # shrink shares of few patients, as with one more on each side
    clear = (says[chosen] - agree[chosen]) / (support[chosen] + 2.0)
    chosen = chosen[np.lexsort((labelled[chosen], -clear))]
    page = chosen[start : start + count]
    roi_ids = {visible.rows[int(at)].roi_id for at in labelled[page]}
    roi_ids |= {visible.rows[int(at)].roi_id for row in page for at in near[row][votes[row]]}
    rois = rois_shown(user, roi_ids)
    outliers = []
    for row in page:
        roi = rois.get(visible.rows[int(labelled[row])].roi_id)
        if roi is None:
            continue
        neighbours = tuple(
            Neighbour(other, is_for=bool(of_row[at] == suggested[row]))
            for at in near[row][votes[row]]
            if (other := rois.get(visible.rows[int(at)].roi_id))
        )
        outliers.append(
            LabelOutlier(
                roi,
                labels[int(suggested[row])],
                int(says[row]),
                int(agree[row]),
                int(support[row]),
                neighbours,
            )
        )
    return LabelOutliers(
        tuple(outliers),
        total=len(chosen),
        looked_at=int(has_votes.sum()),
        silent=int((~has_votes).sum()),
        confirmed=int((doubt & is_confirmed).sum()),
        is_calibrated=bool(np.isfinite(radius)),
    )


def _rows(visible: VisibleMap) -> int:
    return len(bytes(visible.map.ids)) // 8  # int64


def _voters(
    visible: VisibleMap, rows: ArrayI64, of_row: ArrayI64, radius: float
) -> tuple[ArrayI64, ArrayBool]:
    """Nearest neighbours (M, k) of rows, and which of them vote.

    Neighbours vote that are visible, labelled, close, and the nearest of their patient.
    """
    n = len(of_row)
    width = len(bytes(visible.map.neighbours)) // (4 * n) if n else 0  # int32
    near = (
        np.frombuffer(bytes(visible.map.neighbours), "<i4").reshape(n, width)[rows].astype(np.int64)
    )
    distances = np.frombuffer(bytes(visible.map.distances), "<f4").reshape(n, width)[rows]
    patient = _patients(visible, n)
    votes = (near >= 0) & (of_row[near] >= 0) & (distances <= radius)
    neighbour_patients = patient[near]
    for at in range(1, width):
        before = (neighbour_patients[:, :at] == neighbour_patients[:, at : at + 1]) & votes[:, :at]
        votes[:, at] &= ~before.any(axis=1)
    return near, votes


def _patients(visible: VisibleMap, n: int) -> ArrayI64:
    numbers: dict[str, int] = {}
    patient_of_row = np.full(n, -1, dtype=np.int64)
    for at, row in visible.rows.items():
        patient = visible.canvases[row.canvas_id].patient
        patient_of_row[at] = numbers.setdefault(patient, len(numbers))
    return patient_of_row


def _count_votes(codes: ArrayI64, votes: ArrayBool, labels: int) -> ArrayI64:
    """Votes for each label, (M, labels)."""
    rows, _ = np.nonzero(votes)
    flat = np.bincount(rows * labels + codes[votes], minlength=len(codes) * labels)
    return flat.reshape(len(codes), labels)


def _related_labels(labels: list[Label]) -> ArrayBool:
    """Pairs of labels (L, L) that are equal, or one above the other."""
    at = {label.pk: number for number, label in enumerate(labels)}
    alike = np.eye(len(labels), dtype=np.bool_)
    for number, label in enumerate(labels):
        above, steps = label.parent_id, len(labels)
        while above in at and steps:
            alike[number, at[above]] = alike[at[above], number] = True
            above, steps = labels[at[above]].parent_id, steps - 1
    return alike


def _keys(visible: VisibleMap, rows: ArrayI64) -> list[tuple[uuid.UUID, uuid.UUID | None]]:
    return [(visible.rows[int(at)].roi_id, visible.rows[int(at)].label_id) for at in rows]


def _confirmed_labels(visible: VisibleMap) -> set[tuple[uuid.UUID, uuid.UUID]]:
    rows = LabelConfirmation.objects.filter(lab_id=visible.map.lab_id).order_by()
    return set(rows.values_list("roi_id", "label_id"))
