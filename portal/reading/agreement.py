"""How far two readings of an image agree. Plain values in, plain values out.

- Regions are *matched* one to one by the Hungarian method, so that the sum of their overlaps
  (intersection over union, IoU) is the greatest; pairs below a least overlap do not count.
- *Dice* is of areas: twice what both drew, over the sum of what each drew, by label.
- *Kappa by label* is Cohen's kappa of areas: each point of the image is, to each reader, of this
  label or not. Of a video, of the frames on which either drew.
- *Kappa of labels* is Cohen's kappa of regions: of those matched whatever their label, whether
  both readers named them alike.

What has no area (a point, a line) is not compared.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import combinations

import numpy as np
import shapely
from shapely import STRtree
from shapely.geometry.base import BaseGeometry

SAME_LABEL_FIRST = 1e-6
"""Of two equal overlaps the one with the same label is taken."""
_FIRST = ("label", "missing", "agreed")
"""States of findings, the least agreed first."""


@dataclass(frozen=True, slots=True)
class DrawnRegion:
    """What a reader drew, in level-0 pixels: ``id`` of the revision, ``frame`` of a video."""

    id: uuid.UUID
    roi: uuid.UUID
    label: str
    outline: BaseGeometry
    frame: int | None = None


@dataclass(slots=True)
class LabelTally:
    """What the figures of a label come from; tallies of several images are added.

    Attributes:
        n_a, n_b, matched: regions. iou_sum: of the matched.
        area_a, area_b, area_both, plane: in pixels; ``plane``: of all that was looked at.
    """

    n_a: int = 0
    n_b: int = 0
    matched: int = 0
    iou_sum: float = 0.0
    area_a: float = 0.0
    area_b: float = 0.0
    area_both: float = 0.0
    plane: float = 0.0

    def __add__(self, other: LabelTally) -> LabelTally:
        return LabelTally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def iou(self) -> float | None:
        """The mean overlap of matched regions; None without any."""
        return self.iou_sum / self.matched if self.matched else None

    @property
    def f1(self) -> float | None:
        """Twice the matched over all regions of both."""
        total = self.n_a + self.n_b
        return 2 * self.matched / total if total else None

    @property
    def dice(self) -> float | None:
        """Of areas; None if neither drew any."""
        total = self.area_a + self.area_b
        return 2 * self.area_both / total if total else None

    @property
    def kappa(self) -> float | None:
        """Cohen's, of areas; None if chance alone explains everything."""
        if not self.plane:
            return None
        a, b, both = (x / self.plane for x in (self.area_a, self.area_b, self.area_both))
        return _kappa(observed=1 - (a + b - 2 * both), expected=a * b + (1 - a) * (1 - b))


