"""The same place found again in the next section of a block: a test that needs no labels.

Two consecutive sections, a few microns apart, show the same tissue, cut, stained and scanned anew.
They are aligned coarsely: the tissue's outline in one is turned and shifted (and slightly deformed:
an affine map) onto that in the other. Nothing inside the tissue is registered: the alignment sees
no structure that an encoder could be compared on. A grid of square cells is laid on the first
section, carried to the second, and every cell of the first is searched among those of the second.
Found means: the cell itself or one of its eight neighbours; the alignment is no better than that.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
from scipy.spatial.distance import cdist

from ml.errors import BadInputError
from ml.evaluation.retrieval.regions import Embedder
from ml.evaluation.retrieval.sections.alignment import (
    CELL_UM,
    READ_MPP,
    paired_cells,
    whole_section,
)
from ml.natural_order import natural_sort
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, ImageU8, Progress, no_progress

_PICTURES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".svs"}


class SectionScores(TypedDict):
    """How well the cells of one section are found in the next; see ``adjacent_sections``."""

    first: str
    second: str
    overlap: float
    cells: int
    recall_at_1: float
    recall_at_5: float
    mrr: float
    chance_at_1: float


class AdjacentScores(TypedDict):
    """The means over pairs of sections, and each pair."""

    recall_at_1: float
    recall_at_5: float
    mrr: float
    chance_at_1: float
    cell_um: float
    pairs: list[SectionScores]


def adjacent_sections(
    encoder: Embedder,
    pairs: Sequence[tuple[Path, Path]],
    *,
    cell_um: float = CELL_UM,
    mpp: float | None = None,
    progress: Progress = no_progress,
) -> AdjacentScores:
    """Search each cell of a section among the cells of the next.

    Args:
        pairs: files of adjacent sections.
        mpp: overrides what the files say; 0.5 where it is unknown.
    Returns:
        ``recall_at_1``, ``recall_at_5``, ``mrr`` of the cell or a neighbour, the mean over pairs;
        ``chance_at_1``; and ``pairs``: the same for each, with ``cells`` and ``overlap``.
    Raises:
        BadInputError: no pairs, or a pair whose outlines do not fit on each other.
    """
    if not pairs:
        raise BadInputError("adjacent sections: expected two sections or more")
    rows = []
    for number, (first, second) in enumerate(pairs):
        progress(number, len(pairs), f"{first.stem} in {second.stem}")
        rows.append(_pair_scores(encoder, first, second, cell_um, mpp))
    return {
        "recall_at_1": float(np.mean([row["recall_at_1"] for row in rows])),
        "recall_at_5": float(np.mean([row["recall_at_5"] for row in rows])),
        "mrr": float(np.mean([row["mrr"] for row in rows])),
        "chance_at_1": float(np.mean([row["chance_at_1"] for row in rows])),
        "cell_um": cell_um,
        "pairs": rows,
    }


def section_pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Neighbours in a folder of sections whose names are in the order they were cut.

    Raises:
        BadInputError: fewer than two images.
    """
    files = natural_sort(p for p in folder.glob("*") if p.suffix.lower() in _PICTURES)
    if len(files) < 2:
        raise BadInputError(f"{folder.name}: expected two adjacent sections or more")
    return list(itertools.pairwise(files))


def _pair_scores(
    encoder: Embedder, first: Path, second: Path, cell_um: float, mpp: float | None
) -> SectionScores:
    a, b = whole_section(first, mpp), whole_section(second, mpp)
    cells = paired_cells(a, b, cell_um=cell_um)
    queries = _embedded(encoder, a.pixels, cells.xy_a, cells.side_px)
    gallery = _embedded(encoder, b.pixels, cells.xy_b, cells.side_px)
    near, rank = _first_right(cells.xy_a, cdist(queries, gallery), cells.side_px)
    return {
        "first": first.stem,
        "second": second.stem,
        "overlap": cells.overlap,
        "cells": len(cells.xy_a),
        "recall_at_1": float((rank == 0).mean()),
        "recall_at_5": float((rank < 5).mean()),
        "mrr": float((1 / (rank + 1)).mean()),
        "chance_at_1": float(near.mean()),
    }


def _first_right(cells: ArrayF64, distance: ArrayF64, side: int) -> tuple[ArrayBool, ArrayI64]:
    """(N, N) which cells count as each cell, (N,) the rank of the first of them, 0 the nearest."""
    near = cdist(cells, cells, "chebyshev") <= side * 1.01  # all eight neighbours; 1.01: rounding
    order = np.argsort(distance, axis=1, kind="stable")
    return near, np.take_along_axis(near, order, axis=1).argmax(axis=1)


def _embedded(encoder: Embedder, pixels: ImageU8, centres: ArrayF64, side: int) -> ArrayF32:
    return np.stack([encoder.embed(square(pixels, x, y, side), None, READ_MPP) for x, y in centres])


def square(pixels: ImageU8, x: float, y: float, side: int) -> ImageU8:
    """(side, side, 3) around a centre; smaller where the image ends before."""
    left, top = max(round(x - side / 2), 0), max(round(y - side / 2), 0)
    return np.ascontiguousarray(pixels[top : top + side, left : left + side])
