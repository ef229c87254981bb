"""Work of retrieval. The only module here that reaches torch, and only inside its functions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import numpy as np
from django.conf import settings
from shapely.geometry import shape

from ml.imaging.slides import open_slide
from ml.imaging.videos import read_frame
from ml.index import open_index
from portal.annotations.models import Roi
from portal.archive import storage
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import NotFoundError
from portal.core.tasks import JobContext, JobResult, UserError, task
from portal.retrieval import indexes, selectors, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Encoder, EncoderKind
from portal.retrieval.services import EncoderFacts

if TYPE_CHECKING:
    from ml.imaging.slides import SlideImage
    from ml.roi import Embedded, RegionEncoder
    from ml.roi.stain import StainEstimate


@task(selectors.EMBED_KIND, queue="gpu", title="Embed region", retry_on=(OSError,))
def roi_embed(context: JobContext, *, roi_id: str) -> JobResult:
    """Turn an ROI into its vector. Skipped where the ROI is deleted or has one already."""
    roi = selectors.roi_to_embed(uuid.UUID(roi_id))
    if roi is None:
        return {"skipped": "deleted"}
    network, row = _encoder(selectors.encoder_kind_for(roi.canvas))
    known = selectors.embedding_current(roi=roi, encoder=row)
    if known is not None:
        return {"embedding_id": known.pk, "skipped": "embedded already"}
    embedded = _embed(network, roi, context)
    with context.effect():
        saved = services.embedding_save(
            roi_id=roi.pk,
            geometry=roi.geometry,
            encoder=row,
            vector=embedded.vector,
            patch_count=embedded.n_patches,
            seconds=embedded.seconds,
        )
    if saved is None:
        return {"skipped": "changed in the meantime"}
    return {
        "embedding_id": saved.pk,
        "patches": embedded.n_patches,
        "seconds": round(embedded.seconds, 3),
    }


@task(services.INDEX_KIND, title="Build search index", retry_on=(OSError,))
def index_build(context: JobContext, *, encoder_id: str, lab_id: str) -> JobResult:
    """Write a new index file of what the database holds and name it as the newest snapshot."""
    scope = _scope(encoder_id, lab_id)
    source = selectors.index_source(scope)
    id_parts, vector_parts = [], []
    for ids, vectors in selectors.index_entries(scope, source):
        id_parts.append(ids)
        vector_parts.append(vectors)
        context.progress(sum(map(len, id_parts)), source.count, "reading")
    if not id_parts:
        return {"skipped": "no embeddings"}
    with context.scratch() as scratch:
        folder = scratch / "index"
        index = open_index(folder, dim=scope.encoder.dim, tag=indexes.encoder_tag(scope.encoder))
        index.build(
            np.concatenate(id_parts), np.concatenate(vector_parts), progress=context.progress
        )
        count = index.stats.count
        with context.effect():
            snapshot = services.index_publish(scope=scope, source=source, made=folder, count=count)
    return {"snapshot": str(snapshot.pk), "version": snapshot.version, "count": count}


@task(selectors.BACKFILL_KIND, title="Embed all regions again", retry_on=(OSError,))
def lab_embed(context: JobContext, *, lab_id: str, encoder_id: str) -> JobResult:
    """Submit every ROI of a lab that an encoder has yet to embed."""
    scope = _scope(encoder_id, lab_id)
    with context.effect():
        count = services.embed_submit_missing(lab_id=scope.lab_id, encoder=scope.encoder)
    return {"submitted": count}


def _encoder(kind: EncoderKind) -> tuple[RegionEncoder, Encoder]:
    from ml.roi import load_encoder

    network = load_encoder(settings.TESSERA_ENCODERS[kind])
    facts = EncoderFacts(
        name=network.name,
        version=str(network.version),
        config_hash=network.config_hash,
        dim=network.dim,
        kind=kind,
    )
    return network, services.encoder_register(facts=facts, is_default=True)


def _embed(network: RegionEncoder, roi: Roi, context: JobContext) -> Embedded:
    """Read the ROI's pixels, whatever its canvas is, and embed them."""
    canvas, outline = roi.canvas, shape(roi.geometry)
    path = storage.resolve(canvas.pixels_path)
    context.progress(0, 0, "reading")
    if canvas.kind == CanvasKind.VIDEO:
        if roi.frame_pts is None:
            raise UserError("This ROI lies on a video but names no frame.", code="no-frame")
        image = read_frame(path, roi.frame_pts)
        return network.embed_image(image, outline, mpp=_mpp(canvas), progress=context.progress)
    with open_slide(path) as slide:
        return network.embed_region(
            slide,
            outline,
            mpp=_mpp(canvas),
            progress=context.progress,
            stain=_stain(network, canvas, slide),
        )


def _stain(network: RegionEncoder, canvas: Canvas, slide: SlideImage) -> StainEstimate | None:
    """The slide's stains, estimated for its first ROI and stored; None where none are needed."""
    if not network.normalises:
        return None
    from ml.roi.stain import StainConfig, estimate_stain, stain_from_dict, stain_to_dict

    method = network.stain_method
    known = selectors.stain_of(canvas, method=method)
    if known is not None:
        return stain_from_dict(known)
    estimate = estimate_stain(slide, mpp=_mpp(canvas), config=StainConfig(method=method))
    services.stain_save(canvas=canvas, method=method, estimate=stain_to_dict(estimate))
    return estimate


def _mpp(canvas: Canvas) -> float | None:
    """Microns per pixel as recorded for the canvas; the file's own where it is not."""
    if canvas.mpp_x is None or canvas.mpp_y is None:
        return None
    return float((canvas.mpp_x * canvas.mpp_y) ** 0.5)


def _scope(encoder_id: str, lab_id: str) -> Scope:
    try:
        encoder = selectors.encoder_get(uuid.UUID(encoder_id))
    except NotFoundError as error:
        raise UserError("The encoder is gone.", code="encoder-gone") from error
    return Scope(encoder, uuid.UUID(lab_id))
