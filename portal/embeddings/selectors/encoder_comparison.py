"""Evaluation of a new encoder on a portal's own labels, before it becomes the default."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np

from ml.types import ArrayF32, ArrayF64, ArrayI64
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import patient_of

K = 10
"""Number of nearest ROIs compared: as many as a page shows without scrolling."""
MAX_ROIS = 4_000
"""Largest number of compared ROIs, newest first: their distances take 130 MB."""
_RESAMPLES = 1_000
"""Number of bootstrap samples; the interval then varies by less than the shown precision."""
_LEVEL = (2.5, 97.5)
"""Percentiles of the 95 % interval."""


@dataclass(frozen=True, slots=True)
class EncoderComparison:
    """Comparison of two encoders over the labelled ROIs that both have embedded.

    Attributes:
        rois, patients: Compared ROIs that share their label with an ROI of another patient, and
            their patients.
        chance: Share of the same label among other patients' ROIs.
        current, following: Share of the same label among the ``K`` nearest of other patients.
        gain, gain_low, gain_high: ``following`` minus ``current``, with its 95 % interval over
            resampled patients.
        in_common: Share of the ``K`` nearest that both encoders find.
    """

    rois: int
    patients: int
    chance: float
    current: float
    following: float
    gain: float
    gain_low: float
    gain_high: float
    in_common: float


@dataclass(frozen=True, slots=True)
class _Labelled:
    roi: list[uuid.UUID]
    label: ArrayI64
    patient: ArrayI64
    vectors: tuple[ArrayF32, ArrayF32]


@dataclass(frozen=True, slots=True)
class _Scores:
    patient: ArrayI64
    chance: ArrayF64
    current: ArrayF64
    following: ArrayF64
    in_common: ArrayF64


def encoder_compare(
    *, current: Encoder, following: Encoder, lab_id: uuid.UUID
) -> EncoderComparison | None:
    """Compare two encoders on the labels of a lab, leaving out the query's own patient.

    Returns:
        None if no label occurs in two patients.
    """
    labelled = _labelled_vectors(current, following, lab_id)
    if not labelled.roi:
        return None
    scores = _scores(labelled)
    if not len(scores.patient):
        return None
    gain = scores.following - scores.current
    low, high = _interval(gain, scores.patient)
    return EncoderComparison(
        rois=len(gain),
        patients=len(np.unique(scores.patient)),
        chance=float(scores.chance.mean()),
        current=float(scores.current.mean()),
        following=float(scores.following.mean()),
        gain=float(gain.mean()),
        gain_low=low,
        gain_high=high,
        in_common=float(scores.in_common.mean()),
    )


def _labelled_vectors(current: Encoder, following: Encoder, lab_id: uuid.UUID) -> _Labelled:
    """Newest labelled ROIs with a current embedding by both encoders."""
    rows = Embedding.objects.filter(CURRENT, lab_id=lab_id, roi__deleted_at__isnull=True)
    labelled = rows.filter(encoder=following, roi__label__isnull=False).order_by("-pk")
    new = dict(labelled.values_list("roi_id", "vector")[:MAX_ROIS])
    in_current = rows.filter(encoder=current, roi_id__in=list(new)).order_by("pk")
    case = "roi__canvas__case"
    fields = ("roi_id", "vector", "roi__label_id", f"{case}__patient_key", f"{case}_id")
    rows_of_current = list(in_current.values_list(*fields))
    patients = [patient_of(case_id, key) for _, _, _, key, case_id in rows_of_current]
    return _Labelled(
        roi=[row[0] for row in rows_of_current],
        label=np.unique([str(row[2]) for row in rows_of_current], return_inverse=True)[1].astype(
            np.int64
        ),
        patient=np.unique(patients, return_inverse=True)[1].astype(np.int64),
        vectors=(
            _stack([row[1] for row in rows_of_current]),
            _stack([new[row[0]] for row in rows_of_current]),
        ),
    )


def _stack(vectors: list[bytes | memoryview]) -> ArrayF32:
    rows = [np.frombuffer(bytes(vector), dtype="<f4") for vector in vectors]
    return np.stack(rows).astype(np.float32) if rows else np.zeros((0, 0), np.float32)


def _scores(labelled: _Labelled) -> _Scores:
    nearest = [_nearest(v, labelled.patient) for v in labelled.vectors]
    rows = []
    for i, (label, patient) in enumerate(zip(labelled.label, labelled.patient, strict=True)):
        is_other = labelled.patient != patient
        chance = float((labelled.label[is_other] == label).mean()) if is_other.any() else 0.0
        if chance == 0:
            continue
        first, second = (ids[i][: min(K, int(is_other.sum()))] for ids in nearest)
        same = [float((labelled.label[ids] == label).mean()) for ids in (first, second)]
        rows.append((patient, chance, *same, len(np.intersect1d(first, second)) / len(first)))
    columns = np.array(rows, np.float64).reshape(-1, 5).T
    return _Scores(columns[0].astype(np.int64), *columns[1:])


def _nearest(vectors: ArrayF32, patient: ArrayI64) -> ArrayI64:
    """Rows (N, K) of other patients, nearest first; the patient's own come last."""
    squares = (vectors**2).sum(axis=1)
    distance = squares[:, None] + squares[None] - 2 * vectors @ vectors.T
    distance[patient[:, None] == patient[None]] = np.inf
    return np.argsort(distance, axis=1, kind="stable")[:, :K].astype(np.int64)


def _interval(gain: ArrayF64, patient: ArrayI64) -> tuple[float, float]:
    """Confidence interval of the mean over ROIs, resampling patients with a fixed seed."""
    _, index = np.unique(patient, return_inverse=True)
    sums, counts = np.bincount(index, weights=gain), np.bincount(index)
    drawn = np.random.default_rng(0).integers(0, len(sums), (_RESAMPLES, len(sums)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), _LEVEL)
    return float(low), float(high)
