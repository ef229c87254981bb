"""Start measurements, save figures, and set the thresholds of a lab."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from django.db import transaction
from django.utils import timezone

from ml.config import config_hash
from ml.errors import BadInputError
from ml.quantification.config import MAX_AREA_MM2, QuantificationConfig
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.quantification.models import QuantificationSettings, RoiQuantification
from portal.quantification.selectors import (
    QUANTIFY_KIND,
    THRESHOLDS,
    config_of,
    job_open,
    outline_hash,
    size_of,
    staining_expected,
)

if TYPE_CHECKING:
    from ml.quantification.result import Quantification


def quantification_start(*, roi: Roi, user: User, staining: str = "") -> Job:
    """Submit the job that measures an ROI; the unfinished one if there is one.

    Args:
        staining: One of ``Staining``; by the slide's stain if empty.
    Raises:
        ForbiddenError: The user is less than an annotator of the lab.
        ConflictError: The ROI is deleted.
        InvalidInputError: It cannot be measured: no section (``no-section``), no area
            (``no-area``), unknown pixel size (``unknown-pixel-size``), too large (``too-large``).
    """
    require_role(user, roi.lab_id, at_least=Role.ANNOTATOR)
    if roi.deleted_at is not None:
        raise ConflictError("This region is deleted. Restore it first.", code="roi-deleted")
    _require_measurable(roi)
    with transaction.atomic():
        Roi.all_objects.select_for_update().filter(pk=roi.pk).first()
        open_job = job_open(roi)
        if open_job is not None:
            return open_job
        return job_submit(
            kind=QUANTIFY_KIND,
            args={
                "roi_id": str(roi.pk),
                "staining": staining or staining_expected(roi.canvas).value,
            },
            lab=roi.lab,
            user=user,
            target=roi,
            target_name=roi.name or roi.canvas.name,
        )


def _require_measurable(roi: Roi) -> None:
    canvas = roi.canvas
    is_flat = canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL)
    if not is_flat or canvas.modality != Modality.HISTOLOGY:
        raise InvalidInputError(
            "Only regions on slides and stills of histology can be measured.", code="no-section"
        )
    if roi.shape in MARKS:
        raise InvalidInputError("Points and lines have no area to measure.", code="no-area")
    if canvas.mpp_x is None or canvas.mpp_y is None:
        raise InvalidInputError(
            "The size of this image's pixels is unknown. Set its scale first.",
            code="unknown-pixel-size",
        )
    area_mm2 = roi.area_px * canvas.mpp_x * canvas.mpp_y / 1e6
    if area_mm2 > MAX_AREA_MM2:
        raise InvalidInputError(
            f"This region has {area_mm2:.1f} mm²; at most {MAX_AREA_MM2:g} mm² can be measured."
            " Draw a smaller one.",
            code="too-large",
        )


def quantification_save(
    *, roi: Roi, user: User | None, config: QuantificationConfig, measured: Quantification
) -> RoiQuantification:
    """Save figures in place of older ones. Call inside ``effect()``.

    A region of a fixed size has its nominal area, and the density of that area.
    """
    canvas = roi.canvas
    if canvas.mpp_x is None or canvas.mpp_y is None:
        raise ConflictError("The size of this image's pixels is unknown.", code="no-pixel-size")
    size = size_of(roi)
    area_mm2 = size.area_mm2 if size else measured.area_mm2
    nuclei_per_mm2 = measured.nuclei_per_mm2
    if nuclei_per_mm2 is not None:
        nuclei_per_mm2 *= measured.area_mm2 / area_mm2
    row, _ = RoiQuantification.all_objects.update_or_create(
        roi=roi,
        defaults={
            "lab_id": roi.lab_id,
            "user": user,
            "staining": config.staining.value,
            "config": dataclasses.asdict(config),
            "config_hash": config_hash(config),
            "roi_version": roi.version,
            "outline_hash": outline_hash(roi.geometry),
            "mpp_x": canvas.mpp_x,
            "mpp_y": canvas.mpp_y,
            "measured_at": timezone.now(),
            "area_mm2": area_mm2,
            "tissue_mm2": measured.tissue_mm2,
            "mean_od": measured.mean_od,
            "positive_area_percent": measured.positive_area_percent,
            "nucleus_count": measured.nucleus_count,
            "nuclei_per_mm2": nuclei_per_mm2,
            "bin_counts": list(measured.bin_counts or ()),
            "positive_percent": measured.positive_percent,
            "h_score": measured.h_score,
            "nuclei_missing": measured.nuclei_missing,
            "nuclei": _pack_nuclei(measured, canvas),
        },
    )
    return row


def _pack_nuclei(measured: Quantification, canvas: Canvas) -> bytes:
    table = measured.nuclei
    if table is None:
        return b""
    radius_px = table.radius_um / (canvas.mpp or 1.0)
    columns = np.column_stack([table.xy_l0, radius_px, table.bins])
    return np.ascontiguousarray(columns, "<f4").tobytes()


def quantification_settings_set(
    *, lab: Lab, user: User, **thresholds: float
) -> QuantificationSettings:
    """Set thresholds of a lab; emits ``quantification_settings.changed``.

    Args:
        thresholds: Fields of ``QuantificationSettings``; others keep their values.
    Raises:
        ForbiddenError: The user is not a manager.
        InvalidInputError: They contradict each other.
    """
    require_role(user, lab.pk, at_least=Role.MANAGER)
    unknown = sorted(set(thresholds) - set(THRESHOLDS))
    if unknown:
        raise InvalidInputError(f"{unknown[0]}: there is no such threshold.")
    with transaction.atomic():
        row, _ = QuantificationSettings.objects.update_or_create(lab=lab, defaults=thresholds)
        try:
            config_of(lab.pk, "dab-nuclear")
        except BadInputError as error:
            raise InvalidInputError(f"Thresholds: {error}.", code="thresholds") from error
        payload = {"lab_id": str(lab.pk), "user_id": str(user.pk)}
        payload |= {name: getattr(row, name) for name in THRESHOLDS}
        event_emit("quantification_settings.changed", lab_id=lab.pk, payload=payload)
    return row
