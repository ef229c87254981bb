"""What became of every frame, of the time between, and how far the mosaics may be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from ml.config import config_hash
from ml.mosaic.align import Chain
from ml.mosaic.canvas import view_outline
from ml.mosaic.components import Piece
from ml.mosaic.config import MosaicConfig
from ml.mosaic.registration import Registration
from ml.mosaic.result import (
    FAILED,
    MANIFEST_NAME,
    PREVIEW_NAME,
    PYRAMID_NAME,
    REASON_CODES,
    REGISTERED,
    SKIPPED,
    MosaicComponent,
    MosaicFrame,
    MosaicGap,
    MosaicQuality,
    MosaicResult,
    component_name,
)
from ml.mosaic.spans import frames_in_words, span_in_words, span_of
from ml.mosaic.stages import ENGINE
from ml.mosaic.survey import Survey


def make_result(
    pieces: Sequence[Piece],
    chains: Sequence[Chain],
    survey: Survey,
    registration: Registration,
    *,
    config: MosaicConfig,
    folder: Path,
) -> MosaicResult:
    """Everything the manifest says, from what the stages have left."""
    frames = make_frames(pieces, chains, survey, registration)
    first = pieces[0]
    links = [link for piece in pieces for link in piece.chain.links]
    return MosaicResult(
        frames=frames,
        path=folder / PYRAMID_NAME,
        preview=folder / PREVIEW_NAME,
        manifest=folder / MANIFEST_NAME,
        width_px=first.canvas.width_px,
        height_px=first.canvas.height_px,
        model=registration.model,
        anchor_index=survey.checks[first.chain.anchor].index,
        config_hash=config_hash(config),
        components=tuple(_component(piece, frames, survey) for piece in pieces),
        gaps=find_gaps(frames),
        quality=_quality(frames, len(frames), sum(link.kind == "loop" for link in links)),
        view=view_outline(survey),
        frame_size_px=survey.size_px,
        engine=ENGINE,
    )


def find_gaps(frames: Sequence[MosaicFrame]) -> tuple[MosaicGap, ...]:
    """Runs of frames that are in no mosaic, each named by its seconds (or frames)."""
    gaps = []
    for is_in, run in groupby(frames, key=lambda f: f.status == REGISTERED):
        members = list(run)
        if is_in:
            continue
        code, _ = Counter(f.reason_code for f in members).most_common(1)[0]
        span = span_of(members)
        why = REASON_CODES.get(code, code)
        text = f"{span_in_words(span)} ({frames_in_words(len(members))}): {why}"
        gaps.append(MosaicGap(span, len(members), code, text))
    return tuple(gaps)


def make_frames(
    pieces: Sequence[Piece],
    chains: Sequence[Chain],
    survey: Survey,
    registration: Registration,
) -> tuple[MosaicFrame, ...]:
    """What became of every frame; without pieces, why each is in none."""
    place = {f: piece for piece in pieces for f in piece.canvas.transforms}
    riding = {f: piece for piece in pieces for f in piece.canvas.riding}
    key_of = {item.position: item.key for item in registration.tracked}
    linked = {f for chain in chains for link in chain.links for f in (link.a, link.b)}
    counts = Counter(f for p in pieces for link in p.chain.links for f in (link.a, link.b))
    placed_by_chain = {f for chain in chains for f in chain.transforms}
    frames = []
    for position, check in enumerate(survey.checks):
        if position in place or position in riding:
            piece = place.get(position) or riding[position]
            key = key_of.get(position, position)
            frames.append(_registered(position, key, piece, survey, links=counts[position]))
            continue
        key = key_of.get(position, position)
        code = check.reason_code or _why_not(key, linked, placed_by_chain)
        frames.append(
            MosaicFrame(
                index=check.index,
                pts=check.pts,
                H_mosaic_from_frame=None,
                status=SKIPPED if check.reason else FAILED,
                reason=check.reason or REASON_CODES[code],
                reason_code=code,
                time_s=check.time_s,
                sharpness=check.focus,
                exposure=check.exposure,
            )
        )
    return tuple(frames)


def _registered(
    position: int, key: int, piece: Piece, survey: Survey, *, links: int
) -> MosaicFrame:
    check = survey.checks[position]
    own = piece.canvas.transforms.get(position)
    error = piece.chain.error_px.get(position)
    to_frame = np.diag([1 / survey.scale, 1 / survey.scale, 1.0])
    covariance = to_frame @ piece.chain.covariance[key] @ to_frame
    return MosaicFrame(
        index=check.index,
        pts=check.pts,
        H_mosaic_from_frame=piece.canvas.riding[position] if own is None else own,
        status=REGISTERED,
        links=links,
        error_px=None if error is None else error / survey.scale,
        time_s=check.time_s,
        component=piece.index,
        is_key=own is not None,
        covariance=covariance,
        corner_sigma_px=piece.chain.corner_sigma_px[key] / survey.scale,
        sharpness=check.focus,
        exposure=check.exposure,
    )


def _why_not(key: int, linked: set[int], placed: set[int]) -> str:
    if key not in linked:
        return "no-match"
    return "small-piece" if key in placed else "disagrees"


def _component(piece: Piece, frames: Sequence[MosaicFrame], survey: Survey) -> MosaicComponent:
    own = [frame for frame in frames if frame.component == piece.index]
    loops = sum(link.kind == "loop" for link in piece.chain.links)
    spans = []
    for is_own, run in groupby(frames, key=lambda f: f.component == piece.index):
        if is_own:
            spans.append(span_of(list(run)))
    first, last = own[0].time_s, own[-1].time_s
    return MosaicComponent(
        index=piece.index,
        pyramid=component_name("mosaic", ".tif", piece.index),
        preview=component_name("preview", ".jpg", piece.index),
        width_px=piece.canvas.width_px,
        height_px=piece.canvas.height_px,
        anchor_index=survey.checks[piece.chain.anchor].index,
        n_registered=len(own),
        spans=tuple(spans),
        layers=piece.layers,
        quality=_quality(own, len(frames), loops),
        seconds=None if first is None or last is None else round(last - first, 3),
    )


def _quality(frames: Sequence[MosaicFrame], total: int, loops: int) -> MosaicQuality:
    inside = [frame for frame in frames if frame.status == REGISTERED]
    errors = [frame.error_px for frame in inside if frame.error_px is not None]
    sigmas = [frame.corner_sigma_px for frame in inside if frame.corner_sigma_px is not None]
    return MosaicQuality(
        registered_share=round(len(inside) / max(total, 1), 4),
        median_error_px=round(float(np.median(errors)), 4) if errors else None,
        loops_closed=loops,
        max_sigma_px=round(max(sigmas), 4) if sigmas else None,
    )
