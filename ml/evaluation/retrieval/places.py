"""Places of a moving scope as a ROI data set: is the same tissue found in a later frame?

Run it by ``python -m ml evaluate places FOLDER --out OUT``; then ``evaluate retrieval OUT``. A
place is a square of the first frame that sees it whole, carried along by a known motion; its label
is the place, its "patient" the frame, so that a frame never answers for itself.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from shapely.geometry import Polygon

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import COLUMNS, MANIFEST
from ml.geometry import transform_points
from ml.types import ArrayF64, Progress

MOTION = "reference_motion.csv"
SUFFIXES = {".png", ".jpg", ".jpeg"}


@dataclass(frozen=True, slots=True)
class PlacesConfig:
    """Which places are followed."""

    side_px: float = 120.0  # of a place
    step: int = 10  # frames between those that are searched
    spacing_px: float = 90.0  # between the centres of places


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate places``."""
    parser.add_argument("folder", type=Path, help=f"frames/, mask.png and {MOTION}")
    parser.add_argument("--out", type=Path, required=True, help=f"folder to write {MANIFEST} to")
    parser.add_argument("--step", type=int, default=PlacesConfig().step)


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Write the data set."""
    config = PlacesConfig(step=args.step)
    frames = sorted(p for p in (args.folder / "frames").glob("*") if p.suffix.lower() in SUFFIXES)
    mask = cv2.imread(str(args.folder / "mask.png"), cv2.IMREAD_GRAYSCALE)
    if not frames or mask is None:
        raise BadInputError(f"{args.folder.name}: expected frames/ and mask.png in it")
    motion = read_motion(args.folder / MOTION, count=len(frames))
    rows = places(motion, mask > 0, config=config)
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / MANIFEST).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for frame, place, outline in rows:
            path = frames[frame].resolve()
            writer.writerow([path, path.stem, f"place-{place:03d}", "", outline.wkt])
    progress(1, 1, "places")
    return {"places": len({row[1] for row in rows}), "regions": len(rows)}


def read_motion(path: Path, *, count: int) -> ArrayF64:
    """(count, 3, 3) maps of each frame into the first, chained from a table of steps.

    Raises:
        BadInputError: no such file, or not a step from each frame to the one before.
    """
    if not path.is_file():
        raise BadInputError(f"{path.name}: no such file")
    table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    if table.shape[1] != 11 or len(table) < count - 1 or (table[:, 0] - table[:, 1] != 1).any():
        raise BadInputError(
            f"{path.name}: expected {count - 1} lines frame,to_frame,h00..h22, each to the frame "
            f"before, got {len(table)}"
        )
    steps = table[len(table) - (count - 1) :, 2:].reshape(-1, 3, 3)
    chained = [np.eye(3)]
    for step in steps:
        chained.append(chained[-1] @ step)
    return np.stack(chained)


def places(
    H_first_from_frame: ArrayF64, inside: np.ndarray, *, config: PlacesConfig
) -> list[tuple[int, int, Polygon]]:
    """Regions of places in every ``step``-th frame.

    Args:
        H_first_from_frame: (N, 3, 3). inside: (H, W) bool, the scope's field.
    Returns:
        (frame, place, outline in the frame's pixels); a place is there if two frames see it whole.
    """
    rows: list[tuple[int, int, Polygon]] = []
    centres: list[ArrayF64] = []
    for start in range(0, len(H_first_from_frame), config.step):
        for centre in _grid(inside.shape, config):
            square = _square(centre, config.side_px)
            placed = transform_points(H_first_from_frame[start], centre[None])[0]
            is_new = all(np.hypot(*(placed - c)) >= config.spacing_px for c in centres)
            if not (is_new and _sees(square, inside)):
                continue
            seen = _seen(H_first_from_frame, start, square, inside, config.step)
            if len(seen) >= 2:
                rows += [(frame, len(centres), outline) for frame, outline in seen]
                centres.append(placed)
    return rows


def _seen(
    motion: ArrayF64, start: int, square: ArrayF64, inside: np.ndarray, step: int
) -> list[tuple[int, Polygon]]:
    found = []
    for frame in range(start, len(motion), step):
        corners = transform_points(np.linalg.inv(motion[frame]) @ motion[start], square)
        if _sees(corners, inside):
            found.append((frame, Polygon(corners.round(1))))
    return found


def _grid(shape: tuple[int, ...], config: PlacesConfig) -> ArrayF64:
    half = config.side_px / 2
    ys = np.arange(half, shape[0] - half, config.spacing_px)
    xs = np.arange(half, shape[1] - half, config.spacing_px)
    return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def _square(centre: ArrayF64, side_px: float) -> ArrayF64:
    return np.asarray(centre + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * side_px / 2)


def _sees(corners: ArrayF64, inside: np.ndarray) -> bool:
    height, width = inside.shape
    cells = np.floor(corners).astype(int)
    if (cells < 0).any() or (cells[:, 0] >= width).any() or (cells[:, 1] >= height).any():
        return False
    return bool(inside[cells[:, 1], cells[:, 0]].all())
