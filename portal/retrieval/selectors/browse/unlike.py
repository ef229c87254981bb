"""Regions that look unlike their label: what the nearest regions of other patients are labelled."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np

from ml.types import ArrayBool, ArrayI64
from portal.annotations.models import Label, Roi
from portal.labs.models import User
from portal.retrieval.models import LabelConfirmation
from portal.retrieval.selectors.browse.duplicates import rois_shown
from portal.retrieval.selectors.browse.maps import SeenMap, close_radius

LEAST_SUPPORT = 3
"""Other patients that have to speak: two may both be wrong."""
MOST_AGREE = 0.2  # of them share the region's label: one in five may be chance
LEAST_SAY = 0.6  # of them say the same other label: with less, the neighbours disagree


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The nearest region of another patient, and whether it carries what most say."""

    roi: Roi
    is_for: bool


@dataclass(frozen=True, slots=True)
class UnlikeLabel:
    """A region whose neighbours are labelled differently, one vote for each patient.

    Attributes:
        suggested: what most say. says, agree, support: patients that say it, that carry the
            region's own label (or one above or below it), and that speak at all.
    """

    roi: Roi
    suggested: Label
    says: int
    agree: int
    support: int
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class UnlikeFound:
    """A page of them, the clearest first.

    Attributes:
        total: of all pages. looked_at: labelled regions whose neighbours speak.
        silent: labelled regions without enough labelled neighbours that are close.
        confirmed: left out, as somebody said that the label is right.
        is_calibrated: only close neighbours speak; else all do.
    """

    found: tuple[UnlikeLabel, ...]
    total: int
    looked_at: int
    silent: int
    confirmed: int
    is_calibrated: bool


def unlike_their_label(user: User, seen: SeenMap, *, start: int, count: int) -> UnlikeFound:
    """A page of regions that look unlike their label, of those that the person may see now."""
    labels = list(Label.objects.filter(lab_id=seen.map.lab_id).order_by("position", "pk"))
    code = {label.pk: at for at, label in enumerate(labels)}
    numbers = seen.numbers
    of_row = np.full(_rows(seen), -1, dtype=np.int64)
    if len(numbers):
        of_row[numbers] = [code.get(row.label_id, -1) for row in seen.rows.values()]  # type: ignore[arg-type]
    labelled = numbers[of_row[numbers] >= 0]
    radius = close_radius(seen)
    near, voice = _voices(seen, labelled, of_row, radius)
    own = of_row[labelled]
    counts = _counted(of_row[near], voice, len(labels))
    alike = _alike(labels)
    support = voice.sum(axis=1)
    agree = (counts * alike[own]).sum(axis=1)
    others = np.where(alike[own], 0, counts)
    suggested = others.argmax(axis=1) if labels else np.zeros(len(own), dtype=np.int64)
    says = others.max(axis=1, initial=0)
    speak = support >= LEAST_SUPPORT
    doubt = speak & (agree <= MOST_AGREE * support) & (says >= LEAST_SAY * support)
    confirmed = _confirmed(seen)
    told = np.array([pk in confirmed for pk in _keys(seen, labelled)], dtype=np.bool_)
    chosen = np.flatnonzero(doubt & ~told)
    # a share of few counts for less: as if there were one more patient on each side
    clear = (says[chosen] - agree[chosen]) / (support[chosen] + 2.0)
    chosen = chosen[np.lexsort((labelled[chosen], -clear))]
    page = chosen[start : start + count]
    wanted = {seen.rows[int(at)].roi_id for at in labelled[page]}
    wanted |= {seen.rows[int(at)].roi_id for row in page for at in near[row][voice[row]]}
    rois = rois_shown(user, wanted)
    found = []
    for row in page:
        roi = rois.get(seen.rows[int(labelled[row])].roi_id)
        if roi is None:
            continue
        neighbours = tuple(
            Neighbour(other, is_for=bool(of_row[at] == suggested[row]))
            for at in near[row][voice[row]]
            if (other := rois.get(seen.rows[int(at)].roi_id))
        )
        found.append(
            UnlikeLabel(
                roi,
                labels[int(suggested[row])],
                int(says[row]),
                int(agree[row]),
                int(support[row]),
                neighbours,
            )
        )
    return UnlikeFound(
        tuple(found),
        total=len(chosen),
        looked_at=int(speak.sum()),
        silent=int((~speak).sum()),
        confirmed=int((doubt & told).sum()),
        is_calibrated=bool(np.isfinite(radius)),
    )


def _rows(seen: SeenMap) -> int:
    return len(bytes(seen.map.ids)) // 8  # int64


def _voices(
    seen: SeenMap, rows: ArrayI64, of_row: ArrayI64, radius: float
) -> tuple[ArrayI64, ArrayBool]:
    """Neighbours (M, k) of rows, the nearest first, and which speak: seen, labelled, close, and
    the nearest of their patient."""
    n = len(of_row)
    width = len(bytes(seen.map.neighbours)) // (4 * n) if n else 0  # int32
    near = np.frombuffer(bytes(seen.map.neighbours), "<i4").reshape(n, width)[rows].astype(np.int64)
    far = np.frombuffer(bytes(seen.map.distances), "<f4").reshape(n, width)[rows]
    patient = _patients(seen, n)
    voice = (near >= 0) & (of_row[near] >= 0) & (far <= radius)
    whose = patient[near]
    for at in range(1, width):
        before = (whose[:, :at] == whose[:, at : at + 1]) & voice[:, :at]
        voice[:, at] &= ~before.any(axis=1)
    return near, voice


def _patients(seen: SeenMap, n: int) -> ArrayI64:
    numbers: dict[str, int] = {}
    found = np.full(n, -1, dtype=np.int64)
    for at, row in seen.rows.items():
        patient = seen.canvases[row.canvas_id].patient
        found[at] = numbers.setdefault(patient, len(numbers))
    return found


def _counted(codes: ArrayI64, voice: ArrayBool, labels: int) -> ArrayI64:
    """(M, labels): voices for each label."""
    rows, _ = np.nonzero(voice)
    flat = np.bincount(rows * labels + codes[voice], minlength=len(codes) * labels)
    return flat.reshape(len(codes), labels)


def _alike(labels: list[Label]) -> ArrayBool:
    """(L, L): the same, or one is above the other."""
    at = {label.pk: number for number, label in enumerate(labels)}
    alike = np.eye(len(labels), dtype=np.bool_)
    for number, label in enumerate(labels):
        above, steps = label.parent_id, len(labels)
        while above in at and steps:
            alike[number, at[above]] = alike[at[above], number] = True
            above, steps = labels[at[above]].parent_id, steps - 1
    return alike


def _keys(seen: SeenMap, rows: ArrayI64) -> list[tuple[uuid.UUID, uuid.UUID | None]]:
    return [(seen.rows[int(at)].roi_id, seen.rows[int(at)].label_id) for at in rows]


def _confirmed(seen: SeenMap) -> set[tuple[uuid.UUID, uuid.UUID]]:
    rows = LabelConfirmation.objects.filter(lab_id=seen.map.lab_id).order_by()
    return set(rows.values_list("roi_id", "label_id"))
