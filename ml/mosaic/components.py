"""Stages 6 and 7 for one connected piece of the video: canvas, blend, layers, files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.mosaic.align import Chain
from ml.mosaic.blend import blend_frames
from ml.mosaic.canvas import Canvas, PlacedFrame, lay_out, view_outline
from ml.mosaic.config import MosaicConfig
from ml.mosaic.exposure import frame_gains
from ml.mosaic.layers import write_layers
from ml.mosaic.registration import Registration
from ml.mosaic.result import MosaicLayer
from ml.mosaic.sources import FrameSource
from ml.mosaic.stages import Stages
from ml.mosaic.survey import Survey
from ml.mosaic.write import write_images
from ml.types import Progress


@dataclass(frozen=True, slots=True)
class Piece:
    """A rendered piece: its files lie in ``folder`` until the build publishes them."""

    index: int
    chain: Chain
    canvas: Canvas
    layers: tuple[MosaicLayer, ...]
    folder: Path


def worth_a_mosaic(
    chains: tuple[Chain, ...], registration: Registration, config: MosaicConfig
) -> list[Chain]:
    """Pieces with enough frames, riders counted, the most frames first; at least two in the first.

    A piece smaller than ``config.min_piece`` becomes a mosaic only where it is the largest.
    """
    riders: dict[int, int] = {}
    for item in registration.tracked:
        riders[item.key] = riders.get(item.key, 0) + 1
    sizes = [
        (len(chain.transforms) + sum(riders.get(f, 0) for f in chain.transforms), chain)
        for chain in chains
        if chain.transforms
    ]
    sizes.sort(key=lambda item: (-item[0], min(item[1].transforms)))
    chosen = [chain for n, chain in sizes if n >= config.min_piece]
    if not chosen and sizes and sizes[0][0] >= 2:
        chosen = [sizes[0][1]]
    return chosen[: config.max_pieces]


def render_piece(
    source: FrameSource,
    survey: Survey,
    chain: Chain,
    registration: Registration,
    index: int,
    *,
    config: MosaicConfig,
    stages: Stages,
    progress: Progress,
) -> Piece:
    """Blend one piece into files; a piece that an earlier run has finished is taken as it is."""
    canvas = lay_out(chain, registration.tracked, survey, config=config)
    folder = stages.folder / f"piece-{index}"
    layers: tuple[MosaicLayer, ...] | None = stages.load(f"piece-{index}")
    if layers is None or not folder.is_dir():
        part = stages.folder / f"piece-{index}.part"
        for leftover in (part, folder):
            shutil.rmtree(leftover, ignore_errors=True)
        part.mkdir()
        _blend(source, survey, chain, canvas, index, config=config, into=part, progress=progress)
        layers = write_layers(
            canvas,
            placed_frames(canvas, chain, registration, survey),
            view_outline(survey),
            part,
            component=index,
            layer_px=config.layer_px,
        )
        part.replace(folder)
        stages.save(f"piece-{index}", layers)
    return Piece(index, chain, canvas, layers, folder)


def placed_frames(
    canvas: Canvas, chain: Chain, registration: Registration, survey: Survey
) -> tuple[PlacedFrame, ...]:
    """Every registered frame of a piece, key frames and riders, in order."""
    key_of = {f: f for f in canvas.transforms}
    key_of |= {t.position: t.key for t in registration.tracked if t.position in canvas.riding}
    placed = []
    for position, key in sorted(key_of.items()):
        check = survey.checks[position]
        matrix = canvas.transforms.get(position)
        placed.append(
            PlacedFrame(
                position=position,
                index=check.index,
                time_s=check.time_s,
                H_mosaic_from_frame=canvas.riding[position] if matrix is None else matrix,
                corner_sigma_px=chain.corner_sigma_px.get(key, 0.0) / survey.scale,
            )
        )
    return tuple(placed)


def _blend(
    source: FrameSource,
    survey: Survey,
    chain: Chain,
    canvas: Canvas,
    index: int,
    *,
    config: MosaicConfig,
    into: Path,
    progress: Progress,
) -> None:
    """Blend into a memory map beside the output, then write the images."""
    raw = into / "pixels.raw"
    shape = (canvas.height_px, canvas.width_px, 3)
    pixels = np.memmap(raw, np.uint8, mode="w+", shape=shape)
    gains = frame_gains(chain)
    blend_frames(source, survey, canvas, gains, out=pixels, work_dir=into, progress=progress)
    progress(0, 1, "write")
    write_images(pixels, into, component=index, config=config)
    del pixels
    raw.unlink()
    progress(1, 1, "write")
