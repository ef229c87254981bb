"""Placement errors of a mosaic's frames: against exact truth, a reference, or another run."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError
from ml.files import NO_ARRAYS
from ml.geometry import FrameMaps, box_corners, transform_points
from ml.mosaic.result import MosaicResult
from ml.types import ArrayBool, ArrayF64

REFERENCE_DISTANCES = (1, 5, 20)
"""Distances in frames."""
VIEW_POINTS = 9
"""Side of the grid of points in the view: as fine as a mesh."""
AGREEMENT_DISTANCES = (1, 5, 20, 60)
"""Distances in frames between two runs."""


@dataclass(frozen=True, slots=True)
class TruthScore:
    """Corner errors of registered frames in the anchor's plane, anchor px.

    Attributes:
        mean_px, median_px, max_px: over frames, each the mean over the frame's four corners.
        drift_px: mean over the tenth of the frames farthest in time from the anchor.
    """

    n: int
    mean_px: float
    median_px: float
    max_px: float
    drift_px: float


def score_against_truth(
    result: MosaicResult, truth: Mapping[int, ArrayF64], *, size_px: tuple[int, int]
) -> TruthScore:
    """Compare each frame's transform to the anchor with the true one, at its corners.

    Args:
        truth: frame index -> (3, 3) H_reference_from_frame in one common plane.
            Frames of other components than the anchor's lie in other planes and are left out.
        size_px: (width, height) of the frames.
    Raises:
        BadInputError: no registered frame has a truth, or the anchor has none.
    """
    main = {frame.index for frame in result.frames if frame.component in (0, None)}
    placed = {f: m for f, m in placed_transforms(result).items() if f in main}
    anchor = result.anchor_index
    if anchor not in truth or anchor not in placed:
        raise BadInputError(f"truth: expected a transform of the anchor frame {anchor}, found none")
    common = sorted(set(placed) & set(truth))
    corners = frame_corners(size_px)
    errors = np.array(
        [
            _corner_error(
                np.linalg.solve(placed[anchor], placed[f]),
                np.linalg.solve(truth[anchor], truth[f]),
                corners,
            )
            for f in common
        ]
    )
    by_distance = np.argsort([-abs(f - anchor) for f in common], kind="stable")
    return TruthScore(
        n=len(common),
        mean_px=float(errors.mean()),
        median_px=float(np.median(errors)),
        max_px=float(errors.max()),
        drift_px=float(errors[by_distance[: max(1, len(by_distance) // 10)]].mean()),
    )


def reference_agreement(
    result: MosaicResult,
    reference: Mapping[int, ArrayF64],
    *,
    size_px: tuple[int, int],
    distances: Sequence[int] = REFERENCE_DISTANCES,
) -> dict[str, float]:
    """Median corner distance in px to a reference motion, by distance in frames.

    Args:
        reference: index -> (3, 3) mapping that frame to the one before it.
    """
    placed, corners = placed_transforms(result), frame_corners(size_px)
    scores = {}
    for distance in distances:
        errors = []
        for first in sorted(placed):
            steps = [first + i for i in range(1, distance + 1)]
            if first + distance not in placed or any(step not in reference for step in steps):
                continue
            other = np.eye(3)
            for step in steps:
                other = other @ reference[step]
            motion = np.linalg.solve(placed[first], placed[first + distance])
            errors.append(_corner_error(motion, other, corners))
        scores[str(distance)] = round(float(np.median(errors)), 3) if errors else float("nan")
    return scores


def run_agreement(
    maps_a: Mapping[int, FrameMaps],
    maps_b: Mapping[int, FrameMaps],
    points: ArrayF64,
    *,
    inside: ArrayBool | None = None,
) -> dict[str, float]:
    """Median distance in px between two runs' motions of points, by distance in frames.

    Args:
        maps_a, maps_b: frame index -> its map to any plane, the same frames under the same indices.
        points: (P, 2) frame px, the same of every frame.
        inside: (H, W) view; points that ``maps_a`` moves out of it are left out. None for no mask.
    """
    scores = {}
    for distance in AGREEMENT_DISTANCES:
        errors = []
        for i in sorted(maps_a):
            if any(k not in maps_a or k not in maps_b for k in (i, i + distance)):
                continue
            moved_a = _map_points(maps_a[i], maps_a[i + distance], points)
            moved_b = _map_points(maps_b[i], maps_b[i + distance], points)
            in_view = (
                np.ones(len(moved_a), np.bool_) if inside is None else _in_mask(inside, moved_a)
            )
            if in_view.any():
                errors.append(_distance(moved_a[in_view], moved_b[in_view]))
        scores[str(distance)] = round(float(np.median(errors)), 3) if errors else float("nan")
    return scores


def placed_transforms(result: MosaicResult) -> dict[int, ArrayF64]:
    """H_mosaic_from_frame of the registered frames by index."""
    return {
        frame.index: frame.H_mosaic_from_frame
        for frame in result.frames
        if frame.H_mosaic_from_frame is not None
    }


def placed_maps(result: MosaicResult, *, bent: bool = True) -> dict[int, FrameMaps]:
    """Maps of the registered frames by index, with their meshes if ``bent``."""
    return {
        frame.index: FrameMaps(
            frame.H_mosaic_from_frame[None],
            None if frame.mesh is None or not bent else frame.mesh[None],
            result.frame_size_px,
        )
        for frame in result.frames
        if frame.H_mosaic_from_frame is not None
    }


def accumulate(steps: Mapping[int, ArrayF64], first: int) -> dict[int, ArrayF64]:
    """Accumulate motions of each frame to the one before it."""
    placed = {first: np.eye(3)}
    index = first + 1
    while index in steps:
        placed[index] = placed[index - 1] @ steps[index]
        index += 1
    return placed


def view_points(inside: ArrayBool) -> ArrayF64:
    """(P, 2) float64 frame px: a grid of points inside a mask (H, W)."""
    height, width = inside.shape
    grid = np.meshgrid(*(np.linspace(0, side - 1, VIEW_POINTS).round() for side in (width, height)))
    xy = np.stack([axis.ravel() for axis in grid], axis=1)
    return np.asarray(xy[_in_mask(inside, xy)], np.float64)


def _in_mask(inside: ArrayBool, xy: ArrayF64) -> ArrayBool:
    """(P,) bool: whether points are inside a mask (H, W)."""
    column, row = np.rint(xy).astype(np.int64).T
    height, width = inside.shape
    within = (column >= 0) & (row >= 0) & (column < width) & (row < height)
    return within & inside[row.clip(0, height - 1), column.clip(0, width - 1)]


def frame_corners(size_px: tuple[int, int]) -> ArrayF64:
    """(4, 2) float64 centres of the corner pixels."""
    return box_corners(0, 0, size_px[0] - 1, size_px[1] - 1)


def read_truth(path: Path) -> dict[int, ArrayF64]:
    """Read a CSV of index, h00..h22, or the ``.npz`` that ``make_sample_video`` writes.

    Raises:
        BadInputError, CorruptFileError: no such file, or not of that form.
    """
    if path.suffix == ".npz":
        try:
            with np.load(path) as data:
                return dict(enumerate(data["H_retina_from_frame"]))
        except NO_ARRAYS:
            message = f"{path.name}: expected an .npz with H_retina_from_frame"
            raise CorruptFileError(message) from None
    return dict(_rows(path, "index"))


def read_reference(path: Path, result: MosaicResult) -> dict[int, ArrayF64]:
    """Read a CSV of frame, to_frame, h00..h22, numbered from its first row; see ``read_truth``."""
    rows = _rows(path, "frame")
    first = rows[0][0]
    return {number - first + result.frames[0].index: matrix for number, matrix in rows}


def _rows(path: Path, key: str) -> list[tuple[int, ArrayF64]]:
    """Index in the column ``key`` and matrix of each row."""
    columns = [f"h{i}{j}" for i in range(3) for j in range(3)]
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
    except OSError:
        raise BadInputError(f"{path.name}: expected a CSV file, found nothing to read") from None
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{path.name}: not UTF-8: {error.reason}") from None
    if not rows or {key, *columns} - rows[0][1].keys():
        raise CorruptFileError(f"{path.name}: expected the columns {key}, h00 to h22")
    return [_parse_transform(row, key, columns, f"{path.name}, line {line}") for line, row in rows]


def _parse_transform(
    row: Mapping[str, str | None], key: str, columns: Sequence[str], where: str
) -> tuple[int, ArrayF64]:
    number, *values = (_number(row[name], f"{where}: {name}") for name in (key, *columns))
    if not number.is_integer():
        raise CorruptFileError(f"{where}: {key}: expected a whole number, got {row[key]!r}")
    return int(number), np.array(values, np.float64).reshape(3, 3)


def _number(cell: str | None, where: str) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        got = repr(cell) if cell else "nothing"
        raise CorruptFileError(f"{where}: expected a number, got {got}")
    return value


def _corner_error(motion: npt.NDArray[Any], other: npt.NDArray[Any], corners: ArrayF64) -> float:
    return _distance(transform_points(motion, corners), transform_points(other, corners))


def _map_points(to: FrameMaps, of: FrameMaps, xy: ArrayF64) -> ArrayF64:
    """Map points of one frame to another one."""
    return to.to_frame(of.to_plane(xy)[0][0])[0][0]


def _distance(xy: ArrayF64, other: ArrayF64) -> float:
    return float(np.hypot(*(xy - other).T).mean())