@dataclass(slots=True)
class PairAgreement:
    """Two readers' readings, by label; ``named``: how often a matched region was called what."""

    labels: dict[str, LabelTally] = field(default_factory=dict)
    named: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, other: PairAgreement) -> None:
        """Add the agreement on another image."""
        for label, tally in other.labels.items():
            self.labels[label] = self.labels.get(label, LabelTally()) + tally
        for names, count in other.named.items():
            self.named[names] = self.named.get(names, 0) + count

    @property
    def kappa_of_labels(self) -> float | None:
        """Cohen's, of matched regions; None if chance alone explains everything."""
        total = sum(self.named.values())
        if not total:
            return None
        a: defaultdict[str, float] = defaultdict(float)
        b: defaultdict[str, float] = defaultdict(float)
        for (name_a, name_b), count in self.named.items():
            a[name_a] += count / total
            b[name_b] += count / total
        observed = sum(n for (x, y), n in self.named.items() if x == y) / total
        return _kappa(observed=observed, expected=sum(a[name] * b[name] for name in a))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing on the image as the readers saw it: a region of each who drew it.

    Attributes:
        state: ``agreed`` (all drew it, with one label), ``label`` (all, with several) or
            ``missing`` (somebody did not draw it, or elsewhere).
        regions: (reader, region), in the order of the readers.
        iou: the least overlap of two of them; None for one alone.
    """

    id: uuid.UUID
    state: str
    regions: tuple[tuple[int, DrawnRegion], ...]
    iou: float | None

    @property
    def place(self) -> tuple[int, float, str]:
        """Among the findings of an image, the least agreed first: no two have the same."""
        return _FIRST.index(self.state), self.iou or 0.0, str(self.id)


def matches(
    a: Sequence[DrawnRegion], b: Sequence[DrawnRegion], *, iou_least: float, by_label: bool
) -> list[tuple[int, int, float]]:
    """Places in ``a`` and ``b`` of matched regions, with their overlap; each at most once.

    Args:
        by_label: only regions of one label.
    """
    from scipy.optimize import linear_sum_assignment

    overlaps = {
        (i, j): iou
        for i, j in _meeting(a, b)
        if (not by_label or a[i].label == b[j].label)
        and (iou := _iou(a[i].outline, b[j].outline)) >= iou_least
    }
    found: list[tuple[int, int, float]] = []
    for rows, columns in _components(overlaps):
        gain = np.zeros((len(rows), len(columns)))
        for r, i in enumerate(rows):
            for c, j in enumerate(columns):
                if (i, j) in overlaps:
                    gain[r, c] = overlaps[i, j] + SAME_LABEL_FIRST * (a[i].label == b[j].label)
        chosen = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
        pairs = ((rows[r], columns[c]) for r, c in chosen)
        found += [(i, j, overlaps[i, j]) for i, j in pairs if (i, j) in overlaps]
    return sorted(found)


def pair_agreement(
    a: Sequence[DrawnRegion], b: Sequence[DrawnRegion], *, plane_px: float, iou_least: float
) -> PairAgreement:
    """Two readings of one image, whose area is ``plane_px``, by label."""
    result = PairAgreement()
    frames = {region.frame for region in (*a, *b)}
    plane = plane_px * max(1, len(frames))
    for label in sorted({region.label for region in (*a, *b)}):
        of_a = [region for region in a if region.label == label]
        of_b = [region for region in b if region.label == label]
        pairs = matches(of_a, of_b, iou_least=iou_least, by_label=True)
        tally = LabelTally(
            len(of_a), len(of_b), len(pairs), sum(iou for *_, iou in pairs), plane=plane
        )
        for frame in frames:
            area_a, area_b = _united(of_a, frame), _united(of_b, frame)
            tally.area_a += area_a.area
            tally.area_b += area_b.area
            tally.area_both += shapely.intersection(area_a, area_b).area
        result.labels[label] = tally
    for i, j, _ in matches(a, b, iou_least=iou_least, by_label=False):
        names = (a[i].label, b[j].label)
        result.named[names] = result.named.get(names, 0) + 1
    return result


def findings(readings: Sequence[Sequence[DrawnRegion]], *, iou_least: float) -> list[Finding]:
    """What any reader drew, put together over all readers, the least agreed first."""
    places = [(k, i) for k, reading in enumerate(readings) for i in range(len(reading))]
    above = {place: place for place in places}
    overlap: dict[frozenset[tuple[int, int]], float] = {}
    for k, m in combinations(range(len(readings)), 2):
        for i, j, iou in matches(readings[k], readings[m], iou_least=iou_least, by_label=False):
            overlap[frozenset({(k, i), (m, j)})] = iou
            above[_root(above, (k, i))] = _root(above, (m, j))
    groups: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for place in places:
        groups[_root(above, place)].append(place)
    found = [_finding(readings, group, overlap) for group in groups.values()]
    return sorted(found, key=lambda one: one.place)


def merged(outlines: Sequence[BaseGeometry], *, readers: int) -> BaseGeometry:
    """The area that at least half of the readers drew; of two readers: all that either drew."""
    needed = max(1, -(-readers // 2))
    parts = [
        shapely.intersection_all(list(some)) for some in combinations(outlines, needed)
    ]  # few readers: ten choose five is 252
    flat = [one for part in parts for one in shapely.get_parts(part) if one.area > 0]
    return shapely.union_all(flat)


def _finding(
    readings: Sequence[Sequence[DrawnRegion]],
    group: Sequence[tuple[int, int]],
    overlap: Mapping[frozenset[tuple[int, int]], float],
) -> Finding:
    regions = tuple((k, readings[k][i]) for k, i in sorted(group))
    name = ",".join(sorted(str(region.id) for _, region in regions))
    ious = [overlap[key] for one in combinations(group, 2) if (key := frozenset(one)) in overlap]
    state = "missing"
    if {k for k, _ in regions} == set(range(len(readings))):
        state = "agreed" if len({region.label for _, region in regions}) == 1 else "label"
    return Finding(
        uuid.uuid5(uuid.NAMESPACE_OID, name), state, regions, min(ious) if ious else None
    )


def _kappa(*, observed: float, expected: float) -> float | None:
    return None if 1 - expected < 1e-12 else (observed - expected) / (1 - expected)


def _united(regions: Iterable[DrawnRegion], frame: int | None) -> BaseGeometry:
    return shapely.union_all([region.outline for region in regions if region.frame == frame])


def _iou(a: BaseGeometry, b: BaseGeometry) -> float:
    both = shapely.intersection(a, b).area
    return float(both / (a.area + b.area - both)) if both else 0.0


def _meeting(a: Sequence[DrawnRegion], b: Sequence[DrawnRegion]) -> Iterator[tuple[int, int]]:
    """Places of regions of the same frame that touch."""
    if not a or not b:
        return
    tree = STRtree([region.outline for region in b])
    for i, j in tree.query([region.outline for region in a], predicate="intersects").T.tolist():
        if a[i].frame == b[j].frame:
            yield i, j


def _components(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[list[int], list[int]]]:
    """Rows and columns that hang together: each is solved by itself."""
    above: dict[tuple[int, int], tuple[int, int]] = {}
    for i, j in pairs:
        for place in ((0, i), (1, j)):
            above.setdefault(place, place)
        above[_root(above, (0, i))] = _root(above, (1, j))
    groups: defaultdict[tuple[int, int], tuple[list[int], list[int]]] = defaultdict(
        lambda: ([], [])
    )
    for side, index in above:
        groups[_root(above, (side, index))][side].append(index)
    yield from groups.values()


def _root(above: dict[tuple[int, int], tuple[int, int]], place: tuple[int, int]) -> tuple[int, int]:
    while above[place] != place:
        above[place] = above[above[place]]
        place = above[place]
    return place
