"""Adjacent sections as a set of a suite: the same place, in the next section of the block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.sections.alignment import (
    READ_MPP,
    PairedCells,
    Section,
    paired_cells,
    whole_section,
)
from ml.evaluation.retrieval.sections.pairs import section_pairs, square
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.evaluation.retrieval.suite.sets import Item, SuiteQuery, SuiteSet, task_of
from ml.types import ArrayF64, ArrayI64, Progress

_BLOCK_UM = 1000.0
"""Cells within a square of a millimetre are drawn together for the intervals: near cells look
alike and are no independent evidence."""


def section_set(config: SetConfig, data: Path, progress: Progress) -> SuiteSet:
    """Each cell of a section as a query among the cells of the next.

    Relevant are the cell itself and its neighbours: the sections are aligned by their outlines
    alone, and no better than that. Of cells that overlap, neighbours are those at most half a side
    away along either axis. Classes are the pairs of sections.

    Raises:
        BadInputError: fewer than two sections, or two whose outlines do not fit on each other.
    """
    items: list[Item] = []
    queries: list[SuiteQuery] = []
    gallery: list[int] = []
    pairs = section_pairs(data / config.path)
    last: tuple[Path, Section] | None = None
    for number, (first, second) in enumerate(pairs):
        progress(number, len(pairs), f"{config.name}: aligning sections")
        a = last[1] if last is not None and last[0] == first else whole_section(first)
        b = whole_section(second)
        stride_um = config.stride_um or None
        found = paired_cells(a, b, cell_um=config.cell_um, stride_um=stride_um)
        own = _added(items, config, first, a, found.xy_a, found.side_px)
        other = _added(items, config, second, b, found.xy_b, found.side_px)
        reach_px = found.side_px / 2 if stride_um else found.side_px
        queries += _queries(found, own, other, reach_px, f"{first.stem} in {second.stem}")
        gallery += other.tolist()
        last = (second, b)
    return SuiteSet(config, tuple(items), tuple(gallery), (task_of("same place", queries),))


def _queries(
    found: PairedCells, own: ArrayI64, other: ArrayI64, reach_px: float, pair: str
) -> list[SuiteQuery]:
    near = cdist(found.xy_a, found.xy_a, "chebyshev") <= reach_px * 1.01
    blocks = np.floor(found.xy_a * READ_MPP / _BLOCK_UM).astype(int)
    return [
        SuiteQuery(int(item), other, near[row], pair, f"{pair} {blocks[row, 0]} {blocks[row, 1]}")
        for row, item in enumerate(own)
    ]


def _added(  # noqa: PLR0917
    items: list[Item],
    config: SetConfig,
    path: Path,
    section: Section,
    centres: ArrayF64,
    side: int,
) -> ArrayI64:
    """Add the cells of a section, cut out of it while it is in memory; returns their numbers."""
    size = path.stat().st_size
    start = len(items)
    for x, y in centres.tolist():
        region = RegionImage(square(section.pixels, x, y, side), None, READ_MPP)
        items.append(
            Item(
                f"{config.path}/{path.name} {size} {x:.1f} {y:.1f} {side}",
                f"{config.name}/{config.patient}",
                f"{config.name}/{path.stem}",
                lambda region=region: region,  # type: ignore[misc]
            )
        )
    return np.arange(start, len(items), dtype=np.int64)
