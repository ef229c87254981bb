"""Stages 5 to 7 for one connected component: canvas, local fit, blend, layers, files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ml.mosaic.alignment.canvas import MosaicCanvas, PlacedFrame, lay_out, view_outline
from ml.mosaic.alignment.components import AlignedComponent
from ml.mosaic.checkpoints import Stages
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.sources import FrameSource
from ml.mosaic.frames.survey import Survey
from ml.mosaic.local_mesh.fit import fit_locally, tracked_mesh
from ml.mosaic.registration.result import Registration
from ml.mosaic.rendering.blend import blend_frames
from ml.mosaic.rendering.exposure import frame_gains
from ml.mosaic.rendering.files import write_images
from ml.mosaic.rendering.layers import write_layers
from ml.mosaic.result import MosaicLayer
from ml.types import ArrayF64, Progress


@dataclass(frozen=True, slots=True)
class RenderedComponent:
    """A component as files in ``folder``, which the build publishes later."""

    index: int
    aligned: AlignedComponent
    canvas: MosaicCanvas
    layers: tuple[MosaicLayer, ...]
    folder: Path


def components_to_render(
    aligned: tuple[AlignedComponent, ...], registration: Registration, config: MosaicConfig
) -> list[AlignedComponent]:
    """Components with enough frames, tracked ones included, the largest first.

    One with fewer than ``config.min_component_frames`` becomes a mosaic only where it is the
    largest and has at least two.
    """
    tracked_counts: dict[int, int] = {}
    for item in registration.tracked:
        tracked_counts[item.key] = tracked_counts.get(item.key, 0) + 1
    sizes = [
        (len(item.transforms) + sum(tracked_counts.get(f, 0) for f in item.transforms), item)
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
    """Blend one component into files, or reuse the files of an earlier run."""
    canvas = lay_out(aligned, registration.tracked, survey, config=config)
    if config.local_fit:
        meshes = _meshes(source, survey, aligned, index, stages=stages, progress=progress)
        canvas = replace(
            canvas, meshes=meshes | _tracked_meshes(meshes, canvas, registration, survey)
        )
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


def _tracked_meshes(
    meshes: dict[int, ArrayF64], canvas: MosaicCanvas, registration: Registration, survey: Survey
) -> dict[int, ArrayF64]:
    """Meshes of the frames between keyframes, each derived from its keyframe's mesh."""
    return {
        item.position: tracked_mesh(meshes[item.key], item, survey)
        for item in registration.tracked
        if item.key in meshes and item.position in canvas.tracked_transforms
    }


def placed_frames(
    canvas: MosaicCanvas, aligned: AlignedComponent, registration: Registration, survey: Survey
) -> tuple[PlacedFrame, ...]:
    """Every registered frame of a component in order, keyframes and frames placed by them."""
    key_of = {f: f for f in canvas.transforms}
    key_of |= {
        t.position: t.key for t in registration.tracked if t.position in canvas.tracked_transforms
    }
    placed = []
    for position, key in sorted(key_of.items()):
        check = survey.checks[position]
        matrix = canvas.transforms.get(position)
        placed.append(
            PlacedFrame(
                position=position,
                index=check.index,
                time_s=check.time_s,
                H_mosaic_from_frame=canvas.tracked_transforms[position]
                if matrix is None
                else matrix,
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
    """Blend into a memory-mapped file, then write the images."""
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
