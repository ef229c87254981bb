"""Training data of a lab, and the vectors that its searches use."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import QuerySet

from ml.index.metric_learning.dataset import (
    DataSufficiency,
    RegionDataset,
    check_sufficiency,
    held_out_mask,
)
from ml.index.metric_learning.judgements import Judgements
from ml.types import ArrayBool, ArrayF32
from portal.annotations.models import Label, Roi
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import CHUNK_ROWS, patient_of, vectors_stacked
from portal.embeddings.selectors.encoders import encoder_of_lab
from portal.labs.models import User
from portal.search.models import Judgement, Verdict

MAX_REGIONS = 8_000
"""Largest number of regions for learning and comparison, newest first: their distances take minutes
on two cores."""


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Regions of a lab to learn from.

    Attributes:
        rois: ROI of each row.
        labels: Label names by the key used in ``material``.
    """

    material: RegionDataset
    rois: tuple[uuid.UUID, ...]
    labels: dict[str, str]

    def part(self, rows: ArrayBool) -> TrainingData:
        """Subset of the regions (N,)."""
        rois = tuple(roi for roi, is_one in zip(self.rois, rows, strict=True) if is_one)
        return replace(self, material=self.material.subset(rows), rois=rois)


def training_data(lab_id: uuid.UUID, base: Encoder, *, with_vectors: bool = True) -> TrainingData:
    """Regions of a lab to learn from, with labels, patients and judgements.

    Includes regions with a current vector that every member may see: none of blind readings, in the
    trash, or of other labs. Three queries.

    Args:
        with_vectors: False to count only.
    """
    rows = Embedding.objects.filter(CURRENT, lab_id=lab_id, encoder=base)
    rows = rows.filter(roi__deleted_at__isnull=True).exclude(roi__in=_blinded_rois().values("pk"))
    case = "roi__canvas__case"
    fields = ["roi_id", "roi__label_id", f"{case}__patient_key", f"{case}_id"]
    fields += ["vector"] if with_vectors else []
    newest = list(rows.order_by("-pk").values_list(*fields)[:MAX_REGIONS])
    ordered = newest[::-1]
    rois = tuple(row[0] for row in ordered)
    vectors = (
        np.frombuffer(b"".join(bytes(row[4]) for row in ordered), "<f4").reshape(-1, base.dim)
        if with_vectors
        else np.zeros((len(ordered), 1), np.float32)
    )
    material = RegionDataset.create(
        vectors.astype(np.float32),
        [str(row[1] or "") for row in ordered],
        [patient_of(row[3], row[2]) for row in ordered],
        _judgements(lab_id, {roi: at for at, roi in enumerate(rois)}),
    )
    keys = {row[1] for row in ordered if row[1]}
    names = Label.objects.filter(pk__in=keys).values_list("pk", "name") if keys else ()
    return TrainingData(material, rois, {str(pk): name for pk, name in names})


@dataclass(frozen=True, slots=True)
class SearchBaseline:
    """Vectors that a lab's searches use now, the baseline for a learned model.

    Attributes:
        rows: (N,) Regions of the material that searches can find.
        vectors: (M, E) float32, their vectors.
    """

    encoder: Encoder
    rows: ArrayBool
    vectors: ArrayF32


def search_baseline(lab_id: uuid.UUID, base: Encoder, data: TrainingData) -> SearchBaseline:
    """Vectors that a lab's searches use now, by its own active encoder or the base.

    One query, and one for each ``CHUNK_ROWS`` regions.
    """
    encoder = encoder_of_lab(base.kind, lab_id) or base
    if encoder.pk == base.pk:
        return SearchBaseline(encoder, np.ones(len(data.rois), bool), data.material.vectors)
    vector_of_roi: dict[uuid.UUID, bytes | memoryview] = {}
    for start in range(0, len(data.rois), CHUNK_ROWS):
        rois = data.rois[start : start + CHUNK_ROWS]
        embeddings = Embedding.objects.filter(CURRENT, encoder=encoder, roi__in=rois).order_by()
        vector_of_roi |= dict(embeddings.values_list("roi_id", "vector"))
    rows = np.array([roi in vector_of_roi for roi in data.rois], bool)
    vectors = [(at, vector_of_roi[data.rois[at]]) for at in np.flatnonzero(rows).tolist()]
    return SearchBaseline(encoder, rows, vectors_stacked(vectors, encoder.dim)[1])


def training_data_check(lab_id: uuid.UUID, base: Encoder) -> tuple[TrainingData, DataSufficiency]:
    """Training data without vectors, and whether it suffices."""
    data = training_data(lab_id, base, with_vectors=False)
    return data, check_sufficiency(data.material, held_out_mask(data.material.patients))


def _blinded_rois() -> QuerySet[Roi]:
    """Regions hidden from a person who neither reads nor drew anything."""
    return Roi.all_objects.hidden_from(User()).order_by()


def _judgements(lab_id: uuid.UUID, row_of: dict[uuid.UUID, int]) -> Judgements:
    """Pairs of these ROIs by each person's last judgement; none if people differ."""
    verdicts: dict[tuple[int, int], set[bool]] = {}
    rows = Judgement.objects.filter(lab_id=lab_id).order_by("created_at", "pk")
    for roi, other, verdict in rows.values_list("roi_id", "other_id", "verdict"):
        if roi in row_of and other in row_of:
            verdicts.setdefault((row_of[roi], row_of[other]), set()).add(verdict == Verdict.ALIKE)
    pairs = [(a, b, values.pop()) for (a, b), values in verdicts.items() if len(values) == 1]
    return Judgements(
        np.array([a for a, _, _ in pairs], np.int64),
        np.array([b for _, b, _ in pairs], np.int64),
        np.array([alike for _, _, alike in pairs], bool),
    )
