"""Build a mosaic from a video, stage by stage."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ml.errors import BadInputError
from ml.mosaic.alignment.components import AlignedComponent, align_components
from ml.mosaic.alignment.loops import loops_by_appearance
from ml.mosaic.checkpoints import KEY_NAME, Stages, build_key, family_key
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.prefetch import PrefetchedSource
from ml.mosaic.frames.sources import FrameSource, open_source
from ml.mosaic.frames.survey import FrameMeasures, Survey, measure_frames, survey_of
from ml.mosaic.frames.undistort import UndistortedSource
from ml.mosaic.gaps import NothingRegisteredError
from ml.mosaic.manifest import write_manifest
from ml.mosaic.preview import GrowingPreview
from ml.mosaic.registration.distortion import estimate_distortion
from ml.mosaic.registration.keyframes import register_frames
from ml.mosaic.registration.loop_keyframes import LoopKeyframeStore
from ml.mosaic.registration.result import Registration
from ml.mosaic.rendering.components import RenderedComponent, components_to_render, render_component
from ml.mosaic.rendering.files import publish
from ml.mosaic.report import make_frames, make_result
from ml.mosaic.result import MosaicResult
from ml.types import Progress, no_progress

DEFAULT_CONFIG = MosaicConfig()
GROWING_CHECKPOINTS = (KEY_NAME, "measures.npz", "registration.npz", "loop_keyframes")
"""Checkpoints that remain after a build whose source grows."""


def build_mosaic(
    frames_or_video: str | Path | Sequence[npt.NDArray[Any]] | npt.NDArray[Any],
    out_dir: str | Path,
    *,
    config: MosaicConfig = DEFAULT_CONFIG,
    mask: npt.NDArray[Any] | None = None,
    progress: Progress = no_progress,
    work_dir: str | Path | None = None,
    preview: Callable[[Path], None] | None = None,
    grows: bool = False,
) -> MosaicResult:
    """Build the mosaics of a sweep and write them to ``out_dir``; see ``ml.mosaic.result``.

    The same input and configuration give the same bytes. Existing contents of ``out_dir`` stay
    until the new files replace them.

    Args:
        frames_or_video: a folder of images in natural order, a video file, or (H, W[, C]) arrays.
        mask: (H, W), non-zero (above 127 for uint8) inside the scope; None estimates it.
        progress: called with phases survey, register, loops, align, blend, write; raising
            ``CancelledError`` stops the work.
        work_dir: folder for checkpoints. Called again with the same input, configuration and
            folder, a build that was killed or cancelled continues from its last finished stage and
            ends with the same bytes. Emptied at the end. None: a temporary folder, removed
            however the build ends.
        preview: called with the path of a small JPEG of the map so far, every few keyframes while
            registering and again once aligned; the file is replaced each time.
        grows: more frames will be added at the end: a longer ``config.end_pts`` or video, more
            images in the folder. Checkpoints then stay in ``work_dir``; called again with the same
            folder, only the new frames are surveyed and registered, all are optimised and blended
            together, and the result equals that of one build. If the source does not begin with
            the known frames, everything is built from the start.
    Returns:
        MosaicResult: every frame of the source with transform, status and reason.
    Raises:
        BadInputError: no frames, or none in the span; ``grows`` without ``work_dir``.
        ShapeError: the mask is not of the frames' size.
        MosaicError: no frame usable, no two frames
        registered, or the canvas too large.
    """
    target = Path(out_dir)
    if target.exists() and not target.is_dir():
        raise BadInputError(f"{target.name}: expected a folder to write to, found a file")
    source = open_source(
        frames_or_video, step=config.step, start_pts=config.start_pts, end_pts=config.end_pts
    )
    if grows and work_dir is None:
        raise BadInputError("grows: expected a work_dir, which keeps the frames so far")
    target.parent.mkdir(parents=True, exist_ok=True)
    checkpoints = None if work_dir is None else Path(work_dir)
    folder = checkpoints or Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        key, family = build_key(frames_or_video, mask, config), family_key(mask, config)
        stages = Stages(folder, key, family=family if grows else "")
        growing = GrowingPreview(folder, preview)
        result = _run(_Build(source, stages, config, mask, progress, growing), target)
        if checkpoints is not None:
            stages.clear(keep=GROWING_CHECKPOINTS if grows else ())
        return result
    finally:
        if checkpoints is None:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Build:
    """Inputs shared by all stages of one build."""

    source: FrameSource
    stages: Stages
    config: MosaicConfig
    mask: npt.NDArray[Any] | None
    progress: Progress
    growing: GrowingPreview


def _run(build: _Build, target: Path) -> MosaicResult:
    """Run the stages, skipping those that an earlier run finished."""
    distortion = _distortion(build)
    build = _undistort(build, distortion)
    build = replace(build, source=PrefetchedSource(build.source))
    survey = _survey(build)
    store = LoopKeyframeStore(
        build.stages.folder / "loop_keyframes", cap=build.config.max_loop_keyframes
    )
    registration = _register(build, survey, store)
    aligned = _align(build, survey, registration, store)
    rendered = _render(build, survey, registration, aligned)
    result = make_result(
        rendered,
        aligned,
        survey,
        registration,
        config=build.config,
        distortion=distortion,
        folder=target,
    )
    _publish(result, rendered, target)
    return result


def _distortion(build: _Build) -> tuple[float, ...]:
    """Distortion to correct: configured, estimated, or () for none."""
    if build.config.distortion or not build.config.estimate_distortion:
        return build.config.distortion
    distortion: tuple[float, ...] | None = build.stages.load("distortion")
    if distortion is None:
        distortion = estimate_distortion(
            build.source, config=build.config, mask=build.mask, progress=build.progress
        )
        build.stages.save("distortion", distortion)
    return distortion


def _undistort(build: _Build, distortion: tuple[float, ...]) -> _Build:
    if not distortion:
        return build
    source = UndistortedSource(build.source, distortion)
    mask = None if build.mask is None else source.undistorted_mask(build.mask)
    return replace(build, source=source, mask=mask)


def _survey(build: _Build) -> Survey:
    survey: Survey | None = build.stages.load("survey")
    if survey is None:
        earlier: FrameMeasures | None = build.stages.load_earlier("measures")
        measures = measure_frames(
            build.source, config=build.config, progress=build.progress, earlier=earlier
        )
        if build.stages.grows:
            build.stages.save("measures", measures)
        survey = survey_of(measures, config=build.config, mask=build.mask)
        build.stages.save("survey", survey)
    return survey


def _register(build: _Build, survey: Survey, store: LoopKeyframeStore) -> Registration:
    registration: Registration | None = build.stages.load("registration")
    if registration is None:
        registration = register_frames(
            build.source,
            survey,
            config=build.config,
            store=store,
            progress=build.progress,
            growing=build.growing,
            earlier=build.stages.load_earlier("registration"),
        )
        build.stages.save("registration", registration)
    store.restore(registration.loop_keyframes)
    return registration


def _align(
    build: _Build, survey: Survey, registration: Registration, store: LoopKeyframeStore
) -> tuple[AlignedComponent, ...]:
    aligned: tuple[AlignedComponent, ...] | None = build.stages.load("aligned")
    if aligned is None:
        config, progress = build.config, build.progress
        loops = loops_by_appearance(
            store, model=registration.motion_model, config=config, progress=progress
        )
        aligned = align_components(
            registration, loops, store, mask=survey.mask, config=config, progress=progress
        )
        build.stages.save("aligned", aligned)
    if aligned:
        build.growing.show_aligned(aligned[0].transforms)
    return aligned


def _render(
    build: _Build,
    survey: Survey,
    registration: Registration,
    aligned: tuple[AlignedComponent, ...],
) -> list[RenderedComponent]:
    """Render the components with enough frames.

    Raises:
        NothingRegisteredError: none has enough.
    """
    chosen = components_to_render(aligned, registration, build.config)
    if not chosen:
        frames = make_frames((), aligned, survey, registration)
        usable = sum(not check.reason for check in survey.checks)
        raise NothingRegisteredError(frames, usable=usable)
    return [
        render_component(
            build.source,
            survey,
            component,
            registration,
            index,
            config=build.config,
            stages=build.stages,
            progress=build.progress,
        )
        for index, component in enumerate(chosen)
    ]


def _publish(result: MosaicResult, rendered: list[RenderedComponent], target: Path) -> None:
    """Collect the components' files and the manifest in a temporary folder, then swap it in."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for component in rendered:
            for path in sorted(component.folder.iterdir()):
                shutil.move(path, folder / path.name)
        write_manifest(result, folder)
        publish(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
