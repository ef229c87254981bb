"""Places of a slide that look like one of its ROIs and that nobody has drawn on yet."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import shapely

from ml.index.answers.own_tissue import ASKED_MOST, nearest_elsewhere, own_bound
from ml.index.exact import exact_distances
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.jobs.models import ENDED, Job
from portal.labs.models import User
from portal.retrieval.models import Embedding, Encoder, TissueSample
from portal.retrieval.selectors.embeddings import vector_of
from portal.retrieval.selectors.hits import Meaning, calibration_for

SAMPLE_KIND = "tissue_sample"
DRAWN_ON = 0.2  # of a square: where drawn regions cover more, it counts as drawn on
SURROUNDINGS = 16.0
"""An ROI larger than this many squares (four times as wide) is what lies around it: "tumour",
"the section". What is inside it is still to be drawn."""
SAME_PLACE = 0.25  # of a square that a nearer one covers: less is another place


@dataclass(frozen=True, slots=True)
class SampleKey:
    """Whose sample of which slide, at which size of squares, by which encoder."""

    canvas: Canvas
    encoder: Encoder
    side_px: int
    user_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Place:
    """A square of the slide.

    Attributes:
        bounds: left, top, right, bottom in level-0 pixels.
        distance, p_value: as of a ``Hit``.
        is_close: near as of a ``Hit``, and as near as the slide's own tissue is to its like.
    """

    bounds: tuple[float, float, float, float]
    distance: float
    p_value: float | None
    is_close: bool | None


@dataclass(frozen=True, slots=True)
class PlacesFound:
    """The places most like an ROI, the nearest first, none over another.

    Attributes:
        looked_at: squares with a vector. drawn_on: of them, left out as ROIs cover them.
        tried, total: squares that were embedded, and that the tissue holds; where ``total`` is
            larger, a sample was embedded.
        side_px: of each square.
    """

    places: tuple[Place, ...]
    looked_at: int
    drawn_on: int
    tried: int
    total: int
    side_px: int
    encoder: Encoder


def sample_for(
    *, user: User, canvas: Canvas, encoder: Encoder, side_px: int
) -> TissueSample | None:
    """A complete sample of a slide that this person may use."""
    rows = TissueSample.objects.owned_by(user).filter(
        canvas=canvas, encoder=encoder, side_px=side_px, is_complete=True
    )
    return rows.order_by("created_at").first()


def sample_of(key: SampleKey) -> TissueSample | None:
    """For a task: the sample that it fills, if it has begun."""
    rows = TissueSample.everything.filter(canvas=key.canvas, encoder=key.encoder)
    return rows.filter(side_px=key.side_px, user=key.user_id).first()


def sample_job_open(*, user: User, canvas: Canvas, side_px: int) -> Job | None:
    """The job that samples the slide at this size, of those that this person may know of."""
    jobs = Job.objects.owned_by(user).filter(
        kind=SAMPLE_KIND, target_id=canvas.pk, args__side_px=side_px
    )
    return jobs.exclude(state__in=ENDED).order_by("created_at").first()


def places_like(
    *, user: User, roi: Roi, embedding: Embedding, sample: TissueSample, limit: int
) -> PlacesFound:
    """The places of a complete sample that are most like an ROI of the slide.

    Squares that ROIs cover are left out, if this person may see those ROIs; others do not count.
    """
    boxes = _floats(sample.boxes, 4).astype(np.float64)
    vectors = _floats(sample.vectors, sample.encoder.dim)
    distance = exact_distances(vector_of(embedding), vectors)
    is_free = ~_drawn_on(boxes, _areas_seen(user, roi.canvas))
    free = np.flatnonzero(is_free)
    nearest = free[np.argsort(distance[free], kind="stable")]
    meaning = Meaning(calibration_for(sample.encoder), len(free))
    chosen = _apart(boxes, nearest, limit)
    bound = own_bound(nearest_elsewhere(vectors, _elsewhere(boxes)))
    return PlacesFound(
        tuple(_place(boxes[at], float(distance[at]), meaning, bound) for at in chosen),
        looked_at=len(boxes),
        drawn_on=len(boxes) - len(free),
        tried=sample.tried,
        total=sample.total,
        side_px=sample.side_px,
        encoder=sample.encoder,
    )


def _place(box: ArrayF64, distance: float, meaning: Meaning, bound: float | None) -> Place:
    left, top, right, bottom = box.tolist()
    known = meaning.calibration
    p_value = None if known is None else known.p_value(distance)
    is_close = meaning.is_close(distance)
    if bound is not None:
        is_close = is_close is not False and distance <= bound
    return Place((left, top, right, bottom), distance, p_value, is_close)


def _elsewhere(boxes: ArrayF64) -> ArrayBool:
    """(Q, N): which squares each of the first, a random choice, would not leave out as drawn on."""
    asked = boxes[:ASKED_MOST, None]
    size = np.minimum(asked[..., 2:], boxes[:, 2:]) - np.maximum(asked[..., :2], boxes[:, :2])
    shared = np.clip(size, 0, None).prod(axis=2)
    return np.asarray(shared <= DRAWN_ON * _extent(boxes))


def _areas_seen(user: User, canvas: Canvas) -> ArrayF64:
    """(N, 5): bounds and area of each. One query; no outline is read."""
    rois = Roi.objects.live().owned_by(user).filter(canvas=canvas).exclude(shape__in=MARKS)
    rows = rois.order_by().values_list("left", "top", "right", "bottom", "area_px")
    return np.array(list(rows), np.float64).reshape(-1, 5)


def _drawn_on(boxes: ArrayF64, areas: ArrayF64) -> ArrayBool:
    """(N,): squares that ROIs cover by more than ``DRAWN_ON``.

    An ROI is taken as spread evenly over its bounds: what it fills of them, it fills of each part.
    """
    covered = np.zeros(len(boxes))
    if len(boxes) and len(areas):
        square = (boxes[0, 2] - boxes[0, 0]) * (boxes[0, 3] - boxes[0, 1])
        areas = areas[areas[:, 4] <= SURROUNDINGS * square]
        fills = areas[:, 4] / np.maximum(_extent(areas[:, :4]), 1e-9)
        tree = shapely.STRtree([shapely.box(*one) for one in boxes.tolist()])
        at_area, at_box = tree.query(shapely.box(*areas[:, :4].T))
        shared = _shared(boxes[at_box], areas[at_area, :4]) * fills[at_area]
        np.add.at(covered, at_box, shared / square)
    return covered > DRAWN_ON


def _apart(boxes: ArrayF64, nearest: ArrayI64, limit: int) -> list[int]:
    """The first of them, up to a number, without those that lie over an earlier one."""
    chosen: list[int] = []
    for at in nearest.tolist():
        others = boxes[chosen]
        over = _shared(np.broadcast_to(boxes[at], others.shape), others)
        if not (over > SAME_PLACE * _extent(boxes[at][None])).any():
            chosen.append(at)
            if len(chosen) == limit:
                break
    return chosen


def _extent(boxes: ArrayF64) -> ArrayF64:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))


def _shared(a: ArrayF64, b: ArrayF64) -> ArrayF64:
    """(N,): what each pair of boxes has in common."""
    size = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
    return np.asarray(np.clip(size, 0, None).prod(axis=1))


def _floats(data: bytes | memoryview, columns: int) -> ArrayF32:
    return np.frombuffer(bytes(data), dtype="<f4").reshape(-1, columns).astype(np.float32)
