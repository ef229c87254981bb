"""Find similar regions of a slide, and sample its tissue."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from django.db import transaction
from django.utils import timezone

from ml.types import ArrayF32, ArrayF64
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.embeddings.selectors.embeddings import embedding_current
from portal.embeddings.selectors.encoders import encoder_default, encoder_next
from portal.embeddings.services.submissions import embed_request
from portal.explore.models import TissueSample
from portal.explore.selectors.similar_regions import (
    SAMPLE_KIND,
    SampleKey,
    SimilarRegions,
    sample_for,
    sample_job_open,
    similar_regions,
)
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Role, User
from portal.labs.rules import require_role

SAMPLE_DAYS = 30  # half a megabyte each
SIDE_STEP = math.sqrt(2)
"""Ratio of consecutive sizes: ROIs within 19 % of a size share its sample."""
MIN_SIDE_PX = 32  # smallest size at which the thumbnail tells tissue from glass
USUAL_SIDE_ROIS = 200  # newest ROIs for the median
USUAL_SIDE_PX = 512.0  # without ROIs: a quarter of a millimetre at 20x
MAX_SIMILAR_REGIONS = 50  # enough to step through


@dataclass(frozen=True, slots=True)
class SamplePart:
    """Result of one part of a tissue sample.

    Attributes:
        boxes, vectors: (N, 4) and (N, D), squares that have a vector.
        tried: Number of squares in this part.
        total: Number of squares in all parts.
        seconds: Duration of this part.
        is_last: Whether the sample is complete.
    """

    boxes: ArrayF64
    vectors: ArrayF32
    tried: int
    total: int
    seconds: float
    is_last: bool


def similar_regions_or_job(
    *, roi: Roi, user: User, limit: int = MAX_SIMILAR_REGIONS
) -> SimilarRegions | Job:
    """Find the squares of the ROI's slide that are most similar to it.

    Args:
        roi: ROI of a lab of ``user``, with its canvas.
    Returns:
        The squares, or the job to wait for: it embeds the ROI, or samples the slide.
    Raises:
        InvalidInputError: The canvas is not a slide.
        ConflictError: The ROI is deleted, or has nothing to embed.
    """
    if not _is_sampled(roi.canvas):
        raise InvalidInputError(
            "Similar regions can be found on slides and stills of histology only.", code="no-slide"
        )
    if roi.deleted_at is not None:
        raise ConflictError("This region is deleted. Restore it first.", code="roi-deleted")
    kind = Modality.HISTOLOGY
    encoder = encoder_next(kind) or encoder_default(kind)
    embedding = embedding_current(roi=roi, encoder=encoder) if encoder else None
    if encoder is None or embedding is None:
        return embed_request(roi=roi, user=user)
    side_px = side_of(roi)
    sample = sample_for(user=user, canvas=roi.canvas, encoder=encoder, side_px=side_px)
    if sample is None:
        return _submit(roi.canvas, user, side_px)
    return similar_regions(user=user, roi=roi, embedding=embedding, sample=sample, limit=limit)


def side_of(roi: Roi) -> int:
    """Side of the squares that an ROI is compared with, in level-0 pixels; one of few sizes."""
    width, height = roi.right - roi.left, roi.bottom - roi.top
    return _nearest_step(math.sqrt(max(width * height, 1.0)), roi.canvas)


def _nearest_step(side: float, canvas: Canvas) -> int:
    step = round(math.log(max(side, MIN_SIDE_PX) / MIN_SIDE_PX, SIDE_STEP))
    largest = min(canvas.width_px, canvas.height_px)
    return max(1, min(round(MIN_SIDE_PX * SIDE_STEP**step), largest))


def tissue_sample_submit(*, canvas: Canvas, user: User) -> Job | None:
    """Submit the job that samples a slide's tissue, in squares of the usual size of ROIs.

    Returns:
        The job; None if ``user`` has such a sample.
    Raises:
        ForbiddenError: The user is less than an annotator of the lab.
        InvalidInputError: The canvas is not a slide.
        ConflictError: Nothing is embedded yet.
    """
    require_role(user, canvas.lab_id, at_least=Role.ANNOTATOR)
    if not _is_sampled(canvas):
        raise InvalidInputError("Only images of histology can be sampled.", code="no-slide")
    encoder = encoder_default(Modality.HISTOLOGY)
    if encoder is None:
        raise ConflictError("No region of this kind is embedded yet.", code="nothing-embedded")
    side_px = _usual_side(canvas, user)
    sample = sample_for(user=user, canvas=canvas, encoder=encoder, side_px=side_px)
    return None if sample else _submit(canvas, user, side_px)


def _is_sampled(canvas: Canvas) -> bool:
    is_flat = canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL)
    return is_flat and canvas.modality == Modality.HISTOLOGY


def _usual_side(canvas: Canvas, user: User) -> int:
    """Median side of the lab's newest regions on slides, scaled to this one if sizes are known."""
    rois = Roi.objects.live().owned_by(user).filter(lab_id=canvas.lab_id)
    rows = rois.filter(
        canvas__kind__in=(CanvasKind.SLIDE, CanvasKind.STILL),
        canvas__modality=Modality.HISTOLOGY,
        area_px__gt=0,
    )
    sizes = rows.order_by("-created_at").values_list(
        "left", "top", "right", "bottom", "canvas__mpp_x"
    )
    sides = [
        math.sqrt((right - left) * (bottom - top))
        * (mpp / canvas.mpp_x if mpp and canvas.mpp_x else 1)
        for left, top, right, bottom, mpp in sizes[:USUAL_SIDE_ROIS]
    ]
    side = float(np.median(sides)) if sides else USUAL_SIDE_PX
    return _nearest_step(side, canvas)


def sample_add(key: SampleKey, part: SamplePart) -> TissueSample:
    """Append a part to a sample. Call inside ``effect()`` or ``part()``."""
    row, _ = TissueSample.all_objects.select_for_update().get_or_create(
        canvas=key.canvas,
        encoder=key.encoder,
        user_id=key.user_id,
        side_px=key.side_px,
        defaults={"lab_id": key.canvas.lab_id},
    )
    row.total, row.tried = part.total, row.tried + part.tried
    row.seconds += part.seconds
    row.boxes = bytes(row.boxes) + np.ascontiguousarray(part.boxes, dtype="<f4").tobytes()
    row.vectors = bytes(row.vectors) + np.ascontiguousarray(part.vectors, dtype="<f4").tobytes()
    row.is_complete = part.is_last
    row.save()
    return row


def samples_sweep() -> int:
    """Delete samples older than ``SAMPLE_DAYS``; returns their number."""
    old = timezone.now() - timedelta(days=SAMPLE_DAYS)
    return TissueSample.all_objects.filter(created_at__lt=old).delete()[0]


def samples_delete(*, canvas_id: uuid.UUID) -> None:
    """Delete the samples of a canvas whose pixel size or display range has changed."""
    TissueSample.all_objects.filter(canvas=canvas_id).delete()


def _submit(canvas: Canvas, user: User, side_px: int) -> Job:
    """Unfinished job visible to the person, or a new one."""
    with transaction.atomic():
        open_job = sample_job_open(user=user, canvas=canvas, side_px=side_px)
        if open_job is not None:
            return open_job
        return job_submit(
            kind=SAMPLE_KIND,
            args={"canvas_id": str(canvas.pk), "side_px": side_px, "user_id": str(user.pk)},
            lab=canvas.lab,
            user=user,
            target=canvas,
            target_name=canvas.name,
            is_unique=True,
        )
