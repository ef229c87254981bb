"""Results of a study: agreement and findings of unblinded images.

A submitted reading never changes, so results of an image are cached under a key derived from its
readings. The cache contains only ids and numbers: outlines are patient data and stay in the
database.
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
from portal.reader_studies.agreement import (
    DrawnRegion,
    Finding,
    LabelTally,
    PairAgreement,
    findings,
    pair_agreement,
)
from portal.reader_studies.models import Assignment, Study, SubmittedRegion

CACHE_S = 24 * 3600.0  # entries never go stale: this only frees space
Pair = tuple[uuid.UUID, uuid.UUID]


@dataclass(frozen=True, slots=True)
class ImageResult:
    """Results of one image.

    Attributes:
        readers: Ids of the readers, in the order of the findings.
        pairs: Agreement of each pair of readers.
        left_out: Number of regions without an area.
    """

    canvas: Canvas
    readers: tuple[uuid.UUID, ...]
    pairs: dict[Pair, PairAgreement]
    findings: tuple[Finding, ...]
    left_out: int


def image_result(study: Study, canvas: Canvas) -> ImageResult:
    """Compare the readings of one image.

    Raises:
        ConflictError: it is still read blindly, or fewer than two readings are submitted.
    """
    rows = list(study.readings.filter(canvas=canvas).order_by("person_id"))
    if any(row.is_blind for row in rows):
        raise ConflictError("This image is still being read blindly.", code="blind")
    rows = [row for row in rows if row.submitted_at is not None]
    if len(rows) < 2:
        raise ConflictError("Fewer than two readings have been handed in.", code="not-submitted")
    return _results(study, [(canvas, rows)])[0]


def image_results(study: Study) -> list[ImageResult]:
    """Results of all images that can be compared, in the order they were added."""
    readings: dict[uuid.UUID, list[Assignment]] = {}
    rows = study.readings.select_related("canvas__case").order_by("created_at", "id")
    for reading in rows:
        readings.setdefault(reading.canvas_id, []).append(reading)
    images = []
    for of_canvas in readings.values():
        submitted = [reading for reading in of_canvas if reading.submitted_at is not None]
        if len(submitted) > 1 and not any(reading.is_blind for reading in of_canvas):
            submitted.sort(key=lambda reading: str(reading.person_id))
            images.append((of_canvas[0].canvas, submitted))
    return _results(study, images)


def agreement_of(results: Iterable[ImageResult]) -> dict[Pair, PairAgreement]:
    """Agreement of each pair over all images."""
    total: dict[Pair, PairAgreement] = {}
    for result in results:
        for pair, agreement in result.pairs.items():
            total.setdefault(pair, PairAgreement()).add(agreement)
    return total


def label_key(label: Label) -> str:
    """Key of a label in agreement results; the empty string means none."""
    return str(label.pk)


def _results(study: Study, images: Sequence[tuple[Canvas, list[Assignment]]]) -> list[ImageResult]:
    """Results of images, cached where possible; the outlines of cached ones take one query."""
    stored = [cache.get(_name(study, rows)) for _, rows in images]
    outlines = _outlines([stored_result for stored_result in stored if stored_result is not None])
    return [
        _compute_result(study, canvas, rows)
        if stored_result is None
        else _from_json(stored_result, canvas, tuple(row.person_id for row in rows), outlines)
        for (canvas, rows), stored_result in zip(images, stored, strict=True)
    ]


def _outlines(stored: Sequence[JsonObject]) -> dict[uuid.UUID, BaseGeometry]:
    """Outlines of all regions in these results, by the id of the submitted revision."""
    ids = {
        row[1]
        for stored_result in stored
        for _, _, regions, _ in stored_result["findings"]
        for row in regions
    }
    rows = SubmittedRegion.objects.filter(revision__in=ids).values_list(
        "revision_id", "revision__geometry"
    )
    return {pk: _outline(geometry) for pk, geometry in (rows if ids else ())}


def _outline(geometry: JsonObject) -> BaseGeometry:
    return shapely.make_valid(shape(geometry))


def _compute_result(study: Study, canvas: Canvas, rows: list[Assignment]) -> ImageResult:
    name, readers = _name(study, rows), tuple(row.person_id for row in rows)
    regions, left_out = _regions(rows)
    plane = float(canvas.width_px) * canvas.height_px
    pairs = {
        (readers[i], readers[j]): pair_agreement(
            regions[i], regions[j], plane_px=plane, min_iou=study.min_iou
        )
        for i, j in combinations(range(len(rows)), 2)
    }
    image_findings = tuple(findings(regions, min_iou=study.min_iou))
    result = ImageResult(canvas, readers, pairs, image_findings, left_out)
    cache.set(name, _as_json(result), CACHE_S)
    return result


def _as_json(result: ImageResult) -> JsonObject:
    """JSON form stored in the cache."""
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
                str(finding.id),
                finding.state,
                [[k, str(r.id), str(r.roi), r.label, r.frame] for k, r in finding.regions],
                finding.iou,
            ]
            for finding in result.findings
        ],
        "left_out": result.left_out,
    }


def _from_json(
    stored: JsonObject,
    canvas: Canvas,
    readers: tuple[uuid.UUID, ...],
    outlines: dict[uuid.UUID, BaseGeometry],
) -> ImageResult:
    pairs = {
        (uuid.UUID(a), uuid.UUID(b)): PairAgreement(
            {label: LabelTally(*tally) for label, tally in labels.items()},
            {(name_a, name_b): count for name_a, name_b, count in named},
        )
        for a, b, labels, named in stored["pairs"]
    }
    image_findings = tuple(
        Finding(uuid.UUID(pk), state, tuple(_region(row, outlines) for row in regions), iou)
        for pk, state, regions, iou in stored["findings"]
    )
    return ImageResult(canvas, readers, pairs, image_findings, stored["left_out"])


def _region(
    stored: Sequence[Any], outlines: dict[uuid.UUID, BaseGeometry]
) -> tuple[int, DrawnRegion]:
    k, pk, roi, label, frame = stored
    revision = uuid.UUID(pk)
    return k, DrawnRegion(revision, uuid.UUID(roi), label, outlines[revision], frame)


def _name(study: Study, rows: Iterable[Assignment]) -> str:
    key = repr([study.min_iou, *((str(row.pk), str(row.submitted_at)) for row in rows)])
    return f"agreement:{hashlib.sha256(key.encode()).hexdigest()[:40]}"


def _regions(rows: list[Assignment]) -> tuple[list[list[DrawnRegion]], int]:
    """Submitted regions of each reading, and the number of those without an area."""
    place = {row.pk: k for k, row in enumerate(rows)}
    regions_of_reader: list[list[DrawnRegion]] = [[] for _ in rows]
    left_out = 0
    submitted = SubmittedRegion.objects.filter(assignment__in=rows).order_by("revision_id")
    for row in submitted.select_related("revision__roi").defer("revision__roi__geometry"):
        outline = _outline(row.revision.geometry)
        if not outline.area:
            left_out += 1
            continue
        region = DrawnRegion(
            id=row.revision_id,
            roi=row.revision.roi_id,
            label=str(row.revision.label_id or ""),
            outline=outline,
            frame=row.revision.roi.frame_index,
        )
        regions_of_reader[place[row.assignment_id]].append(region)
    return regions_of_reader, left_out
