"""Report of a build: status of every frame, gaps, and accuracy of the mosaics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from ml.config import config_hash
from ml.mosaic.alignment.canvas import view_outline
from ml.mosaic.alignment.components import AlignedComponent
from ml.mosaic.checkpoints import ENGINE
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.survey import FrameCheck, Survey
from ml.mosaic.gaps import frames_in_words, span_in_words, span_of
from ml.mosaic.registration.result import Registration
from ml.mosaic.rendering.components import RenderedComponent
from ml.mosaic.result import (
    FAILED,
    MANIFEST_NAME,
    PREVIEW_NAME,
    PYRAMID_NAME,
    REASON_CODES,
    REGISTERED,
    SKIPPED,
    ComponentResult,
    FrameResult,
    MosaicGap,
    MosaicQuality,
    MosaicResult,
    component_name,
)


def make_result(
    rendered: Sequence[RenderedComponent],
    aligned: Sequence[AlignedComponent],
    survey: Survey,
    registration: Registration,
    *,
    config: MosaicConfig,
    distortion: tuple[float, ...],
    folder: Path,
) -> MosaicResult:
    """Collect the outputs of the stages into the result of a build."""
    frames = make_frames(rendered, aligned, survey, registration)
    first = rendered[0]
    links = [link for component in rendered for link in component.aligned.links]
    return MosaicResult(
        frames=frames,
        path=folder / PYRAMID_NAME,
        preview=folder / PREVIEW_NAME,
        manifest=folder / MANIFEST_NAME,
        width_px=first.canvas.width_px,
        height_px=first.canvas.height_px,
        motion_model=registration.motion_model,
        anchor_index=survey.checks[first.aligned.anchor].index,
        config_hash=config_hash(config),
        components=tuple(_component(component, frames, survey) for component in rendered),
        gaps=find_gaps(frames),
        quality=_quality(frames, len(frames), sum(link.kind == "loop" for link in links)),
        view_outline=view_outline(survey),
        frame_size_px=survey.size_px,
        engine=ENGINE,
        distortion=distortion,
    )


def find_gaps(frames: Sequence[FrameResult]) -> tuple[MosaicGap, ...]:
    """Runs of frames that are in no mosaic, each named by its seconds (or frames)."""
    gaps = []
    for is_in, run in groupby(frames, key=lambda f: f.status == REGISTERED):
        members = list(run)
        if is_in:
            continue
        code, _ = Counter(f.reason_code for f in members).most_common(1)[0]
        span = span_of(members)
        reason = REASON_CODES.get(code, code)
        text = f"{span_in_words(span)} ({frames_in_words(len(members))}): {reason}"
        gaps.append(MosaicGap(span, len(members), code, text))
    return tuple(gaps)


def make_frames(
    rendered: Sequence[RenderedComponent],
    aligned: Sequence[AlignedComponent],
    survey: Survey,
    registration: Registration,
) -> tuple[FrameResult, ...]:
    """Result of every frame; where no component was rendered, the reason of each."""
    component_of = {
        f: c for c in rendered for f in (*c.canvas.tracked_transforms, *c.canvas.transforms)
    }
    key_of = {item.position: item.key for item in registration.tracked}
    linked = {f for c in aligned for link in c.links for f in (link.a, link.b)}
    counts = Counter(f for c in rendered for link in c.aligned.links for f in (link.a, link.b))
    placed = {f for component in aligned for f in component.transforms}
    frames = []
    for position, check in enumerate(survey.checks):
        key = key_of.get(position, position)
        if (component := component_of.get(position)) is not None:
            links = counts[position]
            frames.append(_registered_frame(position, key, component, survey, links=links))
        else:
            code = check.reason_code or _failure_code(key, linked, placed)
            frames.append(_unregistered_frame(check, code))
    return tuple(frames)


def _unregistered_frame(check: FrameCheck, code: str) -> FrameResult:
    return FrameResult(
        index=check.index,
        pts=check.pts,
        H_mosaic_from_frame=None,
        status=SKIPPED if check.reason else FAILED,
        reason=check.reason or REASON_CODES[code],
        reason_code=code,
        time_s=check.time_s,
        sharpness=check.sharpness,
        brightness=check.brightness,
        name=check.name,
    )


def _registered_frame(
    position: int, key: int, component: RenderedComponent, survey: Survey, *, links: int
) -> FrameResult:
    check = survey.checks[position]
    matrix = component.canvas.transforms.get(position)
    error = component.aligned.error_px.get(position)
    to_frame = np.diag([1 / survey.scale, 1 / survey.scale, 1.0])
    covariance = to_frame @ component.aligned.covariance[key] @ to_frame
    return FrameResult(
        index=check.index,
        pts=check.pts,
        H_mosaic_from_frame=component.canvas.tracked_transforms[position]
        if matrix is None
        else matrix,
        status=REGISTERED,
        links=links,
        error_px=None if error is None else error / survey.scale,
        time_s=check.time_s,
        component=component.index,
        is_key=matrix is not None,
        covariance=covariance,
        uncertainty_px=component.aligned.uncertainty_px[key] / survey.scale,
        sharpness=check.sharpness,
        brightness=check.brightness,
        mesh=component.canvas.meshes.get(position),
        name=check.name,
    )


def _failure_code(key: int, linked: set[int], placed: set[int]) -> str:
    if key not in linked:
        return "no-match"
    return "small-component" if key in placed else "disagrees"


def _component(
    component: RenderedComponent, frames: Sequence[FrameResult], survey: Survey
) -> ComponentResult:
    members = [frame for frame in frames if frame.component == component.index]
    loops = sum(link.kind == "loop" for link in component.aligned.links)
    spans = []
    for is_member, run in groupby(frames, key=lambda f: f.component == component.index):
        if is_member:
            spans.append(span_of(list(run)))
    first, last = members[0].time_s, members[-1].time_s
    return ComponentResult(
        index=component.index,
        pyramid=component_name("mosaic", ".tif", component.index),
        preview=component_name("preview", ".jpg", component.index),
        width_px=component.canvas.width_px,
        height_px=component.canvas.height_px,
        anchor_index=survey.checks[component.aligned.anchor].index,
        registered_count=len(members),
        spans=tuple(spans),
        layers=component.layers,
        quality=_quality(members, len(frames), loops),
        seconds=None if first is None or last is None else round(last - first, 3),
    )


def _quality(frames: Sequence[FrameResult], total: int, loops: int) -> MosaicQuality:
    inside = [frame for frame in frames if frame.status == REGISTERED]
    errors = [frame.error_px for frame in inside if frame.error_px is not None]
    sigmas = [frame.uncertainty_px for frame in inside if frame.uncertainty_px is not None]
    return MosaicQuality(
        registered_share=round(len(inside) / max(total, 1), 4),
        median_error_px=round(float(np.median(errors)), 4) if errors else None,
        loops_closed=loops,
        max_uncertainty_px=round(max(sigmas), 4) if sigmas else None,
    )
