"""Checks that rows of a crate are as this portal would have written them, as its pages expect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from portal.annotations.models import Roi, RoiRevision
from portal.annotations.services.fields import require_as_stored
from portal.archive.models import Canvas, CanvasKind
from portal.archive.services.uploads import filename_clean
from portal.core.errors import InvalidInputError
from portal.embeddings.models import Embedding, Encoder
from portal.interop.rocrate.formats.reader import CrateError, CrateReader, shown
from portal.mosaics.models import Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.options import options_clean

_LAYER_NAME = re.compile(r"[a-z_]{1,40}\Z")  # of a URL: coverage, time_last
_LAYER_NUMBERS = ("minimum", "maximum", "downsample")
_ENGINE = ("version", "config_hash")
_MESH = (9, 9, 2)  # nodes down and across, and a displacement at each
_MIN_DETERMINANT = 1e-12  # determinant of a frame's transform: a smaller one has no usable inverse


def roi_check(
    row: Roi | RoiRevision, canvas: Canvas, frame_index: int | None, frames: int, where: str
) -> None:
    """Check the outline, measures, track and properties of a region of a crate.

    Args:
        frame_index: Frame of the region, if it is on a video.
        frames: Number of frames of its video.
    """
    is_video = canvas.kind == CanvasKind.VIDEO
    if is_video != (frame_index is not None):
        raise CrateError(f"{where}: frame_index: only for a region on a video, which needs it.")
    if isinstance(row, Roi) and (row.frame_index is None) != (row.frame_pts is None):
        raise CrateError(f"{where}: frame_pts: expected together with frame_index.")
    if frame_index is not None:
        require_frame(frame_index, frames, where)
    if row.version < 1:
        raise CrateError(f"{where}: version: expected 1 or more.")
    try:
        require_as_stored(row, canvas=canvas, own_index=frame_index)
    except InvalidInputError as error:
        raise CrateError(f"{where}: {error.message}") from error
    for key in row.track:
        require_frame(key["index"], frames, where)


def require_frame(index: int, frames: int, where: str) -> None:
    """Require one of the frames that the crate says its video has."""
    if not 0 <= index < frames:
        raise CrateError(
            f"{where}: frame {index} is not one of the {frames:,} frames of its video."
        )


def vector_check(row: Embedding, encoder: Encoder, where: str) -> None:
    """Require a vector of finite numbers with its encoder's dimension."""
    vector = np.frombuffer(row.vector, "<f4") if len(row.vector) % 4 == 0 else np.empty(0)
    if len(vector) != encoder.dim or not np.isfinite(vector).all():
        raise CrateError(f"{where}: vector: expected {encoder.dim} finite numbers.")


def mosaic_check(mosaic: Mosaic, where: str) -> None:
    """Choices that can be made, and figures of the kind that a build leaves."""
    try:
        is_clean = options_clean(mosaic.config) == mosaic.config
    except InvalidInputError as error:
        raise CrateError(f"{where}: {error.message}") from error
    if not is_clean:
        raise CrateError(f"{where}: config: expected only what differs from the defaults.")
    _objects(mosaic.gaps, f"{where}: gaps")
    if not all(isinstance(mosaic.engine.get(name, ""), str) for name in _ENGINE):
        raise CrateError(f"{where}: engine: expected texts for {' and '.join(_ENGINE)}.")
    if mosaic.view_outline and not _is_outline(mosaic.view_outline):
        raise CrateError(
            f"{where}: view_outline: expected three or more points, each with x and y."
        )
    if not all(isinstance(warning, str) for warning in mosaic.warnings):
        raise CrateError(f"{where}: warnings: expected a list of texts.")
    mosaic.name = filename_clean(mosaic.name)


def mosaic_file(component: MosaicComponent, path: str, crate: CrateReader, ending: str) -> str:
    """The name in the crate of a file that a mosaic's canvas names by its path in the storage."""
    folder = f"derived/{component.mosaic_id}/"
    name = f"mosaics/{component.mosaic_id}/{path.removeprefix(folder)}"
    if not path.startswith(folder) or name not in crate.files or not name.endswith(ending):
        raise CrateError(
            f"canvas {component.canvas_id}: {shown(path)} is not a file of its mosaic."
        )
    return name


def component_check(component: MosaicComponent, files: Mapping[str, object], where: str) -> None:
    """Runs of frames, and layers whose pictures are files of its mosaic."""
    _objects(component.spans, f"{where}: spans")
    _objects(component.layers, f"{where}: layers")
    for layer in component.layers:
        name, png, unit = layer.get("name"), layer.get("png"), layer.get("unit")
        if not isinstance(name, str) or not _LAYER_NAME.match(name) or not isinstance(unit, str):
            raise CrateError(f"{where}: layers: expected a name and a unit for each.")
        is_there = isinstance(png, str) and f"mosaics/{component.mosaic_id}/{png}" in files
        if not is_there or not str(png).endswith(".png"):
            raise CrateError(f"{where}: layers: {shown(png)} is not a picture of its mosaic.")
        if _numbers([layer.get(number) for number in _LAYER_NUMBERS]) is None:
            raise CrateError(f"{where}: layers: expected numbers for {', '.join(_LAYER_NUMBERS)}.")


def frame_check(frame: MosaicFrame, components: set[int], frames: int, where: str) -> None:
    """A frame of the video, a transform that can be inverted, and where it leads to."""
    require_frame(frame.index, frames, where)
    matrix = frame.H_mosaic_from_frame
    if matrix is not None:
        transform = _numbers(matrix)
        if (
            transform is None
            or transform.shape != (3, 3)
            or abs(np.linalg.det(transform)) < _MIN_DETERMINANT
        ):
            raise CrateError(
                f"{where}: H_mosaic_from_frame: expected 3 x 3 numbers with an inverse."
            )
    if frame.mesh is not None and _shape(frame.mesh) != _MESH:
        raise CrateError(f"{where}: mesh: expected 9 x 9 x 2 numbers.")
    if frame.covariance is not None and len(_shape(frame.covariance)) != 2:
        raise CrateError(f"{where}: covariance: expected rows of numbers.")
    if frame.component is not None and frame.component not in components:
        raise CrateError(f"{where}: component: the mosaic has no component with this index.")


def _objects(values: Sequence[Any], where: str) -> None:
    if not all(isinstance(value, dict) for value in values):
        raise CrateError(f"{where}: expected a list of objects.")


def _is_outline(points: object) -> bool:
    numbers = _numbers(points)
    return numbers is not None and numbers.ndim == 2 and len(numbers) >= 3 and numbers.shape[1] == 2


def _shape(values: object) -> tuple[int, ...]:
    """The shape of numbers; () for anything else."""
    numbers = _numbers(values)
    return () if numbers is None else numbers.shape


def _numbers(values: object) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Finite ones, in rows of equal length; None for anything else."""
    if not isinstance(values, list) or not _are_numbers(values):
        return None
    try:
        numbers = np.array(values, np.float64)
    except (ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _are_numbers(values: Sequence[Any]) -> bool:
    """True for numbers only: NumPy also accepts texts that look like numbers."""
    return all(
        _are_numbers(value)
        if isinstance(value, list)
        else isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
    )
