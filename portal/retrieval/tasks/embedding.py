"""Embedding: one ROI that somebody waits for, or all of a canvas in parts."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ml.errors import BadInputError, EmptyRegionError
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.core.tasks import JobContext, JobResult, Priority, task
from portal.retrieval import selectors, services
from portal.retrieval.models import Encoder
from portal.retrieval.tasks.ahead import EMBED_AHEAD, EmbeddedAhead
from portal.retrieval.tasks.ending import has_ended
from portal.retrieval.tasks.own import own_vectors
from portal.retrieval.tasks.regions import EmbedRegions, encoder_ready, regions_open

if TYPE_CHECKING:
    from ml.roi import Embedded, RegionEncoder

PART_S = 2.0  # a part is as many ROIs as take this long: nobody waits longer for a worker
PART_FIRST, PART_MOST = 4, 256  # ROIs of the first part, whose time tells how many the next has


@task(
    selectors.EMBED_KIND, queue="gpu", title="Embed region", retry_on=(OSError,), ahead=EMBED_AHEAD
)
def roi_embed(context: JobContext, *, roi_id: str) -> JobResult:
    """Turn an ROI into its vector. Skipped if the ROI is deleted or has one already."""
    roi = selectors.roi_to_embed(uuid.UUID(roi_id))
    if roi is None:
        return {"skipped": "deleted"}
    if roi.shape in MARKS:  # it was an area when this was asked for
        return {"outcome": "no area"}
    network, row = encoder_ready(selectors.encoder_kind_for(roi.canvas))
    known = selectors.embedding_current(roi=roi, encoder=row)
    if known is not None:
        return {"embedding_id": known.pk, "skipped": "already embedded"}
    context.progress(0, 0, "reading")
    found = _found(context, network, row, roi)
    own = own_vectors(context, roi, row)
    while True:
        if isinstance(found, BadInputError) and not isinstance(found, EmptyRegionError):
            raise found
        try:
            with context.effect():
                # the image may have been given another pixel size while this was computed
                if not services.is_picture_of(roi.canvas, lock=True):
                    raise _ScaledMeanwhileError
                embedding_id = _save(roi, row, found, own)
            return _told(found, embedding_id)
        except _ScaledMeanwhileError:
            roi = selectors.roi_to_embed(roi.pk)
            if roi is None:
                return {"skipped": "deleted"}
            found = _embedded(context, network, roi)
            own = own_vectors(context, roi, row)


class _ScaledMeanwhileError(Exception):
    """What was computed is of the wrong scale."""


def _told(found: Embedded | BadInputError, embedding_id: int | None) -> JobResult:
    if isinstance(found, BadInputError):
        return {"outcome": "no tissue", "reason": str(found)}
    if embedding_id is None:
        return {"skipped": "changed in the meantime"}
    return {
        "embedding_id": embedding_id,
        "patches": found.n_patches,
        "seconds": round(found.seconds, 3),
    }


def _found(
    context: JobContext, network: RegionEncoder, encoder: Encoder, roi: Roi
) -> Embedded | BadInputError:
    ahead = context.ahead
    if isinstance(ahead, EmbeddedAhead) and ahead.holds_for(roi, encoder):
        return ahead.found
    return _embedded(context, network, roi)


def _embedded(context: JobContext, network: RegionEncoder, roi: Roi) -> Embedded | BadInputError:
    with regions_open(network, roi.canvas) as embed:
        (found,) = embed([roi], context.progress)
    return found


@task(
    selectors.CANVAS_KIND,
    queue="gpu",
    title="Embed all regions",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def canvas_embed(context: JobContext, *, canvas_id: str, encoder_id: str) -> JobResult:
    """Turn a canvas' ROIs into vectors, part by part.

    A part lasts once it is written: killed or stopped in between, the next attempt does the rest.

    Args:
        encoder_id: the encoder it was submitted for; it embeds with the present one anyway.
    """
    canvas = selectors.canvas_to_embed(uuid.UUID(canvas_id))
    if canvas is None:
        return {"skipped": "deleted"}
    network, row = encoder_ready(selectors.encoder_kind_for(canvas))
    waiting = selectors.canvas_rois_waiting(canvas, row)
    counts = {"embedded": 0, "no_tissue": 0, "failed": 0}
    size = PART_FIRST
    while canvas is not None:
        with regions_open(network, canvas) as embed:
            while True:
                rois = list(waiting[:size])
                if not rois and has_ended(context, lambda: not waiting.exists()):
                    return dict(counts)
                if not rois:
                    continue
                began_s = time.perf_counter()
                if not _embed_part(context, canvas, row, rois, embed, counts):
                    break
                took_s = max(time.perf_counter() - began_s, 0.001)
                size = max(1, min(int(len(rois) * PART_S / took_s), 2 * size, PART_MOST))
                context.give_way()
        canvas = selectors.canvas_to_embed(canvas.pk)  # it was given another pixel size
    return {"skipped": "deleted"}


def _embed_part(  # noqa: PLR0917
    context: JobContext,
    canvas: Canvas,
    encoder: Encoder,
    rois: Sequence[Roi],
    embed: EmbedRegions,
    counts: dict[str, int],
) -> bool:
    """False if the canvas was given another pixel size in the meantime: nothing was written."""

    def tell(*_: object) -> None:
        context.progress(done, total, "embedding regions")

    done, total = selectors.canvas_progress(canvas, encoder)
    tell()
    with context.part():
        if not services.is_picture_of(canvas, lock=False):
            return False
        new = services.embeddings_carry_over(rois, encoder=encoder)
    counts["embedded"] += len(rois) - len(new)
    found = embed(new, tell) if new else []
    with context.part():
        if not services.is_picture_of(canvas, lock=False):
            return False
        for roi, result in zip(new, found, strict=True):
            _save(roi, encoder, result)
    for result in found:
        is_error, is_blank = isinstance(result, BadInputError), isinstance(result, EmptyRegionError)
        counts["no_tissue" if is_blank else "failed" if is_error else "embedded"] += 1
    done, total = selectors.canvas_progress(canvas, encoder)
    tell()
    return True


def _save(
    roi: Roi,
    encoder: Encoder,
    result: Embedded | BadInputError,
    own: services.OwnVectors | None = None,
) -> int | None:
    """The vector's id; None if there is none, or the outline is no longer the ROI's."""
    if isinstance(result, BadInputError):
        services.unembeddable_save(
            roi_id=roi.pk, geometry=roi.geometry, encoder=encoder, error=result
        )
        return None
    saved = services.embedding_save(
        roi_id=roi.pk,
        geometry=roi.geometry,
        encoder=encoder,
        vector=result.vector,
        patch_count=result.n_patches,
        seconds=result.seconds,
        own=own,
    )
    return saved.pk if saved else None
