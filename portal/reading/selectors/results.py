"""Results of a study: agreement and findings, of images whose blinding is lifted.

A reading that was handed in never changes, so what was computed for an image is kept in the cache
under a name that follows from its readings. The cache holds ids and figures alone: outlines are a
patient's data, and stay in the database.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations
from typing import Any

import shapely
from django.core.cache import cache
from shapely.geometry import shape
from shapely.geometry.base import BaseGeometry

from ml.types import JsonObject
from portal.annotations.models import Label
from portal.archive.models import Canvas
from portal.core.errors import ConflictError
from portal.reading.agreement import (
    DrawnRegion,
    Finding,
    LabelTally,
    PairAgreement,
    findings,
    pair_agreement,
)
from portal.reading.models import Assignment, Study, SubmittedRegion

KEPT_S = 24 * 3600.0  # named by what was submitted, it never goes stale: this only frees space
Pair = tuple[uuid.UUID, uuid.UUID]


@dataclass(frozen=True, slots=True)
class ImageResult:
    """The results of one image.

    Attributes:
        readers: ids of the people, in the order in which findings count them.
        pairs: agreement of each two of them. left_out: regions without an area.
    """

    canvas: Canvas
    readers: tuple[uuid.UUID, ...]
    pairs: dict[Pair, PairAgreement]
    findings: tuple[Finding, ...]
    left_out: int


def image_result(study: Study, canvas: Canvas) -> ImageResult:
    """Compare the readings of one image.

    Raises:
        ConflictError: it is still read blindly, or fewer than two readings are handed in.
    """
    rows = list(study.readings.filter(canvas=canvas).order_by("person_id"))
    if any(one.is_blind for one in rows):
        raise ConflictError("This image is still being read blindly.", code="blind")
    rows = [one for one in rows if one.submitted_at is not None]
    if len(rows) < 2:
        raise ConflictError("Fewer than two readings have been handed in.", code="not-submitted")
    return _results(study, [(canvas, rows)])[0]


def image_results(study: Study) -> list[ImageResult]:
    """Those of all images that can be compared, in the order they were added."""
    readings: dict[uuid.UUID, list[Assignment]] = {}
    rows = study.readings.select_related("canvas__case").order_by("created_at", "id")
    for one in rows:
        readings.setdefault(one.canvas_id, []).append(one)
    images = []
    for of_canvas in readings.values():
        done = [one for one in of_canvas if one.submitted_at is not None]
        if len(done) > 1 and not any(one.is_blind for one in of_canvas):
            done.sort(key=lambda one: str(one.person_id))
            images.append((of_canvas[0].canvas, done))
    return _results(study, images)


def agreement_of(results: Iterable[ImageResult]) -> dict[Pair, PairAgreement]:
    """Each pair's over all images."""
    total: dict[Pair, PairAgreement] = {}
    for result in results:
        for pair, agreement in result.pairs.items():
            total.setdefault(pair, PairAgreement()).add(agreement)
    return total


def label_key(label: Label) -> str:
    """As agreement names it; the empty string stands for none."""
    return str(label.pk)


def _results(study: Study, images: Sequence[tuple[Canvas, list[Assignment]]]) -> list[ImageResult]:
    """Results of images, cached where possible; the outlines of cached ones take one query."""
    kept = [cache.get(_name(study, rows)) for _, rows in images]
    outlines = _outlines([one for one in kept if one is not None])
    return [
        _computed(study, canvas, rows)
        if one is None
        else _from_json(one, canvas, tuple(row.person_id for row in rows), outlines)
        for (canvas, rows), one in zip(images, kept, strict=True)
    ]


def _outlines(kept: Sequence[JsonObject]) -> dict[uuid.UUID, BaseGeometry]:
    """The outlines of all regions in these, by the id of the revision that was handed in."""
    ids = {row[1] for one in kept for _, _, regions, _ in one["findings"] for row in regions}
    rows = SubmittedRegion.objects.filter(revision__in=ids).values_list(
        "revision_id", "revision__geometry"
    )
    return {pk: _outline(geometry) for pk, geometry in (rows if ids else ())}


