"""Colours, axes and legends of the plots of retrieval."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


PALETTE = ("#2a6fbb", "#d1602c", "#3f8f5f", "#8a5bb0", "#b8902a", "#c2457a", "#4c9aa6", "#6b6f76")

INK, FAINT, RIGHT, WRONG = "#20242a", "#d9dce1", "#3f8f5f", "#c43d3d"


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Figure with one plot, without top and right spines; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    return figure, axes


def add_title(axes: Axes, title: str, line: str) -> None:
    """Add a title above the plot, and a fainter line below it."""
    axes.text(
        0,
        1.075,
        title,
        transform=axes.transAxes,
        fontsize=13,
        weight="bold",
        color=INK,
        va="bottom",
    )
    axes.text(0, 1.025, line, transform=axes.transAxes, fontsize=9, color="#5b626c", va="bottom")


def line_handle(colour: str, width: float, style: str = "-") -> Line2D:
    """A line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, lw=width, ls=style)
