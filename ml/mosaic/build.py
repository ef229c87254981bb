"""A mosaic from a video: the stages in order, each in its own module."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ml.errors import BadInputError
from ml.mosaic.align import Chain, chain_pieces
from ml.mosaic.components import Piece, render_piece, worth_a_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.distortion import estimate_distortion
from ml.mosaic.growing import GrowingPreview
from ml.mosaic.loop_keyframes import LandmarkStore
from ml.mosaic.loops import loops_by_look
from ml.mosaic.manifest import write_manifest
from ml.mosaic.register import register_frames
from ml.mosaic.registration import Registration
from ml.mosaic.report import make_frames, make_result
from ml.mosaic.result import MosaicResult
from ml.mosaic.sources import FrameSource, open_source
from ml.mosaic.spans import NothingRegisteredError
from ml.mosaic.stages import KEY_NAME, Stages, build_key, family_key
from ml.mosaic.survey import Seen, Survey, measure_frames, survey_of
from ml.mosaic.undistort import CorrectedSource
from ml.mosaic.write import publish
from ml.types import Progress, no_progress

DEFAULT_CONFIG = MosaicConfig()
KNOWN_NAMES = (KEY_NAME, "seen.npz", "registration.npz", "landmarks")
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
        frames_or_video: a folder of images in name order, a video file, or (H, W[, C]) arrays.
        mask: (H, W), non-zero (above 127 for uint8) inside the scope; None estimates it.
        progress: called with phases survey, register, loops, align, blend, write; raising
            ``CancelledError`` stops the work.
        work_dir: where finished stages are kept. Called again with the same input, configuration
            and folder, a build that was killed or cancelled goes on from its last finished stage
            and ends with the same bytes. Emptied at the end. None: a temporary folder, removed
            however the build ends.
        preview: called with the path of a small JPEG of the map so far, every few key frames while
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
        raise BadInputError("grows: expected a work_dir, in which the frames so far stay known")
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = None if work_dir is None else Path(work_dir)
    folder = kept or Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        stages = Stages(
            folder,
            build_key(frames_or_video, mask, config),
            family=family_key(mask, config) if grows else "",
        )
        result = _run(
            source,
            target,
            stages,
            config=config,
            mask=mask,
            progress=progress,
            growing=GrowingPreview(folder, preview),
        )
        if kept is not None:
            stages.clear(keep=KNOWN_NAMES if grows else ())
        return result
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(
    source: FrameSource,
    target: Path,
    stages: Stages,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    progress: Progress,
    growing: GrowingPreview,
) -> MosaicResult:
    """The stages, each skipped where an earlier run has finished it."""
    lens = _lens(source, stages, config=config, mask=mask, progress=progress)
    if lens:
        source = CorrectedSource(source, lens)
        mask = None if mask is None else source.corrected_mask(mask)
    survey = _surveyed(source, stages, config=config, mask=mask, progress=progress)
    store = LandmarkStore(stages.folder / "landmarks", cap=config.max_landmarks)
    registration: Registration | None = stages.load("registration")
    if registration is None:
        registration = register_frames(
            source,
            survey,
            config=config,
            store=store,
            progress=progress,
            growing=growing,
            earlier=stages.load_earlier("registration"),
        )
        stages.save("registration", registration)
    store.restore(registration.landmarks)
    chains: tuple[Chain, ...] | None = stages.load("chains")
    if chains is None:
        chains = stages.save(
            "chains", _aligned(registration, survey, store, config=config, progress=progress)
        )
    if chains:
        growing.show_places(chains[0].transforms)
    pieces: list[Piece] = []
    for chain in _chosen(chains, registration, survey, config):
        pieces.append(
            render_piece(
                source,
                survey,
                chain,
                registration,
                len(pieces),
                config=config,
                stages=stages,
                progress=progress,
            )
        )
    result = replace(
        make_result(pieces, chains, survey, registration, config=config, folder=target), lens=lens
    )
    _publish(result, pieces, target)
    return result


def _lens(
    source: FrameSource,
    stages: Stages,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    progress: Progress,
) -> tuple[float, ...]:
    """The camera whose distortion is taken off: given, estimated, or () for none."""
    if config.lens or not config.estimate_lens:
        return config.lens
    lens: tuple[float, ...] | None = stages.load("lens")
    if lens is None:
        lens = estimate_distortion(source, config=config, mask=mask, progress=progress)
        stages.save("lens", lens)
    return lens


def _surveyed(
    source: FrameSource,
    stages: Stages,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    progress: Progress,
) -> Survey:
    survey: Survey | None = stages.load("survey")
    if survey is None:
        known: Seen | None = stages.load_earlier("seen")
        seen = measure_frames(source, config=config, progress=progress, known=known)
        if stages.grows:
            stages.save("seen", seen)
        survey = stages.save("survey", survey_of(seen, config=config, mask=mask))
    return survey


def _aligned(
    registration: Registration,
    survey: Survey,
    store: LandmarkStore,
    *,
    config: MosaicConfig,
    progress: Progress,
) -> tuple[Chain, ...]:
    model = registration.model
    loops = loops_by_look(store, model=model, config=config, progress=progress)
    return chain_pieces(
        registration, loops, store, mask=survey.mask, config=config, progress=progress
    )


def _chosen(
    chains: tuple[Chain, ...], registration: Registration, survey: Survey, config: MosaicConfig
) -> list[Chain]:
    """The pieces that become mosaics, or a refusal that says why there is none."""
    chosen = worth_a_mosaic(chains, registration, config)
    if chosen:
        return chosen
    frames = make_frames((), chains, survey, registration)
    raise NothingRegisteredError(frames, usable=sum(not check.reason for check in survey.checks))


def _publish(result: MosaicResult, pieces: list[Piece], target: Path) -> None:
    """Gather the pieces' files and the manifest beside the target, then put them in its place."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for piece in pieces:
            for path in sorted(piece.folder.iterdir()):
                shutil.move(path, folder / path.name)
        write_manifest(result, folder)
        publish(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