def _outline(geometry: JsonObject) -> BaseGeometry:
    return shapely.make_valid(shape(geometry))


def _computed(study: Study, canvas: Canvas, rows: list[Assignment]) -> ImageResult:
    name, readers = _name(study, rows), tuple(one.person_id for one in rows)
    regions, left_out = _regions(rows)
    plane = float(canvas.width_px) * canvas.height_px
    pairs = {
        (readers[i], readers[j]): pair_agreement(
            regions[i], regions[j], plane_px=plane, iou_least=study.iou_least
        )
        for i, j in combinations(range(len(rows)), 2)
    }
    found = tuple(findings(regions, iou_least=study.iou_least))
    result = ImageResult(canvas, readers, pairs, found, left_out)
    cache.set(name, _as_json(result), KEPT_S)
    return result


def _as_json(result: ImageResult) -> JsonObject:
    """JSON form kept in the cache."""
    return {
        "pairs": [
            [
                *map(str, pair),
                {label: astuple(tally) for label, tally in agreement.labels.items()},
                [[*names, count] for names, count in agreement.named.items()],
            ]
            for pair, agreement in result.pairs.items()
        ],
        "findings": [
            [
                str(one.id),
                one.state,
                [[k, str(r.id), str(r.roi), r.label, r.frame] for k, r in one.regions],
                one.iou,
            ]
            for one in result.findings
        ],
        "left_out": result.left_out,
    }


def _from_json(
    kept: JsonObject,
    canvas: Canvas,
    readers: tuple[uuid.UUID, ...],
    outlines: dict[uuid.UUID, BaseGeometry],
) -> ImageResult:
    pairs = {
        (uuid.UUID(a), uuid.UUID(b)): PairAgreement(
            {label: LabelTally(*tally) for label, tally in labels.items()},
            {(name_a, name_b): count for name_a, name_b, count in named},
        )
        for a, b, labels, named in kept["pairs"]
    }
    found = tuple(
        Finding(uuid.UUID(pk), state, tuple(_region(row, outlines) for row in regions), iou)
        for pk, state, regions, iou in kept["findings"]
    )
    return ImageResult(canvas, readers, pairs, found, kept["left_out"])


def _region(
    kept: Sequence[Any], outlines: dict[uuid.UUID, BaseGeometry]
) -> tuple[int, DrawnRegion]:
    k, pk, roi, label, frame = kept
    revision = uuid.UUID(pk)
    return k, DrawnRegion(revision, uuid.UUID(roi), label, outlines[revision], frame)


def _name(study: Study, rows: Iterable[Assignment]) -> str:
    told = repr([study.iou_least, *((str(one.pk), str(one.submitted_at)) for one in rows)])
    return f"agreement:{hashlib.sha256(told.encode()).hexdigest()[:40]}"


def _regions(rows: list[Assignment]) -> tuple[list[list[DrawnRegion]], int]:
    """Of each reading, as they were handed in; and how many have no area."""
    place = {one.pk: k for k, one in enumerate(rows)}
    found: list[list[DrawnRegion]] = [[] for _ in rows]
    left_out = 0
    submitted = SubmittedRegion.objects.filter(assignment__in=rows).order_by("revision_id")
    for one in submitted.select_related("revision__roi").defer("revision__roi__geometry"):
        outline = _outline(one.revision.geometry)
        if not outline.area:
            left_out += 1
            continue
        region = DrawnRegion(
            id=one.revision_id,
            roi=one.revision.roi_id,
            label=str(one.revision.label_id or ""),
            outline=outline,
            frame=one.revision.roi.frame_index,
        )
        found[place[one.assignment_id]].append(region)
    return found, left_out
