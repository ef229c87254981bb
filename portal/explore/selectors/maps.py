"""Maps of a lab: their source, and the part visible to a person."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from django.db.models import QuerySet

from ml.index.ranking.calibration import Calibration
from ml.types import ArrayF32, ArrayI64
from portal.archive.models import Canvas
from portal.embeddings.indexes import Scope
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.embeddings.selectors.embeddings import ids_of_rows, patient_of, vectors_by_id
from portal.explore.models import RegionMap
from portal.jobs.models import ENDED_STATES, Job
from portal.labs.models import User
from portal.search.selectors.hits import Significance, calibration_for

MAP_KIND = "map_draw"
MAX_REGIONS = 100_000
"""Largest number of regions on a map; the newest are taken. The neighbours of this many are
found in minutes on two cores, and the time grows with the square; a browser draws this many
smoothly."""
COPY_RADIUS = 1e-3  # without a calibration: equal except for rounding
_BISECTIONS = 50  # finer than float32 resolves


@dataclass(frozen=True, slots=True)
class MapSource:
    """Input of a map.

    Attributes:
        ids: (N,) Embeddings, ascending.
        vectors: (N, D).
        patients, cases: (N,) Numbers of the patient (of the case if unknown) and of the case.
        left_out: Older regions beyond ``MAX_REGIONS``.
    """

    ids: ArrayI64
    vectors: ArrayF32
    patients: ArrayI64
    cases: ArrayI64
    left_out: int


@dataclass(frozen=True, slots=True)
class VisibleRow:
    """Present state of a region of a map."""

    roi_id: uuid.UUID
    version: int
    label_id: uuid.UUID | None
    review_state: str
    canvas_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class MapCounts:
    """Numbers of visible regions: on the map, and newer than it."""

    map: RegionMap
    on_map: int
    newer: int


class MapCanvas(NamedTuple):
    """Attributes of a canvas for colouring and grouping; empty if unknown."""

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
class VisibleMap:
    """Part of a map that is visible to one person.

    Attributes:
        rows: Visible rows by their number in the map, ascending.
        newer: Visible regions missing from the map, drawn or changed after it.
    """

    map: RegionMap
    rows: dict[int, VisibleRow]
    newer: int

    @cached_property
    def numbers(self) -> ArrayI64:
        """Numbers of ``rows``, (M,)."""
        return np.fromiter(self.rows, dtype=np.int64, count=len(self.rows))

    @cached_property
    def canvases(self) -> dict[uuid.UUID, MapCanvas]:
        """Canvases of the lab. One query."""
        rows = Canvas.objects.filter(lab_id=self.map.lab_id).values_list(
            *("pk", "name", "case_id", "case__accession", "case__organ"),
            *("case__diagnosis", "case__patient_key", "slide__vendor", "slide__stain"),
        )
        return {row[0]: MapCanvas(*row) for row in rows}

    @property
    def positions(self) -> ArrayI64:
        """Positions of ``rows``, (M, 2), 0 to 65535."""
        return (
            np.frombuffer(bytes(self.map.positions), "<u2")
            .reshape(-1, 2)[self.numbers]
            .astype(np.int64)
        )


def map_source(scope: Scope) -> MapSource:
    """Current embeddings of a lab with their patients and cases (for tasks)."""
    rows = Embedding.objects.filter(
        CURRENT, lab_id=scope.lab_id, encoder=scope.encoder, roi__deleted_at__isnull=True
    )
    count = rows.count()
    newest = ids_of_rows(rows.order_by("-pk")[:MAX_REGIONS])
    ids, vectors = vectors_by_id(np.sort(newest), dim=scope.encoder.dim)
    canvas_of = dict(rows.order_by().values_list("pk", "canvas_id"))
    canvases = {
        pk: (case_id, patient_of(case_id, key))
        for pk, case_id, key in Canvas.objects.filter(lab_id=scope.lab_id).values_list(
            "pk", "case_id", "case__patient_key"
        )
    }
    is_known = np.array([canvas_of.get(pk) in canvases for pk in ids.tolist()], dtype=np.bool_)
    ids, vectors = ids[is_known], vectors[is_known]
    owners = [canvases[canvas_of[pk]] for pk in ids.tolist()]
    return MapSource(
        ids,
        vectors,
        patients=_codes([patient for _, patient in owners]),
        cases=_codes([case for case, _ in owners]),
        left_out=max(count - MAX_REGIONS, 0),
    )


def duplicate_radius(scope: Scope, count: int) -> tuple[float, bool]:
    """Largest distance of near-duplicates, and whether it is calibrated.

    Among ``count`` unrelated regions, usually no two are that close.
    """
    calibration = calibration_for(scope.encoder)
    if calibration is None:
        return COPY_RADIUS, False
    return max(close_distance(calibration, max(count * (count - 1) // 2, 1)), COPY_RADIUS), True


def close_radius(visible: VisibleMap) -> float:
    """Largest distance of close neighbours; infinite if unknown."""
    significance = Significance(calibration_for(visible.map.encoder), len(visible.rows))
    if significance.calibration is None:
        return float("inf")
    return close_distance(significance.calibration, max(significance.searched, 1))


def map_list(user: User) -> QuerySet[RegionMap]:
    """Maps of the person's labs, newest first, without their large columns."""
    rows = RegionMap.objects.owned_by(user).select_related("encoder", "lab")
    large_fields = ("ids", "positions", "neighbours", "distances", "pairs", "pair_distances")
    return rows.defer(*large_fields).order_by("-created_at", "pk")


