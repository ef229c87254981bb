"""A mosaic from a video: the stages in order, each in its own module."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, MosaicError
from ml.mosaic.blend import blend_frames
from ml.mosaic.canvas import Canvas, lay_out
from ml.mosaic.chain import Chain, chain_frames
from ml.mosaic.config import MosaicConfig
from ml.mosaic.exposure import frame_gains
from ml.mosaic.frames import Survey, survey_frames
from ml.mosaic.register import Registration, register_frames
from ml.mosaic.result import (
    FAILED,
    MANIFEST_NAME,
    PREVIEW_NAME,
    PYRAMID_NAME,
    REGISTERED,
    SKIPPED,
    MosaicFrame,
    MosaicResult,
)
from ml.mosaic.sources import FrameSource, open_source
from ml.mosaic.write import publish, write_images, write_manifest
from ml.types import Progress, no_progress

DEFAULT_CONFIG = MosaicConfig()


def build_mosaic(
    frames_or_video: str | Path | Sequence[npt.NDArray[Any]] | npt.NDArray[Any],
    out_dir: str | Path,
    *,
    config: MosaicConfig = DEFAULT_CONFIG,
    mask: npt.NDArray[Any] | None = None,
    progress: Progress = no_progress,
) -> MosaicResult:
    """Build the mosaic of a sweep and write it to ``out_dir``.

    Writes ``mosaic.tif`` (pyramidal, tiled), ``preview.jpg`` and ``mosaic.json``. The same input
    and configuration give the same bytes. Nothing is left behind where the work fails or is
    cancelled, and what ``out_dir`` held before stays until the new files replace it.

    Args:
        frames_or_video: a folder of images in name order, a video file, or (H, W[, C]) arrays.
        mask: (H, W), non-zero (above 127 for uint8) inside the scope; None estimates it.
        progress: called with phases survey, register, align, blend, write; raising
            ``CancelledError`` stops the work.
    Returns:
        MosaicResult: every frame of the source with transform, status and reason.
    Raises:
        BadInputError: no frames there. ShapeError: the mask is not of the frames' size.
        MosaicError: no frame usable, no two frames registered, or the canvas too large.
    """
    target = Path(out_dir)
    if target.exists() and not target.is_dir():
        raise BadInputError(f"{target.name}: expected a folder to write to, found a file")
    source = open_source(
        frames_or_video, step=config.step, start_pts=config.start_pts, end_pts=config.end_pts
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    work_dir = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        survey = survey_frames(source, config=config, mask=mask, progress=progress)
        registration = register_frames(source, survey, config=config, progress=progress)
        chain = _chained(registration, survey, config=config, progress=progress)
        canvas = lay_out(chain, survey, config=config)
        _render(source, survey, chain, canvas, config=config, into=work_dir, progress=progress)
        result = _result(survey, registration, chain, canvas, config=config, folder=target)
        write_manifest(result, work_dir)
        progress(1, 1, "write")
        publish(work_dir, target)
        return result
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)


def _chained(
    registration: Registration, survey: Survey, *, config: MosaicConfig, progress: Progress
) -> Chain:
    chain = chain_frames(registration, mask=survey.mask, config=config, progress=progress)
    if chain is not None:
        return chain
    usable = sum(not check.reason for check in survey.checks)
    reasons = sorted({check.reason.split(":")[0] for check in survey.checks if check.reason})
    detail = f" ({', '.join(reasons)})" if reasons else ""
    raise MosaicError(
        f"register: no two of {usable} usable frames, out of {len(survey.checks)}, "
        f"show the same place{detail}"
    )


def _render(
    source: FrameSource,
    survey: Survey,
    chain: Chain,
    canvas: Canvas,
    *,
    config: MosaicConfig,
    into: Path,
    progress: Progress,
) -> None:
    """Blend into a memory map beside the output, then write the images."""
    raw = into / "pixels.raw"
    shape = (canvas.height_px, canvas.width_px, 3)
    pixels = np.memmap(raw, np.uint8, mode="w+", shape=shape)
    blend_frames(
        source, survey, canvas, frame_gains(chain), out=pixels, work_dir=into, progress=progress
    )
    progress(0, 1, "write")
    write_images(pixels, into, config=config)
    del pixels
    raw.unlink()


def _result(
    survey: Survey,
    registration: Registration,
    chain: Chain,
    canvas: Canvas,
    *,
    config: MosaicConfig,
    folder: Path,
) -> MosaicResult:
    linked = {frame for link in registration.links for frame in (link.a, link.b)}
    chained = {frame for link in chain.links for frame in (link.a, link.b)}
    counts = np.bincount([f for link in chain.links for f in (link.a, link.b)])
    frames = []
    for position, check in enumerate(survey.checks):
        matrix = canvas.transforms.get(position)
        error = chain.error_px.get(position) if matrix is not None else None
        status, reason = _status(position, check.reason, canvas, chained=chained, linked=linked)
        frames.append(
            MosaicFrame(
                index=check.index,
                pts=check.pts,
                H_mosaic_from_frame=matrix,
                status=status,
                reason=reason,
                links=int(counts[position]) if matrix is not None else 0,
                error_px=None if error is None else error / survey.scale,
            )
        )
    return MosaicResult(
        frames=tuple(frames),
        path=folder / PYRAMID_NAME,
        preview=folder / PREVIEW_NAME,
        manifest=folder / MANIFEST_NAME,
        width_px=canvas.width_px,
        height_px=canvas.height_px,
        model=registration.model,
        anchor_index=survey.checks[chain.anchor].index,
        config_hash=config.hash(),
    )


def _status(
    position: int, reason: str, canvas: Canvas, *, chained: set[int], linked: set[int]
) -> tuple[str, str]:
    if reason:
        return SKIPPED, reason
    if position in canvas.transforms:
        return REGISTERED, ""
    if position in chained:
        return FAILED, "its place disagrees with the frames around it"
    if position in linked:
        return FAILED, "its neighbours are cut off from the main part of the mosaic"
    return FAILED, "too few points agree with the frames around it"
