"""The build: the engine works in a scratch folder, one rename and one transaction publish it."""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ml.errors import MlError
from ml.types import JsonObject
from portal.archive.models import ItemState
from portal.archive.storage import files as storage
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.mosaics.build import BuiltComponent, BuiltFrame, BuiltMosaic
from portal.mosaics.build_cache import build_cache_claim
from portal.mosaics.models import Mosaic
from portal.mosaics.selectors.mosaics import span_frames
from portal.mosaics.services.mosaics import JOB_KIND, mosaic_ready, mosaic_refused
from portal.mosaics.services.states import state_again
from portal.mosaics.tasks.errors import sentence

if TYPE_CHECKING:
    from ml.mosaic.config import MosaicConfig
    from ml.mosaic.result import ComponentResult, FrameResult, MosaicResult


@job_task(
    JOB_KIND,
    title="Build mosaic",
    priority=Priority.INGEST,
    queue="gpu",
    max_attempts=3,
    retry_on=(OSError,),
)
def mosaic_build(context: JobContext, *, mosaic_id: str) -> JobResult:
    """Stitch a video's frames and show the result on a canvas."""
    mosaic = _mosaic(mosaic_id)
    if mosaic.state == ItemState.READY:
        return _result(mosaic)
    state_again(mosaic)  # where its job was tried again from the page of jobs
    with context.scratch() as scratch, build_cache_claim(mosaic) as stages:
        folder = scratch / "mosaic"
        built = _build(context, mosaic, folder, stages)
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
        raise UserError("It was deleted before the job began.", code="gone")
    return mosaic


def _build(context: JobContext, mosaic: Mosaic, folder: Path, stages: Path | None) -> BuiltMosaic:
    from ml.mosaic import build_mosaic
    from ml.mosaic.gaps import NothingRegisteredError

    canvas = mosaic.video.canvas
    if canvas is None:
        raise UserError(
            "The video is not ready, so there are no frames to stitch.", code="no-frames"
        )
    source = storage.resolve(canvas.pixels_path)
    if not source.is_file():
        raise UserError("The file of the video is missing from the storage.", code="file-missing")
    began = time.monotonic()
    try:
        result = build_mosaic(
            source,
            folder,
            config=_config(mosaic),
            progress=context.progress,
            work_dir=stages,
            grows=stages is not None,
            preview=_accept_preview,
        )
    except NothingRegisteredError as error:
        mosaic_refused(mosaic=mosaic, frames=[_frame(frame) for frame in error.frames])
        raise UserError(sentence(error), code=error.code) from error
    except MlError as error:
        if error.code == "cancelled":
            raise
        raise UserError(f"{_seconds(mosaic)}: {sentence(error)}", code=error.code) from error
    return _to_built_mosaic(result, folder, seconds=time.monotonic() - began)


def _seconds(mosaic: Mosaic) -> str:
    """Text of the span of the requested frames, such as ``From 2 s to 5.48 s``."""
    span, second = span_frames(mosaic.video, mosaic.config), mosaic.video.time_base_s
    first_s, last_s = span.first_pts * second, span.last_pts * second
    return f"From {round(first_s, 2):g} s to {round(last_s, 2):g} s"


def _accept_preview(path: Path) -> None:
    """Accept the preview's path: it is among the stages, where the web process reads it."""


def _config(mosaic: Mosaic) -> MosaicConfig:
    """The engine's choices; a span in seconds becomes its first and last time stamp."""
    from ml.mosaic.config import MosaicConfig

    names = ("step", "motion_model")
    chosen: dict[str, Any] = {k: v for k, v in mosaic.config.items() if k in names}
    if "start_s" in mosaic.config:
        chosen["start_pts"] = span_frames(mosaic.video, mosaic.config).first_pts
    if "end_s" in mosaic.config:  # only then: builds that begin alike share stages
        chosen["end_pts"] = span_frames(mosaic.video, mosaic.config).last_pts
    return MosaicConfig(**chosen)


def _to_built_mosaic(result: MosaicResult, folder: Path, *, seconds: float) -> BuiltMosaic:
    return BuiltMosaic(
        components=tuple(_component(component, folder) for component in result.components),
        motion_model=result.motion_model,
        frames=tuple(_frame(frame) for frame in result.frames),
        seconds=seconds,
        view_outline=np.round(result.view_outline, 2).tolist(),
        engine={"version": result.engine, "config_hash": result.config_hash},
        quality=_plain_json(asdict(result.quality)),
        gaps=[_plain_json(asdict(gap)) for gap in result.gaps],
    )


def _component(component: ComponentResult, folder: Path) -> BuiltComponent:
    from ml.imaging.slides.tiles import TileSource

    with TileSource(folder / component.pyramid) as tiles:
        levels = [asdict(level) for level in tiles.levels]
    return BuiltComponent(
        index=component.index,
        pyramid=component.pyramid,
        preview=component.preview,
        width_px=component.width_px,
        height_px=component.height_px,
        levels=levels,
        content_hash=storage.file_sha256(folder / component.pyramid),
        anchor_index=component.anchor_index,
        registered_count=component.registered_count,
        spans=[_plain_json(asdict(span)) for span in component.spans],
        layers=[_plain_json(asdict(layer)) for layer in component.layers],
        quality=_plain_json(asdict(component.quality)),
    )


def _frame(frame: FrameResult) -> BuiltFrame:
    matrix, covariance = frame.H_mosaic_from_frame, frame.covariance
    return BuiltFrame(
        index=frame.index,
        pts=frame.pts,
        H_mosaic_from_frame=None if matrix is None else matrix.tolist(),
        mesh=None if frame.mesh is None else frame.mesh.round(MESH_DECIMALS).tolist(),
        status=frame.status,
        reason=frame.reason,
        links=frame.links,
        error_px=_number(frame.error_px),
        reason_code=frame.reason_code,
        component=frame.component,
        is_key=frame.is_key,
        covariance=None if covariance is None else covariance.tolist(),
        uncertainty_px=_number(frame.uncertainty_px),
        sharpness=_number(frame.sharpness),
    )


MESH_DECIMALS = 2
"""Decimals of a displacement: a hundredth of a px, as in stored outlines."""


def _number(value: float | None) -> float | None:
    """A finite float, or None: JSON and PostgreSQL know no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def _plain_json(values: JsonObject) -> JsonObject:
    """The same with None for what is not finite, at any depth."""
    document: JsonObject = {}
    for key, value in values.items():
        is_deep = isinstance(value, dict)
        document[key] = _plain_json(value) if is_deep else value
        if isinstance(value, float):
            document[key] = _number(value)
    return document


def _result(mosaic: Mosaic) -> JobResult:
    canvas = mosaic.canvas
    return {
        "canvas_id": str(mosaic.canvas_id),
        "width_px": canvas.width_px if canvas else 0,
        "height_px": canvas.height_px if canvas else 0,
        "frames": mosaic.frame_count,
        "registered": mosaic.registered_count,
        "seconds": mosaic.seconds,
    }
