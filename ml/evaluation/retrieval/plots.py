"""Plots of an evaluation: precision-recall curves, a sheet of queries, a map of the embedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.baselines import region_pixels
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import precision_recall_curve
from ml.evaluation.retrieval.protocols import RetrievalOptions, other_patients
from ml.types import ArrayF32, ArrayF64, ImageU8

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PALETTE = ("#2a6fbb", "#d1602c", "#3f8f5f", "#8a5bb0", "#b8902a", "#c2457a", "#4c9aa6", "#6b6f76")
_INK, _FAINT, _RIGHT, _WRONG = "#20242a", "#d9dce1", "#3f8f5f", "#c43d3d"
_NAMES = {
    "vertex_mean": "mean of patches, no graph",
    "no_stain_normalisation": "no stain normalisation",
    "hsv_histogram": "HSV histogram",
    "lbp_of_stains": "LBP of the stains",
    "bag_of_sift": "bag of SIFT",
}
_SHEET_ROWS = 8
_SHEET_HITS = 5
_THUMB_PX = 240
_PERPLEXITY = 20.0
_TSNE_STEPS = 500


def write_plots(
    folder: Path,
    records: Sequence[RoiRecord],
    vectors: Mapping[str, ArrayF32],
    encoder: str,
    options: RetrievalOptions,
) -> list[str]:
    """Write ``precision-recall.png``, ``queries.png`` and ``map.png``.

    Args:
        vectors: (N, D) by method. encoder: the method that is shown on sheet and map.
    Returns:
        Names of the files.
    """
    own = vectors[encoder]
    figures = {
        "precision-recall.png": precision_recall_figure(records, vectors),
        "queries.png": queries_figure(records, own, seed=options.seed),
        "map.png": map_figure(records, own, seed=options.seed),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=160, bbox_inches="tight", facecolor="white")
    return list(figures)


def precision_recall_figure(
    records: Sequence[RoiRecord], vectors: Mapping[str, ArrayF32]
) -> Figure:
    """Mean interpolated precision over recall, same patient excluded, one curve a method."""
    figure, axes = _figure(7.2, 4.6)
    labels = np.array([record.label for record in records])
    curves: list[tuple[str, str]] = []
    for number, (name, v) in enumerate(vectors.items()):
        levels, precision = precision_recall_curve(_ranked(cdist(v, v), records, labels))
        colour = _PALETTE[number % len(_PALETTE)]
        width = 2.6 if number == 0 else 1.5
        axes.plot(levels, precision, color=colour, lw=width, zorder=10 - number)
        curves.append((name, colour))
    chance = _chance(records, labels)
    axes.axhline(chance, color=_INK, lw=1, ls=(0, (2, 3)))
    axes.text(0.005, chance - 0.012, "share of relevant regions", color=_INK, fontsize=8, va="top")
    handles = [_line(colour, 1.5 if n else 2.6) for n, (_, colour) in enumerate(curves)]
    axes.legend(
        handles,
        [_NAMES.get(name, name) for name, _ in curves],
        frameon=False,
        fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
    )
    axes.set(xlim=(0, 1), ylim=(0, 1.0), xlabel="recall", ylabel="precision")
    axes.grid(color=_FAINT, lw=0.6)
    _title(axes, "Precision and recall", "leave one out, same patient excluded")
    return figure


def queries_figure(
    records: Sequence[RoiRecord], vectors: ArrayF32, *, seed: int, rows: int = _SHEET_ROWS
) -> Figure:
    """Queries, evenly over the classes, each with its five nearest of other patients."""
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
        _picture(grid[row][0], records[query], records[query].label, _PALETTE[0])
        for column in range(1, columns):
            axes = grid[row][column]
            if column > len(order):
                axes.axis("off")
                continue
            hit = int(order[column - 1])
            right = records[hit].label == records[query].label
            text = f"{records[hit].label}  {distance[query, hit]:.2f}"
            _picture(axes, records[hit], text, _RIGHT if right else _WRONG, dashed=not right)
    for column in range(columns):
        title = "query" if column == 0 else f"{column}"
        grid[0][column].set_title(title, fontsize=10, color=_INK, weight="bold", pad=6)
    for axes in grid[:, 0]:
        # Queries stand apart from what was found for them.
        place = axes.get_position()
        axes.set_position((place.x0 - 0.02, place.y0, place.width, place.height))
    figure.legend(
        [_line(_PALETTE[0], 2.8), _line(_RIGHT, 2.8), _line(_WRONG, 2.8, "--")],
        ["query", "same class", "another class; the number is the distance"],
        frameon=False,
        fontsize=9,
        ncols=3,
        loc="upper center",
        bbox_to_anchor=(0.5, figure.subplotpars.bottom - 0.25 / figure.get_figheight()),
    )
    return figure


def map_figure(records: Sequence[RoiRecord], vectors: ArrayF32, *, seed: int) -> Figure:
    """The embedding in two dimensions (t-SNE from PCA), coloured by class, patients by marker."""
    figure, axes = _figure(6.4, 5.4)
    points = tsne(vectors, seed=seed)
    labels = np.array([record.label for record in records])
    names = sorted(set(labels.tolist()))
    patients = sorted({record.patient for record in records})
    markers = "osD^vP*Xh<>"
    few = len(patients) <= len(markers)
    for number, name in enumerate(names):
        colour = _PALETTE[number % len(_PALETTE)]
        for patient in patients if few else [""]:
            of = [
                i
                for i, record in enumerate(records)
                if record.label == name and patient in {"", record.patient}
            ]
            if of:
                marker = markers[patients.index(patient)] if few else "o"
                axes.scatter(
                    points[of, 0],
                    points[of, 1],
                    s=46 if few else 22,
                    marker=marker,
                    color=colour,
                    lw=0.6,
                    ec="white",
                )
    axes.legend(
        [_dot(_PALETTE[n % len(_PALETTE)]) for n in range(len(names))],
        names,
        frameon=False,
        fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
    )
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.06)
    for spine in axes.spines.values():
        spine.set(visible=True, color=_FAINT)
    each = "; one marker a patient" if few else ""
    _title(axes, "Map of the embedding", f"t-SNE of {len(records)} regions{each}")
    return figure


def tsne(vectors: ArrayF32, *, seed: int, perplexity: float = _PERPLEXITY) -> ArrayF64:
    """(N, 2) float64: exact t-SNE from a PCA start; PCA itself for fewer than five regions.

    Source: van der Maaten and Hinton 2008, with early exaggeration and momentum; exact, so for
        thousands of regions at most. The same vectors and seed give the same map.
    """
    start = _pca(vectors)
    count = len(vectors)
    if count < 5:
        return start
    p = _affinities(cdist(vectors, vectors, "sqeuclidean"), min(perplexity, (count - 1) / 3))
    rng = np.random.default_rng(seed)
    y = start / max(float(start.std()), 1e-12) * 1e-2 + rng.normal(0, 1e-5, (count, 2))
    velocity, gains = np.zeros_like(y), np.ones_like(y)
    rate = max(count / 12.0, 10.0)
    for step in range(_TSNE_STEPS):
        weight = 1 / (1 + cdist(y, y, "sqeuclidean"))
        np.fill_diagonal(weight, 0)
        q = np.maximum(weight / weight.sum(), 1e-12)
        pull = ((12.0 if step < 120 else 1.0) * p - q) * weight
        gradient = 4 * (pull.sum(axis=1)[:, None] * y - pull @ y)
        same = np.sign(gradient) == np.sign(velocity)
        gains = np.maximum(np.where(same, gains * 0.8, gains + 0.2), 0.01)
        velocity = (0.5 if step < 120 else 0.8) * velocity - rate * gains * gradient
        y = y + velocity
    return np.asarray(y - y.mean(axis=0), np.float64)


def _affinities(squared: ArrayF64, perplexity: float) -> ArrayF64:
    """(N, N) symmetric, summing to one: Gaussian neighbourhoods of equal perplexity."""
    count = len(squared)
    low, high = np.zeros(count), np.full(count, np.inf)
    beta = 1 / np.maximum(np.median(squared, axis=1), 1e-12)
    apart = squared + np.where(np.eye(count, dtype=bool), np.inf, 0)
    nearest = apart.min(axis=1, keepdims=True)
    for _ in range(60):
        weight = np.exp(-(apart - nearest) * beta[:, None])
        share = weight / weight.sum(axis=1, keepdims=True)
        entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        middle = np.where(np.isinf(high), beta * 2, (low + np.minimum(high, 1e300)) / 2)
        beta = middle
    return np.asarray((share + share.T) / (2 * count), np.float64)


def _pca(vectors: ArrayF32) -> ArrayF64:
    centred = np.asarray(vectors, np.float64) - vectors.mean(axis=0)
    u, s, axes = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), 2))
    for i in range(min(2, len(s))):
        # The sign of a principal axis is arbitrary: fix it, so that maps can be compared.
        sign = np.sign(axes[i][np.argmax(np.abs(axes[i]))]) or 1.0
        points[:, i] = sign * u[:, i] * s[i]
    return points


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


def _spread_queries(records: Sequence[RoiRecord], rows: int, seed: int) -> list[int]:
    """Queries that can be answered, in turn from each class, drawn at random within it."""
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
    """A framed picture; wrong ones are dashed too, for who cannot tell red from green."""
    axes.imshow(_thumbnail(record))
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(text, fontsize=8.5, color=colour, labelpad=4)
    for spine in axes.spines.values():
        spine.set(color=colour, linewidth=2.8, linestyle=(0, (2.2, 1.2)) if dashed else "-")


def _thumbnail(record: RoiRecord) -> ImageU8:
    """A square cut from the middle of the region, its outline drawn where it has one."""
    pixels, mask = region_pixels(record)
    if record.geometry is not None:
        outline, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        pixels = cv2.drawContours(  # type: ignore[assignment]
            pixels.copy(), outline, -1, (40, 160, 70), max(2, max(pixels.shape) // 150)
        )
    height, width = pixels.shape[:2]
    side = min(height, width)
    y, x = (height - side) // 2, (width - side) // 2
    square = pixels[y : y + side, x : x + side]
    scaled = cv2.resize(square, (_THUMB_PX, _THUMB_PX), interpolation=cv2.INTER_AREA)
    return np.asarray(scaled, np.uint8)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_FAINT)
    axes.tick_params(colors=_INK, labelsize=9, length=0)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)
    return figure, axes


def _title(axes: Axes, title: str, line: str) -> None:
    axes.text(
        0,
        1.075,
        title,
        transform=axes.transAxes,
        fontsize=13,
        weight="bold",
        color=_INK,
        va="bottom",
    )
    axes.text(0, 1.025, line, transform=axes.transAxes, fontsize=9, color="#5b626c", va="bottom")


def _line(colour: str, width: float, style: str = "-") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, lw=width, ls=style)


def _dot(colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker="o", lw=0, markersize=7, mec="white")
