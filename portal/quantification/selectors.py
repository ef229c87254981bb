"""Reads: figures of a region, of a case, and thresholds of a lab."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet

from ml.quantification.config import QuantificationConfig
from ml.quantification.config import Staining as MlStaining
from ml.types import ArrayF32, JsonObject
from portal.annotations.fixed_sizes import GRID_KEY, FixedSize, fixed_size, grid_sums
from portal.annotations.models import Roi
from portal.archive.models import Canvas, Case
from portal.archive.models.records import canvases_in_trash
from portal.archive.selectors.stains import stain_shown
from portal.jobs.models import ENDED_STATES, Job
from portal.labs.models import User
from portal.quantification.models import QuantificationSettings, RoiQuantification, Staining

QUANTIFY_KIND = "roi_quantify"
THRESHOLDS = QuantificationSettings.edited
_HAEMATOXYLIN_EOSIN = ("H&E", "HES", "Hematoxylin")


@dataclass(frozen=True, slots=True)
class GridFigures:
    """Figures of a grid of fields together.

    Attributes:
        text: Number of fields and sum of their nominal areas: "10 fields, 2.37 mm²".
        measured_count: Fields whose figures are of their present outline.
        nucleus_count, nuclei_per_mm2: Of all fields, over the sum of their nominal areas; None
            until nuclei were counted in all of them.
    """

    text: str
    field_count: int
    area_mm2: float
    measured_count: int
    nucleus_count: int | None
    nuclei_per_mm2: float | None


@dataclass(frozen=True, slots=True)
class RegionFigures:
    """Figures of a region as they are now.

    Attributes:
        row: Newest figures; None if it was never measured.
        job: Unfinished job that measures it, or the newest one if that failed.
        is_stale: The outline or the pixel size has changed since.
        size: Nominal size of a region of a fixed size.
        grid: Figures of the grid that a field belongs to.
    """

    row: RoiQuantification | None
    job: Job | None
    is_stale: bool
    size: FixedSize | None = None
    grid: GridFigures | None = None


def size_of(roi: Roi) -> FixedSize | None:
    """Nominal size of an ROI; None if it has none."""
    canvas = roi.canvas
    return fixed_size(roi.properties, area_px=roi.area_px, mpp_x=canvas.mpp_x, mpp_y=canvas.mpp_y)


def region_figures(user: User, roi: Roi) -> RegionFigures:
    """Figures of an ROI that is visible to the person."""
    row = RoiQuantification.objects.owned_by(user).filter(roi=roi).defer("nuclei").first()
    jobs = Job.objects.owned_by(user).filter(kind=QUANTIFY_KIND, target_id=roi.pk)
    job = jobs.order_by("-created_at").first()
    is_shown = job is not None and (not job.has_ended or job.state == "failed")
    size = size_of(roi)
    grid = grid_figures(user, roi.canvas, size.grid) if size and size.grid else None
    stale = row is not None and is_stale(row, roi)
    return RegionFigures(row, job if is_shown else None, stale, size, grid)


def grid_figures(user: User, canvas: Canvas, grid: str) -> GridFigures:
    """Figures of the fields of a grid together."""
    rois = (
        Roi.objects.visible_to(user)
        .live()
        .filter(canvas=canvas, **{f"properties__{GRID_KEY}": grid})
    )
    grid_rois = [
        roi for roi in rois.select_related("canvas") if (size := size_of(roi)) and size.grid
    ]
    rows = RoiQuantification.objects.owned_by(user).filter(roi__in=grid_rois).defer("nuclei")
    by_roi = {row.roi_id: row for row in rows}
    current = [
        row
        for roi in grid_rois
        if (row := by_roi.get(roi.pk)) is not None and not is_stale(row, roi)
    ]
    total = grid_sums(size_of(roi) for roi in grid_rois)[grid]
    counts = [row.nucleus_count for row in current if row.nucleus_count is not None]
    nuclei = sum(counts) if len(counts) == total.count else None
    return GridFigures(
        text=total.text,
        field_count=total.count,
        area_mm2=round(total.area_mm2, 6),
        measured_count=len(current),
        nucleus_count=nuclei,
        nuclei_per_mm2=None if nuclei is None else nuclei / total.area_mm2,
    )


def region_nuclei(user: User, roi: Roi) -> RoiQuantification | None:
    """Figures of an ROI with its nuclei; None if it was never measured."""
    rows = RoiQuantification.objects.owned_by(user).select_related("roi__canvas")
    quantification: RoiQuantification | None = rows.filter(roi=roi).first()
    return quantification


def job_open(roi: Roi) -> Job | None:
    """Unfinished job that measures an ROI, of any user; for services."""
    jobs = Job.objects.filter(kind=QUANTIFY_KIND, target_id=roi.pk, lab_id=roi.lab_id)
    return jobs.exclude(state__in=ENDED_STATES).order_by("created_at").first()


def is_stale(row: RoiQuantification, roi: Roi) -> bool:
    """True if the outline or the pixel size has changed since the measurement."""
    canvas = roi.canvas
    return (row.outline_hash, row.mpp_x, row.mpp_y) != (
        outline_hash(roi.geometry),
        canvas.mpp_x,
        canvas.mpp_y,
    )


def outline_hash(geometry: JsonObject) -> str:
    """SHA-256 of an outline."""
    return hashlib.sha256(json.dumps(dict(geometry), sort_keys=True).encode()).hexdigest()


def nuclei_of(row: RoiQuantification) -> ArrayF32:
    """(N, 4) float32: x, y and radius in level-0 pixels, and the bin."""
    return np.frombuffer(row.nuclei, "<f4").reshape(-1, 4)


def case_figures(
    user: User, case: Case, *, canvas_id: uuid.UUID | None = None
) -> QuerySet[RoiQuantification]:
    """Figures of the live ROIs of a case, or of one of its images, in the order of drawing."""
    rows = RoiQuantification.objects.owned_by(user).filter(
        roi__canvas__case=case, roi__deleted_at=None
    )
    if canvas_id is not None:
        rows = rows.filter(roi__canvas=canvas_id)
    rows = rows.exclude(roi__canvas__in=canvases_in_trash()).defer("nuclei")
    return rows.select_related("roi__canvas", "roi__label").order_by("roi__created_at", "roi_id")


def settings_of(lab_id: uuid.UUID) -> QuantificationSettings:
    """Thresholds of a lab, the defaults if it never set them."""
    stored: QuantificationSettings | None = QuantificationSettings.objects.filter(
        lab_id=lab_id
    ).first()
    return stored or QuantificationSettings(lab_id=lab_id)


def config_of(lab_id: uuid.UUID, staining: str) -> QuantificationConfig:
    """Configuration of a measurement by the thresholds of a lab."""
    row = settings_of(lab_id)
    values = {name: float(getattr(row, name)) for name in THRESHOLDS}
    return QuantificationConfig(staining=MlStaining(staining), **values)  # type: ignore[arg-type]


def staining_expected(canvas: Canvas) -> Staining:
    """Staining of a slide by the stain that it is known to have; a nuclear marker otherwise."""
    is_he = stain_shown(canvas) in _HAEMATOXYLIN_EOSIN
    return Staining.HE if is_he else Staining.DAB_NUCLEAR
