"""Plots of key point matching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ml.evaluation.common.descriptors import table_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PALETTE = (
    "#2a6fbb",
    "#d1602c",
    "#3f8f5f",
    "#8a5bb0",
    "#b8902a",
    "#c2457a",
    "#4c9aa6",
    "#6b6f76",
    "#101214",
    "#8fbf3f",
)
_MARKS = "osD^vPX*hd"
_INK, _FAINT = "#20242a", "#d9dce1"
_GAP_PLOTS = (
    ("epipolar_px", "mean epipolar error (eq. 16), px"),
    ("under_3px", "share of matches < 3 px"),
    ("matches", "matches a pair"),
    ("auc_10deg", "pose AUC at 10 degrees"),
)


class LineStyle(TypedDict):
    """Style of a descriptor's line, in matplotlib's terms."""

    color: str
    marker: str
    ms: float
    lw: float
    ls: str


def write_matching_plots(folder: Path, result: Mapping[str, Any]) -> list[str]:
    """Write ``recall-precision.png`` if the papers' protocol was scored.

    Returns:
        Names of the files.
    Source: graph-ssl-endoscopic-matching, figure 5; adaptive-triplet-endoscopic-matching, figure 8.
    """
    if "papers" not in result:
        return []
    rows = {**result["papers"], **result.get("carried", {})}
    curves = {table_name(n): s["curves"].get("viewpoint") for n, s in rows.items()}
    figure = curves_figure({name: curve for name, curve in curves.items() if curve})
    return [_write(folder / "recall-precision.png", figure)]


def write_epipolar_plots(folder: Path, result: Mapping[str, Any]) -> list[str]:
    """Write ``epipolar-by-gap.png``; returns its name."""
    gaps = [str(gap) for gap in result["options"]["gaps"]]
    return [_write(folder / "epipolar-by-gap.png", gaps_figure(result["scores"], gaps))]


def curves_figure(curves: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Recall over 1 - precision, one curve per descriptor."""
    figure, (axes,) = _figure(1, 1, width=6.4, height=4.4)
    for i, (name, curve) in enumerate(curves.items()):
        axes.plot(curve["one_minus_precision"], curve["recall"], label=name, **_style(i, mark=""))
    axes.set(xlabel="1 - precision", ylabel="recall", title="Viewpoint changes with noise")
    axes.set_ylim(0, 1.02)
    _legend(axes)
    return figure


def gaps_figure(scores: Mapping[str, Any], gaps: Sequence[str]) -> Figure:
    """Four panels over the frame gap, one line per descriptor."""
    figure, panels = _figure(2, 2, height=3.0)
    for axes, (key, title) in zip(panels, _GAP_PLOTS, strict=True):
        for i, (name, by_gap) in enumerate(scores.items()):
            values = [by_gap[gap][key] for gap in gaps]
            axes.plot([int(gap) for gap in gaps], values, label=name, **_style(i))
        axes.set(xlabel="frames apart", ylabel=title)
        axes.set_xticks([int(gap) for gap in gaps])
        axes.set_ylim(0, None)
    _legend_below(figure, panels[0])
    return figure


def _style(number: int, *, mark: str | None = None) -> LineStyle:
    return {
        "color": _PALETTE[number % len(_PALETTE)],
        "marker": _MARKS[number % len(_MARKS)] if mark is None else mark,
        "ms": 5,
        "lw": 1.6,
        "ls": "-" if number < len(_PALETTE) else "--",
    }


def _figure(
    rows: int, columns: int, *, width: float = 10.0, height: float
) -> tuple[Figure, list[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = [axes for row in figure.subplots(rows, columns, squeeze=False) for axes in row]
    for axes in panels:
        axes.grid(color=_FAINT, lw=0.6)
        axes.tick_params(colors=_INK, labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure, panels


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, frameon=False)


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    if names:
        figure.legend(
            handles, names, loc="outside lower center", ncols=5, fontsize=9, frameon=False
        )


def _write(path: Path, figure: Figure) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, facecolor="white")
    return path.name
