"""Maps of a lab: what they are made of, and what of them a person may see."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from django.db.models import QuerySet

from ml.index.answers.calibration import Calibration
from ml.types import ArrayF32, ArrayI64
from portal.archive.models import Canvas
from portal.jobs.models import ENDED, Job
from portal.labs.models import User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import CURRENT, Embedding, Encoder, RegionMap
from portal.retrieval.selectors.candidates import patient_of
from portal.retrieval.selectors.embeddings import ids_of_rows, vectors_by_id
from portal.retrieval.selectors.hits import Meaning, calibration_for

MAP_KIND = "map_draw"
MOST_REGIONS = 100_000
"""Of a map, the newest: the neighbours of this many are found in minutes on two cores, and the time
grows with the square; a browser draws as many without a pause."""
COPY_RADIUS = 1e-3  # of an encoder without a calibration: only what is the same but for rounding
_HALVINGS = 50  # of a distance: far below what float32 tells apart


@dataclass(frozen=True, slots=True)
class MapSource:
    """What a map is drawn from.

    Attributes:
        ids: (N,) embeddings, ascending. vectors: (N, D).
        patients, cases: (N,) numbers of the patient (where unknown, of the case) and the case.
        left_out: older regions, beyond ``MOST_REGIONS``.
    """

    ids: ArrayI64
    vectors: ArrayF32
    patients: ArrayI64
    cases: ArrayI64
    left_out: int


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A region of a map as it is now."""

    roi_id: uuid.UUID
    version: int
    label_id: uuid.UUID | None
    review_state: str
    canvas_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class MapCounts:
    """How many regions of a map one person may see, and how many newer ones it does not show."""

    map: RegionMap
    shown: int
    newer: int


class MapCanvas(NamedTuple):
    """What regions of a canvas are coloured and grouped by; texts are empty if unknown."""

    pk: uuid.UUID
    name: str
    case_id: uuid.UUID
    accession: str
    organ: str
    diagnosis: str
    patient_key: str
    scanner: str | None
    stain: str | None

    @property
    def patient(self) -> str:
        """See ``patient_of``."""
        return patient_of(self.case_id, self.patient_key)


@dataclass(frozen=True)
class SeenMap:
    """What one person may see of a map.

    Attributes:
        rows: by their number in the map, ascending.
        newer: regions that they may see and that the map does not show: drawn or changed since.
    """

    map: RegionMap
    rows: dict[int, SeenRow]
    newer: int

    @cached_property
    def numbers(self) -> ArrayI64:
        """(M,) numbers of ``rows``."""
        return np.fromiter(self.rows, dtype=np.int64, count=len(self.rows))

    @cached_property
    def canvases(self) -> dict[uuid.UUID, MapCanvas]:
        """Of the lab. One query."""
        rows = Canvas.objects.filter(lab_id=self.map.lab_id).values_list(
            *("pk", "name", "case_id", "case__accession", "case__organ"),
            *("case__diagnosis", "case__patient_key", "slide__vendor", "slide__stain"),
        )
        return {row[0]: MapCanvas(*row) for row in rows}

    @property
    def places(self) -> ArrayI64:
        """(M, 2): of ``rows``, 0 to 65535."""
        return (
            np.frombuffer(bytes(self.map.places), "<u2")
            .reshape(-1, 2)[self.numbers]
            .astype(np.int64)
        )


def map_source(scope: Scope) -> MapSource:
    """For a task: the current embeddings of a lab with their patients and cases."""
    rows = Embedding.objects.filter(
        CURRENT, lab_id=scope.lab_id, encoder=scope.encoder, roi__deleted_at__isnull=True
    )
    count = rows.count()
    newest = ids_of_rows(rows.order_by("-pk")[:MOST_REGIONS])
    ids, vectors = vectors_by_id(np.sort(newest), dim=scope.encoder.dim)
    canvas_of = dict(rows.order_by().values_list("pk", "canvas_id"))
    canvases = {
        pk: (case_id, patient_of(case_id, key))
        for pk, case_id, key in Canvas.objects.filter(lab_id=scope.lab_id).values_list(
            "pk", "case_id", "case__patient_key"
        )
    }
    known = np.array([canvas_of.get(pk) in canvases for pk in ids.tolist()], dtype=np.bool_)
    ids, vectors = ids[known], vectors[known]
    owners = [canvases[canvas_of[pk]] for pk in ids.tolist()]
    return MapSource(
        ids,
        vectors,
        patients=_numbered([patient for _, patient in owners]),
        cases=_numbered([case for case, _ in owners]),
        left_out=max(count - MOST_REGIONS, 0),
    )


