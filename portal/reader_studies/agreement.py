"""Agreement of two readings of an image, computed from plain values.

- Regions are *matched* one to one by the Hungarian method, which maximizes the sum of their
  overlaps (intersection over union, IoU); pairs below a minimum overlap do not count.
- *Dice* compares areas, by label: twice the area that both drew, over the sum of both areas.
- *Kappa by label* is Cohen's kappa of areas: every point of the image either has this label or not,
  for each reader. For a video, only frames on which either drew count.
- *Kappa of labels* is Cohen's kappa of regions: whether both readers gave matched regions the same
  label; regions are matched regardless of label.

Points and lines have no area and are not compared.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain, combinations

import numpy as np
import shapely
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from shapely import STRtree
from shapely.geometry.base import BaseGeometry

SAME_LABEL_FIRST = 1e-6
"""Bonus that prefers the pair with the same label among equal overlaps."""
Node = tuple[int, int]
"""Number of the reader, and index of the region among those of this reader."""
_FIRST = ("label", "missing", "agreed")
"""States of findings, the least agreed first."""


@dataclass(frozen=True, slots=True)
class DrawnRegion:
    """A reader's region in level-0 pixels: ``id`` of the revision, ``frame`` of a video."""

    id: uuid.UUID
    roi: uuid.UUID
    label: str
    outline: BaseGeometry
    frame: int | None = None


@dataclass(slots=True)
class LabelTally:
    """Sums for the measures of one label; tallies of several images are added.

    Attributes:
        n_a, n_b, matched: Number of regions.
        iou_sum: Sum over the matched regions.
        area_a, area_b, area_both, plane: In pixels; ``plane`` is the area of all compared images.
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
        """Mean overlap of matched regions; None without any."""
        return self.iou_sum / self.matched if self.matched else None

    @property
    def f1(self) -> float | None:
        """Twice the matched over all regions of both readers."""
        total = self.n_a + self.n_b
        return 2 * self.matched / total if total else None

    @property
    def dice(self) -> float | None:
        """Dice coefficient of areas; None if neither drew any."""
        total = self.area_a + self.area_b
        return 2 * self.area_both / total if total else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa of areas; None if the expected agreement is 1."""
        if not self.plane:
            return None
        a, b, both = (x / self.plane for x in (self.area_a, self.area_b, self.area_both))
        return _kappa(observed=1 - (a + b - 2 * both), expected=a * b + (1 - a) * (1 - b))


@dataclass(slots=True)
class PairAgreement:
    """Agreement of two readers by label; ``named`` counts pairs of labels of matched regions."""

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
        """Cohen's kappa of matched regions; None if the expected agreement is 1."""
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
    """A finding: matching regions of the readers who drew it.

    Attributes:
        state: ``agreed`` (all drew it, with one label), ``label`` (all, with several) or
            ``missing`` (a reader did not draw it, or elsewhere).
        regions: (reader, region), in the order of the readers.
        iou: Smallest overlap of any two of them; None for a single region.
    """

    id: uuid.UUID
    state: str
    regions: tuple[tuple[int, DrawnRegion], ...]
    iou: float | None

    @property
    def place(self) -> tuple[int, float, str]:
        """Unique sort key among the findings of an image, least agreed first."""
        return _FIRST.index(self.state), self.iou or 0.0, str(self.id)


def matches(
    a: Sequence[DrawnRegion], b: Sequence[DrawnRegion], *, min_iou: float, by_label: bool
) -> list[tuple[int, int, float]]:
    """Indices in ``a`` and ``b`` of matched regions, with their overlap; each at most once.

    Args:
        by_label: Match only regions of the same label.
    """
    from scipy.optimize import linear_sum_assignment

    overlaps = {
        (i, j): iou
        for i, j in _touching_pairs(a, b)
        if (not by_label or a[i].label == b[j].label)
        and (iou := _iou(a[i].outline, b[j].outline)) >= min_iou
    }
    matched: list[tuple[int, int, float]] = []
    for group in _components(((0, i), (1, j)) for i, j in overlaps):  # each is matched separately
        rows, columns = ([i for reader, i in group if reader == side] for side in (0, 1))
        gain = np.zeros((len(rows), len(columns)))
        for r, i in enumerate(rows):
            for c, j in enumerate(columns):
                if (i, j) in overlaps:
                    gain[r, c] = overlaps[i, j] + SAME_LABEL_FIRST * (a[i].label == b[j].label)
        chosen = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
        pairs = ((rows[r], columns[c]) for r, c in chosen)
        matched += [(i, j, overlaps[i, j]) for i, j in pairs if (i, j) in overlaps]
    return sorted(matched)


