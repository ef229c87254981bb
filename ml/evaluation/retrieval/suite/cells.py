"""Adjacent sections as a set of a suite: the same place in the next section of the block."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.alignment import (
    READ_MPP,
    PairedCells,
    Section,
    paired_cells,
    read_section,
)
from ml.evaluation.retrieval.suite.arrangement import tissue_corners
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.evaluation.retrieval.suite.sets import Item, SuiteQuery, SuiteSet, task_of
from ml.natural_order import natural_sort
from ml.training.roi.arrangement.collages import rearranged
from ml.types import ArrayF64, ArrayI64, ImageU8, Progress

_IMAGES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".svs"}

_BLOCK_UM = 1000.0
"""Side of the squares that are resampled for the intervals: near cells are not independent."""


def section_set(config: SetConfig, data: Path, progress: Progress) -> SuiteSet:
    """Set whose queries are the cells of a section among those of the next.

    Relevant are the cell itself and its neighbours, because the sections are aligned only by their
    outlines. Of cells that overlap, neighbours are those at most half a side away along either
    axis. With ``single`` only the cell itself is relevant. Classes are the pairs of sections.

    Raises:
        BadInputError: fewer than two sections, or two whose outlines do not fit on each other; or
            a slide of another patient is missing.
    """
    items: list[Item] = []
    queries: list[SuiteQuery] = []
    gallery: list[int] = []
    pairs = section_pairs(data / config.path)
    others = _add_other_patients(items, config, data)
    gallery += others.tolist()
    last: tuple[Path, Section] | None = None
    for number, (first, second) in enumerate(pairs):
        progress(number, len(pairs), f"{config.name}: aligning sections")
        a = last[1] if last is not None and last[0] == first else read_section(first)
        b = read_section(second)
        stride_um = config.stride_um or None
        cells = paired_cells(a, b, cell_um=config.cell_um, stride_um=stride_um)
        items_a = _add_cells(items, config, first, a, cells.xy_a, cells.side_px)
        items_b = _add_cells(items, config, second, b, cells.xy_b, cells.side_px)
        reach_px = _reach_px(config, cells.side_px)
        copies = [
            _add_cells(items, config, second, b, cells.xy_b, cells.side_px, seed=copy)
            for copy in range(1, config.rearranged + 1)
        ]
        rearranged_items = np.concatenate([np.zeros(0, np.int64), *copies])
        wrong = np.concatenate([rearranged_items, others])
        pair = f"{first.stem} in {second.stem}"
        queries += _queries(cells, items_a, items_b, wrong, reach_px, pair)
        gallery += [*items_b.tolist(), *rearranged_items.tolist()]
        last = (second, b)
    task = task_of("one place" if config.single else "same place", queries)
    return SuiteSet(config, tuple(items), tuple(gallery), (task,))


def _reach_px(config: SetConfig, side_px: int) -> float:
    """Distance along either axis up to which a cell is relevant."""
    if config.single:
        return 0.0
    return side_px / 2 if config.stride_um else float(side_px)


def _add_other_patients(items: list[Item], config: SetConfig, data: Path) -> ArrayI64:
    """Add the cells of slides of other patients to ``items``; returns their numbers."""
    start, side = len(items), round(config.cell_um / READ_MPP)
    for name, patient in sorted(config.others.items()):
        path = data / name
        if not path.is_file():
            raise BadInputError(f"{name}: no such slide")
        pixels = read_section(path).pixels
        for x, y in tissue_corners(pixels, side):
            items.append(
                Item(
                    f"{name} {path.stat().st_size} {x} {y} {side}",
                    f"{config.name}/{patient}",
                    f"{config.name}/{patient}",
                    partial(_cell, pixels, (x + side / 2, y + side / 2), side, 0),
                )
            )
    return np.arange(start, len(items), dtype=np.int64)


def section_pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Neighbours in a folder of sections, in the natural order of their names.

    Raises:
        BadInputError: fewer than two images.
    """
    files = natural_sort(p for p in folder.glob("*") if p.suffix.lower() in _IMAGES)
    if len(files) < 2:
        raise BadInputError(f"{folder.name}: expected two adjacent sections or more")
    return list(itertools.pairwise(files))


def _queries(  # noqa: PLR0917
    cells: PairedCells,
    items_a: ArrayI64,
    items_b: ArrayI64,
    wrong: ArrayI64,
    reach_px: float,
    pair: str,
) -> list[SuiteQuery]:
    near = cdist(cells.xy_a, cells.xy_a, "chebyshev") <= reach_px * 1.01
    blocks = np.floor(cells.xy_a * READ_MPP / _BLOCK_UM).astype(int)
    near = np.pad(near, ((0, 0), (0, len(wrong))))
    members = np.concatenate([items_b, wrong])
    return [
        SuiteQuery(int(item), members, near[row], pair, f"{pair} {blocks[row, 0]} {blocks[row, 1]}")
        for row, item in enumerate(items_a)
    ]


def _add_cells(  # noqa: PLR0917
    items: list[Item],
    config: SetConfig,
    path: Path,
    section: Section,
    centres: ArrayF64,
    side: int,
    *,
    seed: int = 0,
) -> ArrayI64:
    """Add the cells of a section to ``items``; returns their numbers.

    Args:
        seed: of the rearrangement of their tissue; 0 for cells as they are.
    """
    size = path.stat().st_size
    start = len(items)
    for x, y in centres.tolist():
        key = f"{config.path}/{path.name} {size} {x:.1f} {y:.1f} {side}"
        items.append(
            Item(
                f"{key} rearranged {seed}" if seed else key,
                f"{config.name}/{config.patient}",
                f"{config.name}/{path.stem}",
                partial(_cell, section.pixels, (x, y), side, seed),
            )
        )
    return np.arange(start, len(items), dtype=np.int64)


def _cell(pixels: ImageU8, xy: tuple[float, float], side: int, seed: int) -> RegionImage:
    cell = _square(pixels, *xy, side)
    if seed:
        cell = rearranged(cell, np.random.default_rng((seed, *(round(abs(v)) for v in xy))))
    return RegionImage(cell, None, READ_MPP)


def _square(pixels: ImageU8, x: float, y: float, side: int) -> ImageU8:
    """(side, side, 3) pixels around a centre; fewer at the border of the image."""
    left, top = max(round(x - side / 2), 0), max(round(y - side / 2), 0)
    return np.ascontiguousarray(pixels[top : top + side, left : left + side])
