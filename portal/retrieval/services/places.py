"""Places of a slide that look like an ROI, or the job that has to look through the slide first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from django.db import transaction
from django.utils import timezone

from ml.types import ArrayF32, ArrayF64
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.models import EncoderKind, TissueSample
from portal.retrieval.selectors.places import (
    SAMPLE_KIND,
    PlacesFound,
    SampleKey,
    places_like,
    sample_for,
    sample_job_open,
)
from portal.retrieval.services.submissions import embed_request

SAMPLE_DAYS = 30  # half a megabyte each; a slide is read within a month
SIDE_STEP = math.sqrt(2)
"""Sizes of squares: ROIs within 19 % of a size share its sample."""
LEAST_SIDE_PX = 32  # below, the thumbnail's cells no longer tell tissue from glass
USUAL_OF = 200  # newest ROIs, of which the median is taken
USUAL_SIDE_PX = 512.0  # where nothing is drawn: a field of a quarter of a millimetre at 20x
PLACES_MOST = 50  # nobody presses a key more often before drawing


@dataclass(frozen=True, slots=True)
class SamplePart:
    """What one part of the work found.

    Attributes:
        boxes, vectors: (N, 4) and (N, D), of the squares that have a vector.
        tried: squares of this part. total: of all parts.
        seconds: that it took. is_last: nothing is left to do.
    """

    boxes: ArrayF64
    vectors: ArrayF32
    tried: int
    total: int
    seconds: float
    is_last: bool


def places_or_job(*, roi: Roi, user: User, limit: int = PLACES_MOST) -> PlacesFound | Job:
    """The places of the ROI's slide that are most like it and not drawn on yet.

    Args:
        roi: of a lab of ``user``, with its canvas.
    Returns:
        The places, or the job to wait for first: it embeds the ROI, or looks through the slide.
    Raises:
        InvalidInputError: no slide.
        ConflictError: the ROI is deleted, or there is nothing to embed of it.
    """
    if roi.canvas.kind not in (CanvasKind.SLIDE, CanvasKind.STILL):
        raise InvalidInputError(
            "The next similar region can be found on slides only.", code="no-slide"
        )
    if roi.deleted_at is not None:
        raise ConflictError("This ROI is deleted. Restore it first.", code="roi-deleted")
    kind = EncoderKind.HISTOLOGY
    encoder = selectors.encoder_next(kind) or selectors.encoder_default(kind)
    embedding = selectors.embedding_current(roi=roi, encoder=encoder) if encoder else None
    if encoder is None or embedding is None:
        return embed_request(roi=roi, user=user)
    side_px = side_of(roi)
    sample = sample_for(user=user, canvas=roi.canvas, encoder=encoder, side_px=side_px)
    if sample is None:
        return _submit(roi.canvas, user, side_px)
    return places_like(user=user, roi=roi, embedding=embedding, sample=sample, limit=limit)


def side_of(roi: Roi) -> int:
    """The side of the squares that an ROI is compared with, in level-0 pixels: one of few sizes."""
    width, height = roi.right - roi.left, roi.bottom - roi.top
    return _stepped(math.sqrt(max(width * height, 1.0)), roi.canvas)


def _stepped(side: float, canvas: Canvas) -> int:
    step = round(math.log(max(side, LEAST_SIDE_PX) / LEAST_SIDE_PX, SIDE_STEP))
    most = min(canvas.width_px, canvas.height_px)
    return max(1, min(round(LEAST_SIDE_PX * SIDE_STEP**step), most))


def slide_look_through(*, canvas: Canvas, user: User) -> Job | None:
    """Submit the job that looks through a slide's tissue, in squares as large as ROIs usually are.

    Returns:
        The job; None if ``user`` has such a sample.
    Raises:
        ForbiddenError: less than an annotator of the lab. InvalidInputError: no slide.
        ConflictError: nothing is embedded yet.
    """
    require_role(user, canvas.lab_id, at_least=Role.ANNOTATOR)
    if canvas.kind not in (CanvasKind.SLIDE, CanvasKind.STILL):
        raise InvalidInputError("Only the tissue of slides can be sampled.", code="no-slide")
    encoder = selectors.encoder_default(EncoderKind.HISTOLOGY)
    if encoder is None:
        raise ConflictError("No region of this kind is embedded yet.", code="nothing-embedded")
    side_px = _usual_side(canvas, user)
    known = sample_for(user=user, canvas=canvas, encoder=encoder, side_px=side_px)
    return None if known else _submit(canvas, user, side_px)


def _usual_side(canvas: Canvas, user: User) -> int:
    """Median side of the lab's newest regions on slides, scaled to this one if sizes are known."""
    rois = Roi.objects.live().owned_by(user).filter(lab_id=canvas.lab_id)
    rows = rois.filter(canvas__kind__in=(CanvasKind.SLIDE, CanvasKind.STILL), area_px__gt=0)
    found = rows.order_by("-created_at").values_list(
        "left", "top", "right", "bottom", "canvas__mpp_x"
    )
    sides = [
        math.sqrt((right - left) * (bottom - top))
        * (mpp / canvas.mpp_x if mpp and canvas.mpp_x else 1)
        for left, top, right, bottom, mpp in found[:USUAL_OF]
    ]
    side = float(np.median(sides)) if sides else USUAL_SIDE_PX
    return _stepped(side, canvas)


def sample_add(key: SampleKey, part: SamplePart) -> TissueSample:
    """Keep a part of a sample beside those before. Inside ``effect()`` or ``part()``."""
    row, _ = TissueSample.everything.select_for_update().get_or_create(
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
    """Remove samples older than ``SAMPLE_DAYS``; returns how many there were."""
    old = timezone.now() - timedelta(days=SAMPLE_DAYS)
    return TissueSample.everything.filter(created_at__lt=old).delete()[0]


def _submit(canvas: Canvas, user: User, side_px: int) -> Job:
    """The open job that this person may know of, or one of their own."""
    with transaction.atomic():
        known = sample_job_open(user=user, canvas=canvas, side_px=side_px)
        if known is not None:
            return known
        before = Job.objects.filter(kind=SAMPLE_KIND, target_id=canvas.pk, created_by=user).count()
        return job_submit(
            kind=SAMPLE_KIND,
            args={"canvas_id": str(canvas.pk), "side_px": side_px, "user_id": str(user.pk)},
            lab=canvas.lab,
            user=user,
            target=canvas,
            target_name=canvas.name,
            # Two that one person asks for at once are one job.
            idempotency_key=f"{SAMPLE_KIND}:{canvas.pk}:{side_px}:{user.pk}:{before}",
        )
