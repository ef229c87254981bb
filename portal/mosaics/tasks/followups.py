"""The search for a place."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ml.errors import MlError
from ml.imaging.slides.jpeg import encode_jpeg
from ml.types import ImageU8
from portal.archive.models import Canvas, CanvasKind, ItemState
from portal.archive.storage import files as storage
from portal.core.tasks import JobContext, JobResult, UserError, job_task
from portal.mosaics.models import Followup, FollowupHit
from portal.mosaics.services.followups import FOLLOWUP_KIND, followup_ready
from portal.mosaics.services.states import state_again
from portal.mosaics.tasks.errors import sentence
from portal.mosaics.tasks.targets import ImageWindows, VideoFrames, place_of


@job_task(FOLLOWUP_KIND, title="Find place again", queue="gpu", max_attempts=3, retry_on=(OSError,))
def followup_find(context: JobContext, *, followup_id: str) -> JobResult:
    """Look for an ROI's place in another video or mosaic of the patient."""
    followup: Followup | None = (
        Followup.objects.select_related("roi__canvas", "target__video")
        .filter(pk=uuid.UUID(followup_id))
        .first()
    )
    if followup is None:
        raise UserError("It was deleted before the job began.", code="gone")
    if followup.state != ItemState.READY:
        state_again(followup)
        with context.scratch() as scratch:
            folder = scratch / "followup"
            folder.mkdir()
            began = time.monotonic()
            hits, searched = _find_hits(context, followup, folder)
            with context.effect():
                followup_ready(
                    followup=followup,
                    folder=folder,
                    hits=hits,
                    searched=searched,
                    seconds=time.monotonic() - began,
                )
    return {"found": len(followup.result), "searched": followup.searched_count}


def _has_file(canvas: Canvas) -> bool:
    try:
        return storage.resolve(canvas.pixels_path).is_file()
    except FileNotFoundError:  # raised if the bucket lacks it
        return False


def _find_hits(
    context: JobContext, followup: Followup, folder: Path
) -> tuple[list[FollowupHit], int]:
    from ml.mosaic.followup import Candidate, draw_hit, find_place

    def find(keyed: Iterable[tuple[int, ImageU8]], count: int) -> Sequence[Any]:
        images = (Candidate(key, image) for key, image in keyed)
        return find_place(place, outline, images, count=count, progress=context.progress)

    for canvas in (followup.roi.canvas, followup.target):
        if not _has_file(canvas):
            text = f"The file of {canvas.name} is missing from the storage."
            raise UserError(text, code="file-missing")
    try:
        place, outline = place_of(followup.roi)
        views = VideoFrames if followup.target.kind == CanvasKind.VIDEO else ImageWindows
        with views(followup.target) as target:
            hits = target.search(find)
            rows: list[FollowupHit] = []
            for rank, hit in enumerate(hits, 1):
                name = f"hit-{rank}.jpg"
                drawn = draw_hit(place, outline, target.image(hit.key), hit)
                (folder / name).write_bytes(encode_jpeg(drawn))
                rows.append(
                    {
                        "rank": rank,
                        **target.names(hit.key),
                        "inliers": len(hit.xy_place),
                        "matches": hit.matches,
                        "outline": np.round(target.on_canvas(hit), 2).tolist(),
                        "picture": name,
                    }
                )
            return rows, target.searched
    except MlError as error:
        if error.code == "cancelled":
            raise
        raise UserError(sentence(error), code=error.code) from error