def duplicate_radius(scope: Scope, count: int) -> tuple[float, bool]:
    """The distance within which two regions are near-duplicates, and whether it is calibrated.

    Among ``count`` unrelated regions, usually no two are that near.
    """
    calibration = calibration_for(scope.encoder)
    if calibration is None:
        return COPY_RADIUS, False
    return max(reach_of(calibration, max(count * (count - 1) // 2, 1)), COPY_RADIUS), True


def close_radius(seen: SeenMap) -> float:
    """Farther neighbours are no nearer than unrelated regions; infinite if it is not known."""
    meaning = Meaning(calibration_for(seen.map.encoder), len(seen.rows))
    if meaning.calibration is None:
        return float("inf")
    return reach_of(meaning.calibration, max(meaning.searched, 1))


def map_list(user: User) -> QuerySet[RegionMap]:
    """Maps of the person's labs, the newest first, without what is drawn of them."""
    rows = RegionMap.objects.owned_by(user).select_related("encoder", "lab")
    heavy = ("ids", "places", "neighbours", "distances", "pairs", "pair_distances")
    return rows.defer(*heavy).order_by("-created_at", "pk")


def map_latest(user: User, *, lab_id: uuid.UUID, kind: str) -> RegionMap | None:
    """The newest map of a lab's regions by the encoder that searches use now."""
    return (
        map_list(user).filter(lab_id=lab_id, encoder__kind=kind, encoder__is_default=True).first()
    )


def map_job_open(*, lab_id: uuid.UUID, encoder_id: uuid.UUID) -> Job | None:
    """The job that draws such a map now. The caller has checked the lab."""
    jobs = Job.objects.filter(lab_id=lab_id, kind=MAP_KIND, args__encoder_id=str(encoder_id))
    return jobs.exclude(state__in=ENDED).order_by("created_at").first()


def map_seen(user: User, row: RegionMap) -> SeenMap:
    """What the person may see of a map now. One query, and one of the map's ids and places."""
    row.refresh_from_db(fields=["ids", "places"])
    seen = _current(user, row).values_list(
        *("pk", "roi_id", "roi__version", "roi__label_id", "roi__review_state", "canvas_id")
    )
    found = list(seen.iterator(chunk_size=5_000))
    numbers, newer = _placed(row, np.array([one[0] for one in found], np.int64))
    rows = {
        number: SeenRow(*one[1:])
        for number, one in zip(numbers.tolist(), found, strict=True)
        if number >= 0
    }
    return SeenMap(row, rows, newer)


def map_counted(user: User, row: RegionMap) -> MapCounts:
    """As ``map_seen``, but only the numbers that a page says beside the map. Two queries."""
    keys = _current(user, row).values_list("pk", flat=True)
    found = np.fromiter(keys.iterator(chunk_size=5_000), np.int64)
    numbers, newer = _placed(row, found)
    return MapCounts(row, int((numbers >= 0).sum()), newer)


def has_regions_to_map(user: User, *, lab_id: uuid.UUID, encoder: Encoder | None) -> bool:
    """A map would have something on it for this person."""
    return encoder is not None and _of_lab(user, lab_id, encoder.pk).exists()


def _current(user: User, row: RegionMap) -> QuerySet[Embedding]:
    """The embeddings that maps are made of, as far as the person may see them, ascending."""
    return _of_lab(user, row.lab_id, row.encoder_id).order_by("pk")


def _of_lab(user: User, lab_id: uuid.UUID, encoder_id: uuid.UUID) -> QuerySet[Embedding]:
    rows = Embedding.objects.owned_by(user).filter(CURRENT, roi__deleted_at__isnull=True)
    return rows.filter(lab_id=lab_id, encoder_id=encoder_id)


def _placed(row: RegionMap, keys: ArrayI64) -> tuple[ArrayI64, int]:
    """(N,) numbers of embeddings in a map, -1 for none, and how many came after it."""
    ids = np.frombuffer(bytes(row.ids), "<i8").astype(np.int64)
    if not len(ids):
        return np.full(len(keys), -1, np.int64), int((keys > row.last_embedding_id).sum())
    at = np.minimum(np.searchsorted(ids, keys), len(ids) - 1)
    is_in = ids[at] == keys
    return np.where(is_in, at, -1), int((~is_in & (keys > row.last_embedding_id)).sum())


def _numbered(keys: list[Any]) -> ArrayI64:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def reach_of(calibration: Calibration, searched: int) -> float:
    """The largest distance that is close among this many regions, by bisection."""
    low, high = 0.0, calibration.distances[-1]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if calibration.says_nothing_close(middle, searched):
            high = middle
        else:
            low = middle
    return low
