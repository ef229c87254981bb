"""Regions of a slide that look like one of its ROIs and are not drawn yet."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import shapely

from ml.index.exact import exact_distances
from ml.index.ranking.conformal_bound import MAX_QUERIES, conformal_bound, nearest_elsewhere
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors.embeddings import vector_of
from portal.explore.models import TissueSample
from portal.jobs.models import ENDED_STATES, Job
from portal.labs.models import User
from portal.search.selectors.hits import Significance, calibration_for

SAMPLE_KIND = "tissue_sample"
MAX_COVERED = 0.2  # share of a square covered by ROIs above which it is left out
MAX_AREA_RATIO = 16.0
"""An ROI larger than this many squares (four times as wide) is context, such as "tumour" or "the
section"; squares inside it are still searched."""
MAX_OVERLAP = 0.25  # share of a square that a nearer one may cover


@dataclass(frozen=True, slots=True)
class SampleKey:
    """Identity of a tissue sample: slide, encoder, square size and owner."""

    canvas: Canvas
    encoder: Encoder
    side_px: int
    user_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class SimilarRegion:
    """Square of the slide.

    Attributes:
        bounds: Left, top, right, bottom in level-0 pixels.
        distance, p_value: See ``Hit``.
        is_close: As for ``Hit``, and as close as similar tissue of the slide is to itself.
    """

    bounds: tuple[float, float, float, float]
    distance: float
    p_value: float | None
    is_close: bool | None


@dataclass(frozen=True, slots=True)
class SimilarRegions:
    """Squares most similar to an ROI, nearest first, without overlaps.

    Attributes:
        looked_at: Squares with a vector.
        drawn_on: Of these, squares left out because ROIs cover them.
        tried, total: Embedded squares, and squares in the tissue; if ``total`` is larger, a sample
            was embedded.
        side_px: Side of each square.
    """

    regions: tuple[SimilarRegion, ...]
    looked_at: int
    drawn_on: int
    tried: int
    total: int
    side_px: int
    encoder: Encoder


def sample_for(
    *, user: User, canvas: Canvas, encoder: Encoder, side_px: int
) -> TissueSample | None:
    """Complete sample of a slide that the person may use."""
    rows = TissueSample.objects.owned_by(user).filter(
        canvas=canvas, encoder=encoder, side_px=side_px, is_complete=True
    )
    return rows.order_by("created_at").first()


def sample_of(key: SampleKey) -> TissueSample | None:
    """The sample to fill, if it was started (for tasks)."""
    rows = TissueSample.all_objects.filter(canvas=key.canvas, encoder=key.encoder)
    return rows.filter(side_px=key.side_px, user=key.user_id).first()


def sample_job_open(*, user: User, canvas: Canvas, side_px: int) -> Job | None:
    """Unfinished job that samples the slide at this size, if visible to the person."""
    jobs = Job.objects.owned_by(user).filter(
        kind=SAMPLE_KIND, target_id=canvas.pk, args__side_px=side_px
    )
    return jobs.exclude(state__in=ENDED_STATES).order_by("created_at").first()


def similar_regions(
    *, user: User, roi: Roi, embedding: Embedding, sample: TissueSample, limit: int
) -> SimilarRegions:
    """Squares of a complete sample that are most similar to an ROI of the slide.

    Squares covered by ROIs that are visible to the person are left out.
    """
    boxes = _floats(sample.boxes, 4).astype(np.float64)
    vectors = _floats(sample.vectors, sample.encoder.dim)
    distance = exact_distances(vector_of(embedding), vectors)
    is_free = ~_is_covered(boxes, _visible_areas(user, roi.canvas))
    free = np.flatnonzero(is_free)
    nearest = free[np.argsort(distance[free], kind="stable")]
    significance = Significance(calibration_for(sample.encoder), len(free))
    chosen = _drop_overlaps(boxes, nearest, limit)
    bound = conformal_bound(nearest_elsewhere(vectors, _is_uncovered(boxes)))
    return SimilarRegions(
        tuple(_region(boxes[at], float(distance[at]), significance, bound) for at in chosen),
        looked_at=len(boxes),
        drawn_on=len(boxes) - len(free),
        tried=sample.tried,
        total=sample.total,
        side_px=sample.side_px,
        encoder=sample.encoder,
    )


def _region(
    box: ArrayF64, distance: float, significance: Significance, bound: float | None
) -> SimilarRegion:
    left, top, right, bottom = box.tolist()
    calibration = significance.calibration
    p_value = None if calibration is None else calibration.p_value(distance)
    is_close = significance.is_close(distance)
    if bound is not None:
        is_close = is_close is not False and distance <= bound
    return SimilarRegion((left, top, right, bottom), distance, p_value, is_close)


def _is_uncovered(boxes: ArrayF64) -> ArrayBool:
    """(Q, N) bool: whether a square is not covered by one of the first Q, which are random."""
    chosen_boxes = boxes[:MAX_QUERIES, None]
    size = np.minimum(chosen_boxes[..., 2:], boxes[:, 2:]) - np.maximum(
        chosen_boxes[..., :2], boxes[:, :2]
    )
    shared = np.clip(size, 0, None).prod(axis=2)
    return np.asarray(shared <= MAX_COVERED * _areas(boxes))


def _visible_areas(user: User, canvas: Canvas) -> ArrayF64:
    """Bounds and area of the visible ROIs, (N, 5). One query."""
    rois = Roi.objects.live().owned_by(user).filter(canvas=canvas).exclude(shape__in=MARKS)
    rows = rois.order_by().values_list("left", "top", "right", "bottom", "area_px")
    return np.array(list(rows), np.float64).reshape(-1, 5)


def _is_covered(boxes: ArrayF64, areas: ArrayF64) -> ArrayBool:
    """Squares covered by ROIs by more than ``MAX_COVERED``, (N,).

    An ROI's area is taken as spread evenly over its bounds.
    """
    covered = np.zeros(len(boxes))
    if len(boxes) and len(areas):
        square = (boxes[0, 2] - boxes[0, 0]) * (boxes[0, 3] - boxes[0, 1])
        areas = areas[areas[:, 4] <= MAX_AREA_RATIO * square]
        fills = areas[:, 4] / np.maximum(_areas(areas[:, :4]), 1e-9)
        tree = shapely.STRtree([shapely.box(*bounds) for bounds in boxes.tolist()])
        at_area, at_box = tree.query(shapely.box(*areas[:, :4].T))
        shared = _intersections(boxes[at_box], areas[at_area, :4]) * fills[at_area]
        np.add.at(covered, at_box, shared / square)
    return covered > MAX_COVERED


def _drop_overlaps(boxes: ArrayF64, nearest: ArrayI64, limit: int) -> list[int]:
    """First squares, up to ``limit``, that do not overlap an earlier one."""
    chosen: list[int] = []
    for at in nearest.tolist():
        chosen_boxes = boxes[chosen]
        over = _intersections(np.broadcast_to(boxes[at], chosen_boxes.shape), chosen_boxes)
        if not (over > MAX_OVERLAP * _areas(boxes[at][None])).any():
            chosen.append(at)
            if len(chosen) == limit:
                break
    return chosen


def _areas(boxes: ArrayF64) -> ArrayF64:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))


def _intersections(a: ArrayF64, b: ArrayF64) -> ArrayF64:
    """Area of intersection of each pair of boxes, (N,)."""
    size = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
    return np.asarray(np.clip(size, 0, None).prod(axis=1))


def _floats(data: bytes | memoryview, columns: int) -> ArrayF32:
    return np.frombuffer(bytes(data), dtype="<f4").reshape(-1, columns).astype(np.float32)
