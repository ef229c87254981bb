"""Bar plots of all sets and methods, with intervals, chance and the stain swap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ml.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "suite.png"
_ENCODER, _BASELINE = "#2a6fbb", "#9aa2ad"
_INK, _FAINT = "#20242a", "#d9dce1"
_COLUMNS = 2  # panels side by side
_BAR_IN, _HEAD_IN = 0.28, 0.9
"""Inches of one method's bar, and of a panel's title and axis."""


def write_plots(folder: Path, result: Mapping[str, Any]) -> list[str]:
    """Write ``suite.png``; returns the names of the files."""
    figure = suite_figure(result)
    with replacing(folder / NAME) as temporary:
        figure.savefig(temporary, dpi=160, bbox_inches="tight", facecolor="white")
    return [NAME]


def suite_figure(result: Mapping[str, Any]) -> Figure:
    """Figure of a panel per task: bars of methods, intervals, diamonds for the stain swap."""
    from matplotlib.figure import Figure

    panels = [
        (f"{name}: {task}", scores)
        for name, set_result in result["sets"].items()
        for task, scores in set_result["tasks"].items()
    ]
    methods = list(result["methods"])
    rows = -(-len(panels) // _COLUMNS)
    height = rows * (len(methods) * _BAR_IN + _HEAD_IN)
    figure = Figure(figsize=(11, height), layout="constrained")
    axes = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
    for (title, scores), place in zip(panels, axes, strict=False):
        _panel(place, title, scores, methods, result)
    for empty in axes[len(panels) :]:
        empty.axis("off")
    figure.supxlabel(
        f"mAP@{result['options'].k} with 95 % intervals; diamond: recoloured gallery;"
        " dotted: chance",
        fontsize=9,
        color=_INK,
    )
    return figure


def _panel(
    axes: Axes,
    title: str,
    scores: Mapping[str, Any],
    methods: Sequence[str],
    result: Mapping[str, Any],
) -> None:
    for row, method in enumerate(methods):
        method_scores = scores["methods"][method]
        score, (low, high) = method_scores.as_is.score, method_scores.as_is.interval
        colour = _BASELINE if result["methods"][method]["baseline"] else _ENCODER
        axes.barh(row, score, color=colour, height=0.7)
        axes.plot([low, high], [row, row], color=_INK, lw=1.2)
        if method_scores.swapped is not None:
            axes.plot(
                method_scores.swapped.score,
                row,
                marker="D",
                ms=5,
                color="white",
                mec=_INK,
                zorder=5,
            )
    axes.axvline(scores["chance"], color=_INK, lw=1, ls=(0, (2, 3)))
    axes.set_yticks(range(len(methods)), methods, fontsize=9, color=_INK)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title(title, loc="left", fontsize=11, weight="bold", color=_INK)
    axes.tick_params(colors=_INK, labelsize=9, length=0)
    axes.grid(axis="x", color=_FAINT, lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)
