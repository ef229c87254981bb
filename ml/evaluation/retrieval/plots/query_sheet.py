"""A sheet of queries with their nearest regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cv2
import numpy as np
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.plots.style import INK, PALETTE, RIGHT, WRONG, line_handle
from ml.evaluation.retrieval.protocols import other_patients
from ml.evaluation.retrieval.regions import region_image
from ml.evaluation.retrieval.suite.baselines import mask_of
from ml.types import ArrayF32, ImageU8

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SHEET_ROWS = 8
"""Number of queries on the sheet."""
_SHEET_HITS = 5
"""Number of hits of each query."""
_THUMB_PX = 240
"""Side of a picture."""


def queries_figure(
    records: Sequence[RoiRecord], vectors: ArrayF32, *, seed: int, rows: int = _SHEET_ROWS
) -> Figure:
    """Figure of queries of all classes, each with the five nearest regions of other patients."""
    from matplotlib.figure import Figure

    chosen = _spread_queries(records, rows, seed)
    distance = cdist(vectors, vectors)
    galleries = dict(other_patients(records))
    columns = _SHEET_HITS + 1
    figure = Figure(figsize=(1.75 * columns + 0.3, 2.0 * len(chosen) + 0.5))
    grid = figure.subplots(len(chosen), columns, squeeze=False, gridspec_kw={"wspace": 0.1})
    for row, query in enumerate(chosen):
        gallery = galleries[query]
        order = gallery[np.argsort(distance[query, gallery], kind="stable")][:_SHEET_HITS]
        _picture(grid[row][0], records[query], records[query].label, PALETTE[0])
        for column in range(1, columns):
            axes = grid[row][column]
            if column > len(order):
                axes.axis("off")
                continue
            hit = int(order[column - 1])
            right = records[hit].label == records[query].label
            text = f"{records[hit].label}  {distance[query, hit]:.2f}"
            _picture(axes, records[hit], text, RIGHT if right else WRONG, dashed=not right)
    for column in range(columns):
        title = "query" if column == 0 else f"{column}"
        grid[0][column].set_title(title, fontsize=10, color=INK, weight="bold", pad=6)
    for axes in grid[:, 0]:
        # A gap between the queries and their results.
        box = axes.get_position()
        axes.set_position((box.x0 - 0.02, box.y0, box.width, box.height))
    figure.legend(
        [line_handle(PALETTE[0], 2.8), line_handle(RIGHT, 2.8), line_handle(WRONG, 2.8, "--")],
        ["query", "same class", "another class; the number is the distance"],
        frameon=False,
        fontsize=9,
        ncols=3,
        loc="upper center",
        bbox_to_anchor=(0.5, figure.subplotpars.bottom - 0.25 / figure.get_figheight()),
    )
    return figure


def _spread_queries(records: Sequence[RoiRecord], rows: int, seed: int) -> list[int]:
    """Random queries with a right answer, in turn from each class."""
    rng = np.random.default_rng(seed)
    labels = np.array([record.label for record in records])
    by_label: dict[str, list[int]] = {}
    answerable = [q for q, g in other_patients(records) if (labels[g] == labels[q]).any()]
    for query in rng.permutation(answerable).tolist():
        by_label.setdefault(str(labels[query]), []).append(query)
    turns = max((len(queries) for queries in by_label.values()), default=0)
    mixed = [
        by_label[name][turn]
        for turn in range(turns)
        for name in sorted(by_label)
        if turn < len(by_label[name])
    ]
    return sorted(mixed[:rows], key=lambda query: (labels[query], mixed.index(query)))


def _picture(
    axes: Axes, record: RoiRecord, text: str, colour: str, *, dashed: bool = False
) -> None:
    """Draw a framed picture; frames of wrong hits are dashed as well, for colour blindness."""
    axes.imshow(_thumbnail(record))
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(text, fontsize=8.5, color=colour, labelpad=4)
    for spine in axes.spines.values():
        spine.set(color=colour, linewidth=2.8, linestyle=(0, (2.2, 1.2)) if dashed else "-")


def _thumbnail(record: RoiRecord) -> ImageU8:
    """Square cut from the middle of a region, with its outline."""
    region = region_image(record)
    pixels = region.pixels
    if region.polygon is not None:
        outline, _ = cv2.findContours(mask_of(region), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        pixels = cv2.drawContours(  # type: ignore[assignment]
            pixels.copy(), outline, -1, (40, 160, 70), max(2, max(pixels.shape) // 150)
        )
    height, width = pixels.shape[:2]
    side = min(height, width)
    y, x = (height - side) // 2, (width - side) // 2
    square = pixels[y : y + side, x : x + side]
    scaled = cv2.resize(square, (_THUMB_PX, _THUMB_PX), interpolation=cv2.INTER_AREA)
    return np.asarray(scaled, np.uint8)
