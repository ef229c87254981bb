"""Answers ``draw COUNT`` (ROIs on a still) and ``embedded`` (what became of their jobs).

And ``picture COUNT`` (a report of so many ROIs) and ``pictured`` (its pictures that there are).
"""

from __future__ import annotations

import django

django.setup()

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from portal.annotations.models import Roi  # noqa: E402
from portal.annotations.services.rois import roi_create  # noqa: E402
from portal.archive.models import Canvas, CanvasKind, Case  # noqa: E402
from portal.archive.storage import files as storage  # noqa: E402
from portal.core.models import Event  # noqa: E402
from portal.embeddings.models import Embedding  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.labs.models import Lab, Membership, Role, User  # noqa: E402
from portal.search.selectors.reports import PICTURES_KIND  # noqa: E402
from portal.search.services.reports import report_pictures_make  # noqa: E402
from portal.search.thumbnails.regions import SMALL, scale_of  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402

SIDE = 2600
"""Pixels of 0.5 um: 60 patches a region, so that a batch of four takes seconds."""


def draw(count: str) -> object:
    """Draw a number of ROIs by hand, with a job each."""
    _drawn(count)
    return None


def _drawn(count: str) -> Canvas:
    number = Lab.objects.count()
    lab = Lab.objects.create(slug=f"embedded-{number}", name=f"Embedded {number}")
    user = User.objects.create_user(f"draws-{number}@kill.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.ANNOTATOR)
    path = storage.resolve("kill/tissue.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    small = np.random.default_rng(0).integers(60, 200, (SIDE // 12, SIDE // 12, 3), dtype=np.uint8)
    Image.fromarray(small).resize((SIDE, SIDE)).save(path)
    canvas = Canvas.objects.create(
        lab=lab,
        case=Case.objects.create(lab=lab, accession="K-1"),
        kind=CanvasKind.STILL,
        name="Tissue",
        width_px=SIDE,
        height_px=SIDE,
        mpp_x=0.5,
        mpp_y=0.5,
        levels=[],
        pixels_path="kill/tissue.png",
        content_hash="0" * 64,
    )
    for number in range(int(count)):
        left, right = 10 * number, SIDE - 10 * number
        ring = [[left, left], [right, left], [right, right], [left, right], [left, left]]
        roi_create(canvas=canvas, user=user, geometry={"type": "Polygon", "coordinates": [ring]})
    return canvas


def embedded() -> object:
    """Jobs by ROI: state, number of ends, and number of vectors of the ROI."""
    jobs = list(Job.objects.filter(kind="roi_embed"))
    ended = list(Event.objects.filter(name="job.ended").values_list("payload__job_id", flat=True))
    return {
        str(job.target_id): {
            "state": job.state,
            "phase": job.phase,
            "attempts": job.attempts,
            "ended": ended.count(str(job.pk)),
            "vectors": Embedding.objects.filter(roi=job.target_id).count(),
            "outcome": job.error_message or job.result,
        }
        for job in jobs
    }


def picture(count: str) -> object:
    """Draw a number of ROIs on a still, with the job for their pictures at one scale."""
    canvas = _drawn(count)
    Job.objects.all().delete()  # their vectors are not wanted here
    rois = list(Roi.objects.filter(canvas=canvas).select_related("canvas").order_by("pk"))
    report_pictures_make(
        lab_id=canvas.lab_id,
        user=rois[0].created_by,
        roi_ids=[roi.pk for roi in rois],
        width=scale_of(rois[0], SMALL).tag,
    )
    return None


def pictured() -> object:
    """State of the job, and the times at which its pictures were written, by name."""
    job = Job.objects.get(kind=PICTURES_KIND)
    canvas = Canvas.objects.order_by("-created_at")[0]
    pictures = (storage.cache_folder(canvas.pk) / "rois").glob("*.jpg")
    return {
        "state": job.state,
        "attempts": job.attempts,
        "ended": Event.objects.filter(name="job.ended", payload__job_id=str(job.pk)).count(),
        "result": job.result,
        "pictures": {path.name: path.stat().st_mtime_ns for path in pictures},
    }


if __name__ == "__main__":
    dispatch({"draw": draw, "embedded": embedded, "picture": picture, "pictured": pictured})
