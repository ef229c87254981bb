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


def label_outliers(user: User, seen: VisibleMap, *, start: int, count: int) -> LabelOutliers:
    """Page of visible regions that look unlike their label."""
    labels = list(Label.objects.filter(lab_id=seen.map.lab_id).order_by("position", "pk"))
    code = {label.pk: at for at, label in enumerate(labels)}
    numbers = seen.numbers
    of_row = np.full(_rows(seen), -1, dtype=np.int64)
    if len(numbers):
        of_row[numbers] = [code.get(row.label_id, -1) for row in seen.rows.values()]  # type: ignore[arg-type]
    labelled = numbers[of_row[numbers] >= 0]
    radius = close_radius(seen)
    near, votes = _voters(seen, labelled, of_row, radius)
    own = of_row[labelled]
    counts = _counted(of_row[near], votes, len(labels))
    alike = _related(labels)
    support = votes.sum(axis=1)
    agree = (counts * alike[own]).sum(axis=1)
    others = np.where(alike[own], 0, counts)
    suggested = others.argmax(axis=1) if labels else np.zeros(len(own), dtype=np.int64)
    says = others.max(axis=1, initial=0)
    has_votes = support >= MIN_SUPPORT
    doubt = has_votes & (agree <= MAX_AGREEMENT * support) & (says >= MIN_MAJORITY * support)
    confirmed = _confirmed(seen)
    is_confirmed = np.array([pk in confirmed for pk in _keys(seen, labelled)], dtype=np.bool_)
    chosen = np.flatnonzero(doubt & ~is_confirmed)
    # shrink shares of few patients, as with one more on each side
    clear = (says[chosen] - agree[chosen]) / (support[chosen] + 2.0)
    chosen = chosen[np.lexsort((labelled[chosen], -clear))]
    page = chosen[start : start + count]
    wanted = {seen.rows[int(at)].roi_id for at in labelled[page]}
    wanted |= {seen.rows[int(at)].roi_id for row in page for at in near[row][votes[row]]}
    rois = rois_shown(user, wanted)
    found = []
    for row in page:
        roi = rois.get(seen.rows[int(labelled[row])].roi_id)
        if roi is None:
            continue
        neighbours = tuple(
            Neighbour(other, is_for=bool(of_row[at] == suggested[row]))
            for at in near[row][votes[row]]
            if (other := rois.get(seen.rows[int(at)].roi_id))
        )
        found.append(
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
        tuple(found),
        total=len(chosen),
        looked_at=int(has_votes.sum()),
        silent=int((~has_votes).sum()),
        confirmed=int((doubt & is_confirmed).sum()),
        is_calibrated=bool(np.isfinite(radius)),
    )


def _rows(seen: VisibleMap) -> int:
    return len(bytes(seen.map.ids)) // 8  # int64


def _voters(
    seen: VisibleMap, rows: ArrayI64, of_row: ArrayI64, radius: float
) -> tuple[ArrayI64, ArrayBool]:
    """Nearest neighbours (M, k) of rows, and which of them vote.

    Neighbours vote that are visible, labelled, close, and the nearest of their patient.
    """
    n = len(of_row)
    width = len(bytes(seen.map.neighbours)) // (4 * n) if n else 0  # int32
    near = np.frombuffer(bytes(seen.map.neighbours), "<i4").reshape(n, width)[rows].astype(np.int64)
    far = np.frombuffer(bytes(seen.map.distances), "<f4").reshape(n, width)[rows]
    patient = _patients(seen, n)
    votes = (near >= 0) & (of_row[near] >= 0) & (far <= radius)
    whose = patient[near]
    for at in range(1, width):
        before = (whose[:, :at] == whose[:, at : at + 1]) & votes[:, :at]
        votes[:, at] &= ~before.any(axis=1)
    return near, votes


def _patients(seen: VisibleMap, n: int) -> ArrayI64:
    numbers: dict[str, int] = {}
    found = np.full(n, -1, dtype=np.int64)
    for at, row in seen.rows.items():
        patient = seen.canvases[row.canvas_id].patient
        found[at] = numbers.setdefault(patient, len(numbers))
    return found


def _counted(codes: ArrayI64, votes: ArrayBool, labels: int) -> ArrayI64:
    """Votes for each label, (M, labels)."""
    rows, _ = np.nonzero(votes)
    flat = np.bincount(rows * labels + codes[votes], minlength=len(codes) * labels)
    return flat.reshape(len(codes), labels)


def _related(labels: list[Label]) -> ArrayBool:
    """Pairs of labels (L, L) that are equal, or one above the other."""
    at = {label.pk: number for number, label in enumerate(labels)}
    alike = np.eye(len(labels), dtype=np.bool_)
    for number, label in enumerate(labels):
        above, steps = label.parent_id, len(labels)
        while above in at and steps:
            alike[number, at[above]] = alike[at[above], number] = True
            above, steps = labels[at[above]].parent_id, steps - 1
    return alike


def _keys(seen: VisibleMap, rows: ArrayI64) -> list[tuple[uuid.UUID, uuid.UUID | None]]:
    return [(seen.rows[int(at)].roi_id, seen.rows[int(at)].label_id) for at in rows]


def _confirmed(seen: VisibleMap) -> set[tuple[uuid.UUID, uuid.UUID]]:
    rows = LabelConfirmation.objects.filter(lab_id=seen.map.lab_id).order_by()
    return set(rows.values_list("roi_id", "label_id"))
