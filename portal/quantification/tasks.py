"""Job that measures a region."""

from __future__ import annotations

import uuid

from shapely.geometry import shape

from ml.errors import BadInputError
from portal.annotations.models import Roi
from portal.archive.selectors.pixels import canvas_slide_open
from portal.core.tasks import JobContext, JobResult, UserError, job_task
from portal.embeddings.selectors.embeddings import roi_to_embed
from portal.embeddings.services.embeddings import canvas_is_unchanged
from portal.jobs.models import Job
from portal.quantification.selectors import QUANTIFY_KIND, config_of
from portal.quantification.services import quantification_save


@job_task(QUANTIFY_KIND, title="Measure region", retry_on=(OSError,))
def roi_quantify(context: JobContext, *, roi_id: str, staining: str) -> JobResult:
    """Measure an ROI. Skipped if it is deleted, or changed while it was measured."""
    from ml.quantification.measure import quantify_region

    roi = roi_to_embed(uuid.UUID(roi_id))
    if roi is None:
        return {"skipped": "deleted"}
    canvas = roi.canvas
    config = config_of(roi.lab_id, staining)
    try:
        with canvas_slide_open(canvas) as slide:
            measured = quantify_region(
                slide,
                shape(roi.geometry),
                size_l0=(canvas.width_px, canvas.height_px),
                mpp=(canvas.mpp_x, canvas.mpp_y),
                config=config,
                progress=context.progress,
            )
    except BadInputError as error:
        raise UserError(str(error), code=error.code) from error
    with context.effect():
        present = Roi.all_objects.select_for_update().filter(pk=roi.pk, deleted_at=None).first()
        if present is None or present.geometry != roi.geometry:
            return {"skipped": "changed in the meantime"}
        if not canvas_is_unchanged(canvas, lock=True):
            return {"skipped": "changed in the meantime"}
        job = Job.objects.select_related("created_by").get(pk=context.job_id)
        quantification_save(roi=roi, user=job.created_by, config=config, measured=measured)
    result: JobResult = {"area_mm2": round(measured.area_mm2, 4)}
    if measured.nucleus_count is not None:
        result["nuclei"] = measured.nucleus_count
    return result
