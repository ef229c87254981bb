"""The build: the engine works in a scratch folder, one rename and one transaction publish it."""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ml.errors import MlError
from portal.archive import storage
from portal.archive.models import ItemState
from portal.core.tasks import JobContext, UserError, task
from portal.mosaics.build import Built, BuiltFrame
from portal.mosaics.models import Mosaic
from portal.mosaics.services import JOB_KIND, mosaic_preparing, mosaic_ready

if TYPE_CHECKING:
    from ml.mosaic import MosaicFrame, MosaicResult


@task(JOB_KIND, title="Build mosaic", queue="gpu", max_attempts=3, retry_on=(OSError,))
def mosaic_build(context: JobContext, *, mosaic_id: str) -> dict[str, Any]:
    """Stitch a video's frames and show the result on a canvas."""
    mosaic = _mosaic(mosaic_id)
    if mosaic.state == ItemState.READY:
        return _result(mosaic)
    mosaic_preparing(mosaic=mosaic)
    with context.scratch() as scratch:
        folder = scratch / "mosaic"
        built = _build(context, mosaic, folder)
        with context.effect():
            mosaic_ready(mosaic=mosaic, folder=folder, built=built)
    return _result(mosaic)


def _mosaic(mosaic_id: str) -> Mosaic:
    mosaic: Mosaic | None = (
        Mosaic.objects.select_related("video__canvas", "canvas")
        .filter(pk=uuid.UUID(mosaic_id))
        .first()
    )
    if mosaic is None:
        raise UserError("It was deleted before its work began.", code="gone")
    return mosaic


def _build(context: JobContext, mosaic: Mosaic, folder: Path) -> Built:
    from ml.mosaic import MosaicConfig, build_mosaic

    canvas = mosaic.video.canvas
    if canvas is None:
        raise UserError("The video is not ready: there are no frames to stitch.", code="no-frames")
    source = storage.resolve(canvas.pixels_path)
    if not source.is_file():
        raise UserError("The file of the video is missing from the storage.", code="file-missing")
    began = time.monotonic()
    try:
        result = build_mosaic(
            source, folder, config=MosaicConfig(**mosaic.config), progress=context.progress
        )
    except MlError as error:
        if error.code == "cancelled":
            raise
        raise UserError(_sentence(error), code=error.code) from error
    return _built(result, folder, seconds=time.monotonic() - began)


def _built(result: MosaicResult, folder: Path, *, seconds: float) -> Built:
    from ml.imaging.tiles import TileSource

    with TileSource(folder / result.path.name) as tiles:
        levels = [asdict(level) for level in tiles.levels]
    return Built(
        pyramid=result.path.name,
        preview=result.preview.name,
        width_px=result.width_px,
        height_px=result.height_px,
        levels=levels,
        content_hash=storage.file_sha256(folder / result.path.name),
        motion_model=result.model,
        anchor_index=result.anchor_index,
        frames=tuple(_frame(frame) for frame in result.frames),
        seconds=seconds,
    )


def _frame(frame: MosaicFrame) -> BuiltFrame:
    matrix = frame.H_mosaic_from_frame
    return BuiltFrame(
        index=frame.index,
        pts=frame.pts,
        H_mosaic_from_frame=None if matrix is None else matrix.tolist(),
        status=frame.status,
        reason=frame.reason,
        links=frame.links,
        error_px=None if frame.error_px is None else float(frame.error_px),
    )


def _result(mosaic: Mosaic) -> dict[str, Any]:
    canvas = mosaic.canvas
    return {
        "canvas_id": str(mosaic.canvas_id),
        "width_px": canvas.width_px if canvas else 0,
        "height_px": canvas.height_px if canvas else 0,
        "frames": mosaic.frame_count,
        "registered": mosaic.registered_count,
        "seconds": mosaic.seconds,
    }


def _sentence(error: MlError) -> str:
    """``register: no two ...`` as a sentence without the stage's name in front."""
    text = str(error).strip()
    stage, _, rest = text.partition(": ")
    if rest and stage.isalpha() and stage.islower():
        text = rest
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
