"""Near-duplicates: pairs closer than any two unrelated regions of the lab usually are."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from portal.annotations.models import Roi
from portal.explore.selectors.maps import VisibleMap
from portal.labs.models import User
from portal.search.selectors.hits import calibration_for, closer_than


class Between(StrEnum):
    """Relation of the two regions of a pair."""

    CASES = "cases"
    IMAGES = "images"
    REGIONS = "regions"


NAMES = {
    Between.CASES: "Of different cases",
    Between.IMAGES: "On different images of a case",
    Between.REGIONS: "On the same image",
}


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two near-duplicate regions.

    Attributes:
        distance: Distance between their vectors.
        closer_than: See ``Hit.closer_than``.
    """

    one: Roi
    other: Roi
    between: Between
    distance: float
    closer_than: str

    @property
    def labels_differ(self) -> bool:
        """True if both have a label, and not the same one."""
        labels = {self.one.label_id, self.other.label_id}
        return None not in labels and len(labels) > 1


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Pairs visible to a person, different cases first, then by distance.

    Attributes:
        pairs: Pairs on the requested page.
        total: Number of pairs of the requested kind.
        counts: Number of pairs of each kind.
        is_cut: The map keeps only the nearest pairs, and there were more.
    """

    pairs: tuple[NearPair, ...]
    total: int
    counts: dict[Between, int]
    is_cut: bool


def near_duplicates(
    user: User, visible: VisibleMap, *, between: Between | None, start: int, count: int
) -> Duplicates:
    """Page of pairs of regions that are both visible to the person."""
    by_kind: dict[Between, list[tuple[int, int, float]]] = {kind: [] for kind in Between}
    rows = np.frombuffer(bytes(visible.map.pairs), "<i4").reshape(-1, 2).tolist()
    distances = np.frombuffer(bytes(visible.map.pair_distances), "<f4").tolist()
    for (a, b), distance in zip(rows, distances, strict=True):
        if a in visible.rows and b in visible.rows:
            by_kind[_pair_kind(visible, a, b)].append((a, b, distance))
    kinds = [between] if between else list(Between)
    kind_pairs = [(kind, pair) for kind in kinds for pair in by_kind[kind]]
    page = kind_pairs[start : start + count]
    rois = rois_shown(user, {visible.rows[at].roi_id for _, (a, b, _) in page for at in (a, b)})
    calibration = calibration_for(visible.map.encoder)
    pairs = []
    for kind, (a, b, distance) in page:
        first, second = (rois.get(visible.rows[at].roi_id) for at in (a, b))
        if first and second:
            p_value = calibration.p_value(distance) if calibration else None
            pairs.append(NearPair(first, second, kind, distance, closer_than(p_value)))
    counts = {kind: len(pairs_of) for kind, pairs_of in by_kind.items()}
    return Duplicates(tuple(pairs), len(kind_pairs), counts, visible.map.pairs_cut)


def rois_shown(user: User, ids: set[uuid.UUID]) -> dict[uuid.UUID, Roi]:
    """Regions with the data of a card. One query."""
    rows = Roi.objects.live().owned_by(user).filter(pk__in=ids).order_by()
    rows = rows.select_related("label", "canvas__case")
    return {roi.pk: roi for roi in rows.defer("geometry", "foreign", "canvas__levels")}


def _pair_kind(visible: VisibleMap, a: int, b: int) -> Between:
    first, second = visible.rows[a].canvas_id, visible.rows[b].canvas_id
    if first == second:
        return Between.REGIONS
    same = visible.canvases[first].case_id == visible.canvases[second].case_id
    return Between.IMAGES if same else Between.CASES
