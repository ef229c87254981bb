"""What a lab has to learn from, and what was learned."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import QuerySet

from ml.index.learning.judged import Judged
from ml.index.learning.material import Enough, Material, enough, kept_aside
from ml.types import ArrayBool, ArrayF32
from portal.annotations.models import Label, Roi
from portal.core.errors import NotFoundError
from portal.jobs.models import ENDED, Job
from portal.labs.models import User
from portal.retrieval.models import CURRENT, Embedding, Encoder, Judgement, Learning, Verdict
from portal.retrieval.selectors.candidates import patient_of
from portal.retrieval.selectors.embeddings import CHUNK_ROWS, vectors_stacked
from portal.retrieval.selectors.encoders import encoder_of_lab

LEARN_KIND, TRAIN_KIND = "metric_learn", "encoder_learn"
REGIONS_MOST = 8_000
"""That are learned from and compared on, the newest: their distances take minutes on two cores."""


@dataclass(frozen=True, slots=True)
class LabMaterial:
    """A lab's regions as they are learned from.

    Attributes:
        rois: of each row. labels: names by what stands for them in ``material``.
    """

    material: Material
    rois: tuple[uuid.UUID, ...]
    labels: dict[str, str]

    def part(self, rows: ArrayBool) -> LabMaterial:
        """Some of the regions (N,)."""
        rois = tuple(roi for roi, is_one in zip(self.rois, rows, strict=True) if is_one)
        return replace(self, material=self.material.part(rows), rois=rois)


def lab_material(lab_id: uuid.UUID, base: Encoder, *, with_vectors: bool = True) -> LabMaterial:
    """The regions of a lab that a metric may be learned from, with labels, patients and judgements.

    Those that are embedded as they are drawn now and that nobody is kept from seeing: what was
    drawn in a reading that is blind is not among them, nor what lies in the bin, nor other labs'.
    Three queries.

    Args:
        with_vectors: False to count only.
    """
    rows = Embedding.objects.filter(CURRENT, lab_id=lab_id, encoder=base)
    rows = rows.filter(roi__deleted_at__isnull=True).exclude(roi__in=_blinded().values("pk"))
    case = "roi__canvas__case"
    fields = ["roi_id", "roi__label_id", f"{case}__patient_key", f"{case}_id"]
    fields += ["vector"] if with_vectors else []
    newest = list(rows.order_by("-pk").values_list(*fields)[:REGIONS_MOST])
    found = newest[::-1]
    rois = tuple(row[0] for row in found)
    vectors = (
        np.frombuffer(b"".join(bytes(row[4]) for row in found), "<f4").reshape(-1, base.dim)
        if with_vectors
        else np.zeros((len(found), 1), np.float32)
    )
    material = Material.of(
        vectors.astype(np.float32),
        [str(row[1] or "") for row in found],
        [patient_of(row[3], row[2]) for row in found],
        _judged(lab_id, {roi: at for at, roi in enumerate(rois)}),
    )
    keys = {row[1] for row in found if row[1]}
    names = Label.objects.filter(pk__in=keys).values_list("pk", "name") if keys else ()
    return LabMaterial(material, rois, {str(pk): name for pk, name in names})


@dataclass(frozen=True, slots=True)
class SearchedBy:
    """What a lab's searches use, which something learned is compared with.

    Attributes:
        rows: (N,) which regions of the material searches can find. vectors: (M, E) float32, theirs.
    """

    encoder: Encoder
    rows: ArrayBool
    vectors: ArrayF32


def searched_by(lab_id: uuid.UUID, base: Encoder, of: LabMaterial) -> SearchedBy:
    """What a lab's searches use now: its own encoder if it has one in use, or the base.

    One query, and one for each ``CHUNK_ROWS`` regions.
    """
    encoder = encoder_of_lab(base.kind, lab_id) or base
    if encoder.pk == base.pk:
        return SearchedBy(encoder, np.ones(len(of.rois), bool), of.material.vectors)
    found: dict[uuid.UUID, bytes | memoryview] = {}
    for start in range(0, len(of.rois), CHUNK_ROWS):
        rois = of.rois[start : start + CHUNK_ROWS]
        own = Embedding.objects.filter(CURRENT, encoder=encoder, roi__in=rois).order_by()
        found |= dict(own.values_list("roi_id", "vector"))
    rows = np.array([roi in found for roi in of.rois], bool)
    known = [(at, found[of.rois[at]]) for at in np.flatnonzero(rows).tolist()]
    return SearchedBy(encoder, rows, vectors_stacked(known, encoder.dim)[1])


def learning_enough(lab_id: uuid.UUID, base: Encoder) -> tuple[LabMaterial, Enough]:
    """What there is, without vectors, and whether it suffices."""
    found = lab_material(lab_id, base, with_vectors=False)
    return found, enough(found.material, kept_aside(found.material.patients))


def learnings_of(user: User, lab_id: uuid.UUID | None = None) -> QuerySet[Learning]:
    """What was learned in this person's labs, or in one of them, the newest first."""
    rows = Learning.objects.owned_by(user).select_related(
        "encoder", "base", "compared_with", "job", "user", "lab"
    )
    rows = rows.defer("weights")
    return rows if lab_id is None else rows.filter(lab_id=lab_id)


def learning_get(user: User, learning_id: uuid.UUID) -> Learning:
    """One of them, or ``NotFoundError``."""
    found = learnings_of(user).filter(pk=learning_id).first()
    if found is None:
        raise NotFoundError("Nothing was learned under this id.")
    return found


def learning_to_run(learning_id: uuid.UUID) -> Learning | None:
    """For a task: the row with its lab and base; None if it is gone."""
    rows = Learning.objects.select_related("lab", "base", "encoder", "user").defer("weights")
    found: Learning | None = rows.filter(pk=learning_id).first()
    return found


def learning_under_way(lab_id: uuid.UUID, kind: str) -> Learning | None:
    """The one whose job has not ended."""
    rows = Learning.objects.select_related("job").filter(lab_id=lab_id, kind=kind)
    open_jobs = Job.objects.filter(kind__in=(LEARN_KIND, TRAIN_KIND)).exclude(state__in=ENDED)
    found: Learning | None = rows.filter(job__in=open_jobs, result__isnull=True).first()
    return found


def learning_way_back(learning: Learning) -> Encoder:
    """What searches use once this is rolled back: what it was compared with, or else the base."""
    before = learning.compared_with
    is_ours = before is not None and before.base_id == learning.base_id
    return before if before is not None and is_ours else learning.base


def _blinded() -> QuerySet[Roi]:
    """What is hidden from a person who neither reads nor drew anything."""
    return Roi.everything.hidden_from(User()).order_by()


def _judged(lab_id: uuid.UUID, row_of: dict[uuid.UUID, int]) -> Judged:
    """Pairs among these ROIs, by the last word of each person; none if they differ."""
    said: dict[tuple[int, int], set[bool]] = {}
    rows = Judgement.objects.filter(lab_id=lab_id).order_by("created_at", "pk")
    for roi, other, verdict in rows.values_list("roi_id", "other_id", "verdict"):
        if roi in row_of and other in row_of:
            said.setdefault((row_of[roi], row_of[other]), set()).add(verdict == Verdict.ALIKE)
    pairs = [(a, b, words.pop()) for (a, b), words in said.items() if len(words) == 1]
    return Judged(
        np.array([a for a, _, _ in pairs], np.int64),
        np.array([b for _, b, _ in pairs], np.int64),
        np.array([alike for _, _, alike in pairs], bool),
    )
