"""A mosaic from a video: the stages in order, each in its own module."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ml.errors import BadInputError
from ml.mosaic.align import AlignedComponent, align_components
from ml.mosaic.components import RenderedComponent, components_to_render, render_component
from ml.mosaic.config import MosaicConfig
from ml.mosaic.distortion import estimate_distortion
from ml.mosaic.growing import GrowingPreview
from ml.mosaic.loop_keyframes import LoopKeyframeStore
from ml.mosaic.loops import loops_by_appearance
from ml.mosaic.manifest import write_manifest
from ml.mosaic.read_ahead import AheadSource
from ml.mosaic.register import register_frames
from ml.mosaic.registration import Registration
from ml.mosaic.report import make_frames, make_result
from ml.mosaic.result import MosaicResult
from ml.mosaic.sources import FrameSource, open_source
from ml.mosaic.spans import NothingRegisteredError
from ml.mosaic.stages import KEY_NAME, Stages, build_key, family_key
from ml.mosaic.survey import FrameMeasures, Survey, measure_frames, survey_of
from ml.mosaic.undistort import UndistortedSource
from ml.mosaic.write import publish
from ml.types import Progress, no_progress

DEFAULT_CONFIG = MosaicConfig()
KNOWN_NAMES = (KEY_NAME, "measures.npz", "registration.npz", "loop_keyframes")
"""What stays of a build whose source grows."""


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

    The same input and configuration give the same bytes. What ``out_dir`` held before stays until
    the new files replace it.

    Args:
        frames_or_video: a folder of images in natural order, a video file, or (H, W[, C]) arrays.
        mask: (H, W), non-zero (above 127 for uint8) inside the scope; None estimates it.
        progress: called with phases survey, register, loops, align, blend, write; raising
            ``CancelledError`` stops the work.
        work_dir: where finished stages are kept. Called again with the same input, configuration
            and folder, a build that was killed or cancelled continues from its last finished stage
            and ends with the same bytes. Emptied at the end. None: a temporary folder, removed
            however the build ends.
        preview: called with the path of a small JPEG of the map so far, every few keyframes while
            registering and again once aligned; the file is replaced each time.
        grows: more frames will come at the end: a longer ``config.end_pts`` or video, more images
            in the folder. What is known of the frames so far then stays in ``work_dir``; called
            again with the same folder, only the new frames are surveyed and registered, all are
            optimised and blended together, and the result is that of building at once. Where the
            source does not begin with the frames that are known, it is built anew.
    Returns:
        MosaicResult: every frame of the source with transform, status and reason.
    Raises:
        BadInputError: no frames there, or none in the span; ``grows`` without ``work_dir``.
        ShapeError: the mask is not of the frames' size. MosaicError: no frame usable, no two frames
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
    kept = None if work_dir is None else Path(work_dir)
    folder = kept or Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        key, family = build_key(frames_or_video, mask, config), family_key(mask, config)
        stages = Stages(folder, key, family=family if grows else "")
        growing = GrowingPreview(folder, preview)
        result = _run(_Build(source, stages, config, mask, progress, growing), target)
        if kept is not None:
            stages.clear(keep=KNOWN_NAMES if grows else ())
        return result
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Build:
    """What every stage of one build is given."""

    source: FrameSource
    stages: Stages
    config: MosaicConfig
    mask: npt.NDArray[Any] | None
    progress: Progress
    growing: GrowingPreview


def _run(build: _Build, target: Path) -> MosaicResult:
    """The stages, each skipped where an earlier run has finished it."""
    distortion = _distortion(build)
    build = _undistorted(build, distortion)
    build = replace(build, source=AheadSource(build.source))
    survey = _surveyed(build)
    store = LoopKeyframeStore(
        build.stages.folder / "loop_keyframes", cap=build.config.max_loop_keyframes
    )
    registration = _registered(build, survey, store)
    aligned = _aligned(build, survey, registration, store)
    rendered = _rendered(build, survey, registration, aligned)
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
    """The camera whose distortion is taken off: given, estimated, or () for none."""
    if build.config.distortion or not build.config.estimate_distortion:
        return build.config.distortion
    found: tuple[float, ...] | None = build.stages.load("distortion")
    if found is None:
        found = estimate_distortion(
            build.source, config=build.config, mask=build.mask, progress=build.progress
        )
        build.stages.save("distortion", found)
    return found


def _undistorted(build: _Build, distortion: tuple[float, ...]) -> _Build:
    if not distortion:
        return build
    source = UndistortedSource(build.source, distortion)
    mask = None if build.mask is None else source.undistorted_mask(build.mask)
    return replace(build, source=source, mask=mask)


def _surveyed(build: _Build) -> Survey:
    survey: Survey | None = build.stages.load("survey")
    if survey is None:
        known: FrameMeasures | None = build.stages.load_earlier("measures")
        measures = measure_frames(
            build.source, config=build.config, progress=build.progress, known=known
        )
        if build.stages.grows:
            build.stages.save("measures", measures)
        survey = survey_of(measures, config=build.config, mask=build.mask)
        build.stages.save("survey", survey)
    return survey


def _registered(build: _Build, survey: Survey, store: LoopKeyframeStore) -> Registration:
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


def _aligned(
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


def _rendered(
    build: _Build,
    survey: Survey,
    registration: Registration,
    aligned: tuple[AlignedComponent, ...],
) -> list[RenderedComponent]:
    """The components with enough frames, as files; a refusal that says why where none has."""
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
    """Gather the components' files and the manifest beside the target, then swap them in."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for component in rendered:
            for path in sorted(component.folder.iterdir()):
                shutil.move(path, folder / path.name)
        write_manifest(result, folder)
        publish(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
