"""Why a region was found: both regions read once more, and laid beside each other."""

from __future__ import annotations

import io
import uuid
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from shapely.geometry import shape

from ml.errors import MlError
from ml.imaging.slides import SlideImage
from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.core.tasks import JobContext, JobResult, UserError, task
from portal.retrieval import selectors, services
from portal.retrieval.models import EncoderKind, Explanation, Query, QuerySource
from portal.retrieval.selectors import EXPLAIN_KIND, MatchFound
from portal.retrieval.selectors.explanations import PairFound
from portal.retrieval.tasks.own import own_network
from portal.retrieval.tasks.regions import canvas_stain, encoder_ready

if TYPE_CHECKING:
    from ml.roi import RegionEncoder
    from ml.roi.explain import Explained, PlacedRegion, Vertices

_DIGITS = 7  # of what a patch adds: a thousand of them still add up to five digits


@task(EXPLAIN_KIND, queue="gpu", title="Explain a match", retry_on=(OSError,))
def match_explain(context: JobContext, *, explanation_id: str) -> JobResult:
    """Find the patches or key points that two regions have in common. Skipped if one is gone."""
    row = selectors.explanation_to_make(uuid.UUID(explanation_id))
    if row is None:
        return {"skipped": "deleted"}
    if row.result is not None:
        return {"skipped": "already explained"}
    own = row.hit.encoder
    network, encoder = (
        (own_network(own), own) if own.is_trained else encoder_ready(EncoderKind(own.kind))
    )
    outdated = any(one and one.superseded_at for one in (row.embedding, row.hit))
    if encoder.pk != row.hit.encoder_id or outdated:
        raise UserError("A region or the encoder has changed. Search again.", code="outdated")
    context.progress(0, 0, "reading")
    try:
        found = _found(context, network, row)
    except MlError as error:
        raise UserError(f"{error}.", code=error.code) from error
    with context.effect():
        services.explanation_save(explanation_id=row.pk, found=found)
    return {"pairs": len(found.pairs) or len(found.points_a)}


def _found(context: JobContext, network: RegionEncoder, row: Explanation) -> MatchFound:
    from ml.roi import KeypointEncoder, RoiEncoder
    from ml.roi.explain import colour_overlap, explain_regions, match_regions, stain_counterpart

    with ExitStack() as stack:
        searched_with = _searched_with(stack, row)
        hit = _Open(stack, row.hit.roi.canvas, row.hit.roi.geometry, row.hit.roi.frame_pts)
        both = (searched_with, hit)
        if isinstance(network, KeypointEncoder):
            placed = (one.placed(network) for one in both)
            matches = match_regions(network, *placed, progress=context.progress)
            return MatchFound(
                points_a=_rounded(matches.xy_a),
                points_b=_rounded(matches.xy_b),
                of_a=matches.found_a,
                of_b=matches.found_b,
                views=matches.views,
            )
        if not isinstance(network, RoiEncoder):
            raise UserError("Searches of this encoder cannot be explained.", code="no-explanation")
        progress = context.progress
        explained = explain_regions(
            network, *(one.placed(network) for one in both), progress=progress
        )
        other = stain_counterpart(network)
        again = explain_regions(other, *(one.placed(other) for one in both), progress=progress)
    found = _of_patches(*explained)
    brought = again[1:] if other.normalises else explained[1:]
    failed = [one.stain_note for one in brought if not one.is_normalised]
    overlap = float(colour_overlap(explained[1].colours, explained[2].colours))
    return replace(
        found,
        colour=round(overlap, 4),
        normalises=network.normalises,
        # where one could not be brought to the common stain, there is nothing to compare
        other_distance=None if failed else again[0].distance,
        other_note=min(failed, default=""),
    )


class _Open:
    """A region of a canvas whose file is open, as each of several encoders is shown it."""

    def __init__(
        self,
        stack: ExitStack,
        canvas: Canvas,
        geometry: Any,
        frame_pts: int | None,
        *,
        scale: float = 1.0,
        is_tissue: bool = False,
    ) -> None:
        mpp = canvas.mpp
        self.canvas, self.mpp = canvas, mpp * scale if mpp else mpp
        self.polygon = shape(geometry) if geometry else None
        if canvas.kind == CanvasKind.VIDEO:
            self.pixels: Any = frame_pixels(canvas, frame_pts or 0)
        else:
            self.pixels = stack.enter_context(canvas_slide_open(canvas))
        if is_tissue:
            from ml.roi.stain import tissue_outline

            self.polygon = tissue_outline(self.pixels)

    def placed(self, network: RegionEncoder) -> PlacedRegion:
        """With the slide's stains, where the encoder wants them."""
        from ml.roi.explain import PlacedRegion

        is_slide = isinstance(self.pixels, SlideImage)
        stain = canvas_stain(network, self.canvas, self.pixels) if is_slide else None
        return PlacedRegion(self.pixels, self.polygon, self.mpp, stain)


class _Picture:
    """A picture that was searched with, as it is kept."""

    def __init__(self, query: Query) -> None:
        with Image.open(io.BytesIO(bytes(query.picture or b"")), formats=("JPEG",)) as image:
            self.pixels = np.asarray(image.convert("RGB"))
        self.mpp = query.picture_mpp * query.scale if query.picture_mpp else None

    def placed(self, network: RegionEncoder) -> PlacedRegion:
        """All of it; the stains are found in it."""
        from ml.roi.explain import PlacedRegion

        return PlacedRegion(self.pixels, None, self.mpp)


def _searched_with(stack: ExitStack, row: Explanation) -> _Open | _Picture:
    if row.embedding is not None:
        roi = row.embedding.roi
        return _Open(stack, roi.canvas, roi.geometry, roi.frame_pts)
    query = row.query
    if query is None:
        raise UserError("The ROI or query of this search no longer exists.", code="outdated")
    if query.canvas is None:
        return _Picture(query)
    return _Open(
        stack,
        query.canvas,
        query.geometry,
        query.frame_pts,
        scale=query.scale,
        is_tissue=query.source == QuerySource.TISSUE,
    )


def _of_patches(explained: Explained, a: Vertices, b: Vertices) -> MatchFound:
    half_a, half_b = explained.half_from()
    return MatchFound(
        similarity=explained.similarity,
        distance=explained.distance,
        boxes_a=_rounded(a.boxes_l0),
        boxes_b=_rounded(b.boxes_l0),
        adds_a=tuple(explained.adds_a.round(_DIGITS).tolist()),
        adds_b=tuple(explained.adds_b.round(_DIGITS).tolist()),
        pairs=tuple(
            PairFound(pair.a, pair.b, round(pair.adds, _DIGITS), round(pair.share, _DIGITS))
            for pair in explained.pairs
        ),
        half_a=half_a,
        half_b=half_b,
    )


def _rounded(rows: Any) -> Any:
    """Tuples of tenths of pixels."""
    return tuple(tuple(row) for row in np.asarray(rows).round(1).tolist())
