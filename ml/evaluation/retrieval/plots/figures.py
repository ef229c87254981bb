"""Plots of an evaluation: precision-recall curves and a sheet of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import precision_recall_curve
from ml.evaluation.retrieval.plots.query_sheet import queries_figure
from ml.evaluation.retrieval.plots.style import (
    FAINT,
    INK,
    PALETTE,
    add_title,
    line_handle,
    new_figure,
)
from ml.evaluation.retrieval.protocols import RetrievalOptions, other_patients
from ml.types import ArrayF32, ArrayF64

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_plots(
    folder: Path,
    records: Sequence[RoiRecord],
    vectors: Mapping[str, ArrayF32],
    encoder: str,
    options: RetrievalOptions,
) -> list[str]:
    """Write ``precision-recall.png`` and ``queries.png``.

    Args:
        vectors: (N, D) by method. encoder: the method shown on the sheet of queries.
    Returns:
        Names of the files.
    """
    own = vectors[encoder]
    figures = {
        "precision-recall.png": precision_recall_figure(records, vectors),
        "queries.png": queries_figure(records, own, seed=options.seed),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=160, bbox_inches="tight", facecolor="white")
    return list(figures)


def precision_recall_figure(
    records: Sequence[RoiRecord], vectors: Mapping[str, ArrayF32]
) -> Figure:
    """Mean interpolated precision over recall, same patient excluded, one curve per method."""
    figure, axes = new_figure(7.2, 4.6)
    labels = np.array([record.label for record in records])
    curves: list[tuple[str, str]] = []
    for number, (name, v) in enumerate(vectors.items()):
        levels, precision = precision_recall_curve(_ranked(cdist(v, v), records, labels))
        colour = PALETTE[number % len(PALETTE)]
        width = 2.6 if number == 0 else 1.5
        axes.plot(levels, precision, color=colour, lw=width, zorder=10 - number)
        curves.append((name, colour))
    chance = _chance(records, labels)
    axes.axhline(chance, color=INK, lw=1, ls=(0, (2, 3)))
    axes.text(0.005, chance - 0.012, "share of relevant regions", color=INK, fontsize=8, va="top")
    handles = [line_handle(colour, 1.5 if n else 2.6) for n, (_, colour) in enumerate(curves)]
    axes.legend(
        handles,
        [name for name, _ in curves],
        frameon=False,
        fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
    )
    axes.set(xlim=(0, 1), ylim=(0, 1.0), xlabel="recall", ylabel="precision")
    axes.grid(color=FAINT, lw=0.6)
    add_title(axes, "Precision and recall", "leave one out, same patient excluded")
    return figure


def _ranked(distance: ArrayF64, records: Sequence[RoiRecord], labels: Any) -> list[Any]:
    out = []
    for query, gallery in other_patients(records):
        order = gallery[np.argsort(distance[query, gallery], kind="stable")]
        relevant = labels[order] == labels[query]
        if relevant.any():
            out.append(relevant)
    return out


def _chance(records: Sequence[RoiRecord], labels: Any) -> float:
    shares = [
        (labels[gallery] == labels[query]).mean() for query, gallery in other_patients(records)
    ]
    return float(np.mean([share for share in shares if share > 0]))
