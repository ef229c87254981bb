"""Job that explains a match by reading and comparing both regions."""

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
from ml.imaging.slides.slide import SlideImage
from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors.frames import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.core.tasks import JobContext, JobResult, UserError, job_task
from portal.embeddings.tasks.lab_encoders import lab_encoder_network
from portal.embeddings.tasks.regions import canvas_stain, encoder_ready
from portal.search.models import Explanation, Query, QuerySource
from portal.search.selectors.explanations import (
    EXPLAIN_KIND,
    MatchedPair,
    MatchExplanation,
    explanation_to_make,
)
from portal.search.services.explanations import explanation_save

if TYPE_CHECKING:
    from ml.roi.explain.pairs import PairExplanation, Vertices
    from ml.roi.explain.regions import PlacedRegion
    from ml.roi.protocol import RegionEncoder

_DIGITS = 7  # a thousand contributions still sum to five digits


@job_task(EXPLAIN_KIND, queue="gpu", title="Explain a match", retry_on=(OSError,))
def match_explain(context: JobContext, *, explanation_id: str) -> JobResult:
    """Find matching patches or key points of two regions. Skipped if one was deleted."""
    row = explanation_to_make(uuid.UUID(explanation_id))
    if row is None:
        return {"skipped": "deleted"}
    if row.result is not None:
        return {"skipped": "already explained"}
    lab_encoder = row.hit.encoder
    network, encoder = (
        (lab_encoder_network(lab_encoder), lab_encoder)
        if lab_encoder.is_trained
        else encoder_ready(lab_encoder.kind)
    )
    outdated = any(embedding and embedding.superseded_at for embedding in (row.embedding, row.hit))
    if encoder.pk != row.hit.encoder_id or outdated:
        raise UserError("A region or the encoder has changed. Search again.", code="outdated")
    context.progress(0, 0, "reading")
    try:
        explanation = _explain(context, network, row)
    except MlError as error:
        raise UserError(f"{error}.", code=error.code) from error
    with context.effect():
        explanation_save(explanation_id=row.pk, explanation=explanation)
    return {"pairs": len(explanation.pairs) or len(explanation.points_a)}


def _explain(context: JobContext, network: RegionEncoder, row: Explanation) -> MatchExplanation:
    from ml.roi.embed import RoiEncoder
    from ml.roi.explain.colour import colour_overlap
    from ml.roi.explain.keypoints import match_regions
    from ml.roi.explain.regions import explain_regions, stain_counterpart
    from ml.roi.keypoints.encoder import KeypointEncoder

    with ExitStack() as stack:
        searched_with = _searched_with(stack, row)
        hit = _Open(stack, row.hit.roi.canvas, row.hit.roi.geometry, row.hit.roi.frame_pts)
        both = (searched_with, hit)
        if isinstance(network, KeypointEncoder):
            placed = (region.placed(network) for region in both)
            matches = match_regions(network, *placed, progress=context.progress)
            return MatchExplanation(
                points_a=_round_rows(matches.xy_a),
                points_b=_round_rows(matches.xy_b),
                keypoint_count_a=matches.found_a,
                keypoint_count_b=matches.found_b,
                views=matches.views,
            )
        if not isinstance(network, RoiEncoder):
            raise UserError("Searches of this encoder cannot be explained.", code="no-explanation")
        progress = context.progress
        explained = explain_regions(
            network, *(region.placed(network) for region in both), progress=progress
        )
        other = stain_counterpart(network)
        other_explained = explain_regions(
            other, *(region.placed(other) for region in both), progress=progress
        )
    explanation = _patch_explanation(*explained)
    brought = other_explained[1:] if other.normalises else explained[1:]
    stain_notes = [region.stain_note for region in brought if not region.is_normalised]
    overlap = float(colour_overlap(explained[1].colours, explained[2].colours))
    return replace(
        explanation,
        colour=round(overlap, 4),
        normalises=network.normalises,
        # without stain normalisation of both there is nothing to compare
        other_distance=None if stain_notes else other_explained[0].distance,
        other_note=min(stain_notes, default=""),
    )


class _Open:
    """Region of a canvas with an open file, for several encoders."""

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
            from ml.roi.stain.outline import tissue_outline

            self.polygon = tissue_outline(self.pixels)

    def placed(self, network: RegionEncoder) -> PlacedRegion:
        """Region with the slide's stains, if the encoder needs them."""
        from ml.roi.explain.regions import PlacedRegion

        is_slide = isinstance(self.pixels, SlideImage)
        stain = canvas_stain(network, self.canvas, self.pixels) if is_slide else None
        return PlacedRegion(self.pixels, self.polygon, self.mpp, stain)


class _Picture:
    """Stored picture of a query."""

    def __init__(self, query: Query) -> None:
        with Image.open(io.BytesIO(bytes(query.picture or b"")), formats=("JPEG",)) as image:
            self.pixels = np.asarray(image.convert("RGB"))
        self.mpp = query.picture_mpp * query.scale if query.picture_mpp else None

    def placed(self, network: RegionEncoder) -> PlacedRegion:
        """Whole picture; stains are estimated from it."""
        from ml.roi.explain.regions import PlacedRegion

        return PlacedRegion(self.pixels, None, self.mpp)


def _searched_with(stack: ExitStack, row: Explanation) -> _Open | _Picture:
    if row.embedding is not None:
        roi = row.embedding.roi
        return _Open(stack, roi.canvas, roi.geometry, roi.frame_pts)
    query = row.query
    if query is None:
        raise UserError("The region or query of this search no longer exists.", code="outdated")
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


def _patch_explanation(explained: PairExplanation, a: Vertices, b: Vertices) -> MatchExplanation:
    half_a, half_b = explained.half_from()
    return MatchExplanation(
        similarity=explained.similarity,
        distance=explained.distance,
        boxes_a=_round_rows(a.boxes_l0),
        boxes_b=_round_rows(b.boxes_l0),
        contributions_a=tuple(explained.contributions_a.round(_DIGITS).tolist()),
        contributions_b=tuple(explained.contributions_b.round(_DIGITS).tolist()),
        pairs=tuple(
            MatchedPair(
                pair.a, pair.b, round(pair.contribution, _DIGITS), round(pair.share, _DIGITS)
            )
            for pair in explained.pairs
        ),
        half_a=half_a,
        half_b=half_b,
    )


def _round_rows(rows: Any) -> Any:
    """Nested tuples, rounded to tenths of a pixel."""
    return tuple(tuple(row) for row in np.asarray(rows).round(1).tolist())