def pair_agreement(
    a: Sequence[DrawnRegion], b: Sequence[DrawnRegion], *, plane_px: float, min_iou: float
) -> PairAgreement:
    """Agreement of two readings of one image with an area of ``plane_px``, by label."""
    result = PairAgreement()
    frames = {region.frame for region in (*a, *b)}
    plane = plane_px * max(1, len(frames))
    for label in sorted({region.label for region in (*a, *b)}):
        of_a = [region for region in a if region.label == label]
        of_b = [region for region in b if region.label == label]
        pairs = matches(of_a, of_b, min_iou=min_iou, by_label=True)
        tally = LabelTally(
            len(of_a), len(of_b), len(pairs), sum(iou for *_, iou in pairs), plane=plane
        )
        for frame in frames:
            area_a, area_b = _union(of_a, frame), _union(of_b, frame)
            tally.area_a += area_a.area
            tally.area_b += area_b.area
            tally.area_both += shapely.intersection(area_a, area_b).area
        result.labels[label] = tally
    for i, j, _ in matches(a, b, min_iou=min_iou, by_label=False):
        names = (a[i].label, b[j].label)
        result.named[names] = result.named.get(names, 0) + 1
    return result


def findings(readings: Sequence[Sequence[DrawnRegion]], *, min_iou: float) -> list[Finding]:
    """Group the regions of all readers into findings, the least agreed first.

    A finding is a connected component of the graph whose edges are the matches of two readers.
    """
    regions = [(k, i) for k, reading in enumerate(readings) for i in range(len(reading))]
    iou_of_pair: dict[tuple[Node, Node], float] = {}
    for k, m in combinations(range(len(readings)), 2):
        for i, j, iou in matches(readings[k], readings[m], min_iou=min_iou, by_label=False):
            iou_of_pair[(k, i), (m, j)] = iou
    groups = _components(iou_of_pair, nodes=regions)
    rows = [_finding(readings, group, iou_of_pair) for group in groups]
    return sorted(rows, key=lambda finding: finding.place)


def merged(outlines: Sequence[BaseGeometry], *, readers: int) -> BaseGeometry:
    """Area that at least half of the readers drew; of two readers the union."""
    needed = max(1, -(-readers // 2))
    parts = [
        shapely.intersection_all(list(group)) for group in combinations(outlines, needed)
    ]  # at most 252 for ten readers
    flat = [polygon for part in parts for polygon in shapely.get_parts(part) if polygon.area > 0]
    return shapely.union_all(flat)


def _finding(
    readings: Sequence[Sequence[DrawnRegion]],
    group: Sequence[Node],
    iou_of_pair: Mapping[tuple[Node, Node], float],
) -> Finding:
    regions = tuple((k, readings[k][i]) for k, i in sorted(group))
    name = ",".join(sorted(str(region.id) for _, region in regions))
    ious = [iou_of_pair[pair] for pair in combinations(sorted(group), 2) if pair in iou_of_pair]
    state = "missing"
    if {k for k, _ in regions} == set(range(len(readings))):
        state = "agreed" if len({region.label for _, region in regions}) == 1 else "label"
    return Finding(
        uuid.uuid5(uuid.NAMESPACE_OID, name), state, regions, min(ious) if ious else None
    )


def _kappa(*, observed: float, expected: float) -> float | None:
    return None if 1 - expected < 1e-12 else (observed - expected) / (1 - expected)


def _union(regions: Iterable[DrawnRegion], frame: int | None) -> BaseGeometry:
    return shapely.union_all([region.outline for region in regions if region.frame == frame])


def _iou(a: BaseGeometry, b: BaseGeometry) -> float:
    both = shapely.intersection(a, b).area
    return float(both / (a.area + b.area - both)) if both else 0.0


def _touching_pairs(
    a: Sequence[DrawnRegion], b: Sequence[DrawnRegion]
) -> Iterator[tuple[int, int]]:
    """Yield the indices of each two regions of the same frame that touch."""
    if not a or not b:
        return
    tree = STRtree([region.outline for region in b])
    for i, j in tree.query([region.outline for region in a], predicate="intersects").T.tolist():
        if a[i].frame == b[j].frame:
            yield i, j


def _components(
    pairs: Iterable[tuple[Node, Node]], *, nodes: Iterable[Node] = ()
) -> list[list[Node]]:
    """Connected components of the graph of these pairs and nodes."""
    edges = list(pairs)
    number = {node: n for n, node in enumerate(dict.fromkeys([*nodes, *chain(*edges)]))}
    if not number:
        return []
    rows, columns = ([number[edge[side]] for edge in edges] for side in (0, 1))
    graph = coo_array((np.ones(len(edges)), (rows, columns)), shape=(len(number), len(number)))
    groups: defaultdict[int, list[Node]] = defaultdict(list)
    for node, group in zip(number, connected_components(graph, directed=False)[1], strict=True):
        groups[int(group)].append(node)
    return list(groups.values())
