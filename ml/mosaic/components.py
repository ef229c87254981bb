"""Stages 5 to 7 for one connected component: canvas, local fit, blend, layers, files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ml.mosaic.align import AlignedComponent
from ml.mosaic.blend import blend_frames
from ml.mosaic.canvas import MosaicCanvas, PlacedFrame, lay_out, view_outline
from ml.mosaic.config import MosaicConfig
from ml.mosaic.exposure import frame_gains
from ml.mosaic.layers import write_layers
from ml.mosaic.local_fit import fit_locally, riding_mesh
from ml.mosaic.registration import Registration
from ml.mosaic.result import MosaicLayer
from ml.mosaic.sources import FrameSource
from ml.mosaic.stages import Stages
from ml.mosaic.survey import Survey
from ml.mosaic.write import write_images
from ml.types import ArrayF64, Progress


@dataclass(frozen=True, slots=True)
class RenderedComponent:
    """A component as files, which lie in ``folder`` until the build publishes them."""

    index: int
    aligned: AlignedComponent
    canvas: MosaicCanvas
    layers: tuple[MosaicLayer, ...]
    folder: Path


def components_to_render(
    aligned: tuple[AlignedComponent, ...], registration: Registration, config: MosaicConfig
) -> list[AlignedComponent]:
    """Components with enough frames, riders counted, the largest first; at least two in the first.

    One with fewer than ``config.min_component_frames`` becomes a mosaic only where it is the
    largest.
    """
    riders: dict[int, int] = {}
    for item in registration.tracked:
        riders[item.key] = riders.get(item.key, 0) + 1
    sizes = [
        (len(item.transforms) + sum(riders.get(f, 0) for f in item.transforms), item)
        for item in aligned
        if item.transforms
    ]
    sizes.sort(key=lambda item: (-item[0], min(item[1].transforms)))
    chosen = [item for n, item in sizes if n >= config.min_component_frames]
    if not chosen and sizes and sizes[0][0] >= 2:
        chosen = [sizes[0][1]]
    return chosen[: config.max_components]


def render_component(
    source: FrameSource,
    survey: Survey,
    aligned: AlignedComponent,
    registration: Registration,
    index: int,
    *,
    config: MosaicConfig,
    stages: Stages,
    progress: Progress,
) -> RenderedComponent:
    """Blend one component into files; one that an earlier run has finished is taken as it is."""
    canvas = lay_out(aligned, registration.tracked, survey, config=config)
    if config.local_fit:
        meshes = _meshes(source, survey, aligned, index, stages=stages, progress=progress)
        canvas = replace(canvas, meshes=meshes | _riding(meshes, canvas, registration, survey))
    folder = stages.folder / f"component-{index}"
    layers: tuple[MosaicLayer, ...] | None = stages.load(f"component-{index}")
    if layers is None or not folder.is_dir():
        unfinished = stages.folder / f"component-{index}.part"
        for leftover in (unfinished, folder):
            shutil.rmtree(leftover, ignore_errors=True)
        unfinished.mkdir()
        _blend(
            source,
            survey,
            aligned,
            canvas,
            index,
            config=config,
            into=unfinished,
            progress=progress,
        )
        layers = write_layers(
            canvas,
            placed_frames(canvas, aligned, registration, survey),
            view_outline(survey),
            unfinished,
            size_px=survey.size_px,
            component=index,
            layer_px=config.layer_px,
        )
        unfinished.replace(folder)
        stages.save(f"component-{index}", layers)
    return RenderedComponent(index, aligned, canvas, layers, folder)


def _meshes(
    source: FrameSource,
    survey: Survey,
    aligned: AlignedComponent,
    index: int,
    *,
    stages: Stages,
    progress: Progress,
) -> dict[int, ArrayF64]:
    meshes: dict[int, ArrayF64] | None = stages.load(f"meshes-{index}")
    if meshes is None:
        meshes = fit_locally(source, survey, aligned, work_dir=stages.folder, progress=progress)
        stages.save(f"meshes-{index}", meshes)
    return meshes


def _riding(
    meshes: dict[int, ArrayF64], canvas: MosaicCanvas, registration: Registration, survey: Survey
) -> dict[int, ArrayF64]:
    """The meshes of the frames that ride along with a keyframe that has one."""
    return {
        item.position: riding_mesh(meshes[item.key], item, survey)
        for item in registration.tracked
        if item.key in meshes and item.position in canvas.riding
    }


def placed_frames(
    canvas: MosaicCanvas, aligned: AlignedComponent, registration: Registration, survey: Survey
) -> tuple[PlacedFrame, ...]:
    """Every registered frame of a component, keyframes and riders, in order."""
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
                uncertainty_px=aligned.uncertainty_px.get(key, 0.0) / survey.scale,
                mesh=canvas.meshes.get(position),
            )
        )
    return tuple(placed)


def _blend(
    source: FrameSource,
    survey: Survey,
    aligned: AlignedComponent,
    canvas: MosaicCanvas,
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
    gains = frame_gains(aligned)
    blend_frames(source, survey, canvas, gains, out=pixels, work_dir=into, progress=progress)
    progress(0, 1, "write")
    write_images(pixels, into, component=index, config=config)
    del pixels
    raw.unlink()
    progress(1, 1, "write")