def map_latest(user: User, *, lab_id: uuid.UUID, kind: str) -> RegionMap | None:
    """Newest map of a lab by the encoder in use."""
    return (
        map_list(user).filter(lab_id=lab_id, encoder__kind=kind, encoder__is_default=True).first()
    )


def map_job_open(*, lab_id: uuid.UUID, encoder_id: uuid.UUID) -> Job | None:
    """Unfinished job that draws the map. The caller has checked the lab."""
    jobs = Job.objects.filter(lab_id=lab_id, kind=MAP_KIND, args__encoder_id=str(encoder_id))
    return jobs.exclude(state__in=ENDED_STATES).order_by("created_at").first()


def map_visible(user: User, row: RegionMap) -> VisibleMap:
    """Visible part of a map. One query, and one for the map's ids and coordinates."""
    row.refresh_from_db(fields=["ids", "positions"])
    columns = _current(user, row).values_list(
        *("pk", "roi_id", "roi__version", "roi__label_id", "roi__review_state", "canvas_id")
    )
    loaded = list(columns.iterator(chunk_size=5_000))
    numbers, newer = _rows_of(row, np.array([values[0] for values in loaded], np.int64))
    rows = {
        number: VisibleRow(*values[1:])
        for number, values in zip(numbers.tolist(), loaded, strict=True)
        if number >= 0
    }
    return VisibleMap(row, rows, newer)


def map_counts(user: User, row: RegionMap) -> MapCounts:
    """Counts of ``map_visible``. Two queries."""
    keys = _current(user, row).values_list("pk", flat=True)
    row_ids = np.fromiter(keys.iterator(chunk_size=5_000), np.int64)
    numbers, newer = _rows_of(row, row_ids)
    return MapCounts(row, int((numbers >= 0).sum()), newer)


def has_regions_to_map(user: User, *, lab_id: uuid.UUID, encoder: Encoder | None) -> bool:
    """True if a map would show any region to the person."""
    return encoder is not None and _embeddings_of_lab(user, lab_id, encoder.pk).exists()


def _current(user: User, row: RegionMap) -> QuerySet[Embedding]:
    """Visible embeddings for maps, ascending."""
    return _embeddings_of_lab(user, row.lab_id, row.encoder_id).order_by("pk")


def _embeddings_of_lab(user: User, lab_id: uuid.UUID, encoder_id: uuid.UUID) -> QuerySet[Embedding]:
    rows = Embedding.objects.owned_by(user).filter(CURRENT, roi__deleted_at__isnull=True)
    return rows.filter(lab_id=lab_id, encoder_id=encoder_id)


def _rows_of(row: RegionMap, keys: ArrayI64) -> tuple[ArrayI64, int]:
    """Row numbers of embeddings in a map (N,), -1 if missing, and the number of newer ones."""
    ids = np.frombuffer(bytes(row.ids), "<i8").astype(np.int64)
    if not len(ids):
        return np.full(len(keys), -1, np.int64), int((keys > row.last_embedding_id).sum())
    at = np.minimum(np.searchsorted(ids, keys), len(ids) - 1)
    is_in = ids[at] == keys
    return np.where(is_in, at, -1), int((~is_in & (keys > row.last_embedding_id)).sum())


def _codes(keys: list[Any]) -> ArrayI64:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def close_distance(calibration: Calibration, searched: int) -> float:
    """Largest distance that is close among this many regions, found by bisection."""
    low, high = 0.0, calibration.distances[-1]
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if calibration.is_nothing_close(middle, searched):
            high = middle
        else:
            low = middle
    return low
