"""Job that embeds queries other than ROIs."""

from __future__ import annotations

import io
import math
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from shapely.geometry import shape

from ml.config import config_from_dict
from ml.errors import MlError
from ml.imaging.query_image import PICTURE_NAME
from ml.imaging.results import QueryImage
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from ml.types import ImageU8
from portal.archive.selectors.frames import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.core.tasks import JobContext, JobResult, UserError, job_task
from portal.embeddings.selectors.encoders import encoder_of_lab
from portal.embeddings.tasks.lab_encoders import lab_encoder_network
from portal.embeddings.tasks.regions import canvas_stain, encoder_ready
from portal.search.models import Query, QuerySource
from portal.search.selectors.queries import QUERY_KIND, query_to_embed
from portal.search.services.queries import query_embedded_save

if TYPE_CHECKING:
    from ml.roi.embedding import RegionEmbedding
    from ml.roi.protocol import RegionEncoder

PICTURE_LIMITS = Limits(cpu_s=60, wall_s=120.0, file_bytes=256 * 2**20)
"""Limits of decoding a picture: 500 megapixels take seconds, the output is 50 MB at most."""
JPEG_QUALITY = 90  # of the stored picture, for display and explanations
STORED_PX = 2_048  # its longer side


@dataclass(frozen=True, slots=True)
class _Picture:
    """Decoded picture.

    Attributes:
        mpp: Microns per pixel; None if not given.
    """

    pixels: ImageU8
    mpp: float | None


@job_task(QUERY_KIND, queue="gpu", title="Prepare a search", retry_on=(OSError,))
def query_embed(context: JobContext, *, query_id: str) -> JobResult:
    """Embed a query. Skipped if it was deleted or has a vector."""
    query = query_to_embed(uuid.UUID(query_id))
    if query is None:
        return {"skipped": "deleted"}
    lab_encoder = encoder_of_lab(query.kind, query.lab_id)
    network, encoder = (
        (lab_encoder_network(lab_encoder), lab_encoder)
        if lab_encoder and lab_encoder.is_trained
        else encoder_ready(query.kind)
    )
    if query.vector is not None and query.encoder_id == encoder.pk:
        return {"skipped": "already embedded"}
    context.progress(0, 0, "reading")
    try:
        picture = _picture(context, query) if query.source == QuerySource.PICTURE else None
        embedded = _embed_query(context, network, query, picture)
    except MlError as error:
        raise UserError(f"{error}.", code=error.code) from error
    uploaded = picture if query.upload is not None else None
    with context.effect():
        jpeg, mpp, size = _jpeg(uploaded) if uploaded else (None, None, (0, 0))
        query_embedded_save(
            query_id=query.pk,
            encoder=encoder,
            vector=embedded.vector,
            picture=jpeg,
            picture_mpp=mpp,
            size_px=size,
        )
    return {"patches": embedded.n_patches, "seconds": round(embedded.seconds, 3)}


def _embed_query(
    context: JobContext, network: RegionEncoder, query: Query, picture: _Picture | None
) -> RegionEmbedding:
    progress, scale = context.progress, query.scale
    if picture is not None:
        return network.embed_image(
            picture.pixels, None, mpp=_scale_mpp(picture.mpp, scale), progress=progress
        )
    canvas = query.canvas
    if canvas is None:
        raise UserError("There is nothing to search with.", code="query-empty")
    outline = shape(query.geometry) if query.geometry else None
    mpp = _scale_mpp(canvas.mpp, scale)
    if query.frame_pts is not None:
        return network.embed_image(
            frame_pixels(canvas, query.frame_pts), outline, mpp=mpp, progress=progress
        )
    with canvas_slide_open(canvas) as slide:
        stain = canvas_stain(network, canvas, slide)
        if query.source == QuerySource.TISSUE:
            from ml.roi.stain.outline import tissue_outline

            outline = tissue_outline(slide)
        return network.embed_region(slide, outline, mpp, progress, stain=stain)


def _picture(context: JobContext, query: Query) -> _Picture:
    """Decode an upload in a sandboxed child process, or read the stored picture."""
    if query.upload is None:
        return _Picture(_read(io.BytesIO(bytes(query.picture or b""))), query.picture_mpp)
    with context.scratch() as folder:
        source, out_dir = folder / "source", folder / "made"
        source.write_bytes(bytes(query.upload))
        out_dir.mkdir()
        values = run_limited(
            "ml.imaging.query_image:make_query_image",
            {"path": str(source), "out_dir": str(out_dir)},
            reads=(source,),
            writes=(out_dir,),
            limits=PICTURE_LIMITS,
            progress=context.progress,
        )
        pixels = _read(out_dir / PICTURE_NAME)
    image = config_from_dict(QueryImage, values, where="picture")
    mpp = query.mpp * image.reduced_by if query.mpp else None
    return _Picture(pixels, mpp)


def _read(source: Path | io.BytesIO) -> ImageU8:
    with Image.open(source, formats=("PNG", "JPEG")) as image:
        return np.asarray(image.convert("RGB"))


def _jpeg(picture: _Picture) -> tuple[bytes, float | None, tuple[int, int]]:
    """Stored JPEG, its microns per pixel, and its width and height."""
    image = Image.fromarray(picture.pixels)
    image.thumbnail((STORED_PX, STORED_PX))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=JPEG_QUALITY)
    reduced_by = picture.pixels.shape[1] / image.width
    mpp = picture.mpp * reduced_by if picture.mpp else None
    return stream.getvalue(), mpp, image.size


def _scale_mpp(mpp: float | None, scale: float) -> float | None:
    """Pixel size given to the encoder, so that structures look ``scale`` times as large to it."""
    return mpp if mpp is None or math.isclose(scale, 1.0) else mpp * scale
