"""Plots of key point matching: curves, precision by transform, quality by frame gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ml.evaluation.common.descriptors import told_name
from ml.evaluation.matching.pairs import FAMILIES

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
_VALUE_NAMES = {
    "rotation": "rotation, degrees",
    "rotation_wide": "rotation, degrees",
    "translation": "translation, px",
    "scale": "scale",
    "scale_wide": "scale",
    "blur": "motion blur, px",
}
_GAP_PLOTS = (
    ("epipolar_px", "mean epipolar error (eq. 16), px"),
    ("under_3px", "share of matches < 3 px"),
    ("matches", "matches a pair"),
    ("auc_10deg", "pose AUC at 10 degrees"),
)


class LineStyle(TypedDict):
    """How a descriptor's line is drawn, in matplotlib's words."""

    color: str
    marker: str
    ms: float
    lw: float
    ls: str


def write_matching_plots(folder: Path, result: Mapping[str, Any]) -> list[str]:
    """Write what the protocols that ran allow; returns the names of the files.

    ``recall-precision.png`` (figure 5 of graph-ssl, figure 8 of adaptive-triplet), hand-crafted
    descriptors in their best form as well where they were scored so; ``precision-by-value.png``
    (figure 4 of graph-ssl), ``hard.png``.
    """
    figures: dict[str, Figure] = {}
    if "papers" in result:
        rows = {**result["papers"], **result.get("carried", {})}
        curves = {told_name(n): s["curves"].get("viewpoint") for n, s in rows.items()}
        figures["recall-precision.png"] = curves_figure({n: c for n, c in curves.items() if c})
        figures["precision-by-value.png"] = values_figure(result["papers"])
    if "hard" in result:
        figures["hard.png"] = hard_figure(result["hard"])
    return _write(folder, figures)


def write_epipolar_plots(folder: Path, result: Mapping[str, Any]) -> list[str]:
    """Write ``epipolar-by-gap.png``; returns its name."""
    gaps = [str(gap) for gap in result["options"]["gaps"]]
    return _write(folder, {"epipolar-by-gap.png": gaps_figure(result["scores"], gaps)})


def curves_figure(curves: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Recall over 1 - precision, one curve per descriptor."""
    figure, (axes,) = _figure(1, 1, width=6.4, height=4.4)
    for i, (name, curve) in enumerate(curves.items()):
        axes.plot(curve["one_minus_precision"], curve["recall"], label=name, **_style(i, mark=""))
    axes.set(xlabel="1 - precision", ylabel="recall", title="Viewpoint changes with noise")
    axes.set_ylim(0, 1.02)
    _legend(axes)
    return figure


def values_figure(papers: Mapping[str, Any]) -> Figure:
    """NN precision over the size of the transform, one panel per family."""
    families = [f for f in FAMILIES if f != "viewpoint" and _has(papers, f)]
    figure, panels = _figure(-(-len(families) // 3) or 1, min(3, len(families)) or 1, height=2.9)
    for axes, family in zip(panels, families, strict=False):
        for i, (name, scores) in enumerate(papers.items()):
            by_value = {float(k): v for k, v in scores["by_value"].get(family, {}).items()}
            axes.plot(
                sorted(by_value), [by_value[k] for k in sorted(by_value)], label=name, **_style(i)
            )
        axes.set(xlabel=_VALUE_NAMES[family], ylabel="NN precision")
        axes.set_ylim(None, 1.01)
    for axes in panels[len(families) :]:
        axes.set_visible(False)
    if families:
        _legend_below(figure, panels[0])
    return figure


def hard_figure(hard: Mapping[str, Any]) -> Figure:
    """Right matches per pair over precision, by descriptor; hollow: mutual neighbours alone."""
    figure, (axes,) = _figure(1, 1, width=6.4, height=4.4)
    for i, (name, scores) in enumerate(hard.items()):
        row = scores["families"].get("core", scores["families"]["all"])
        style = _style(i) | {"ls": ""}
        axes.plot(row["precision"], row["right"], label=name, **style)
        axes.plot(row["raw_precision"], row["raw_right"], **style, mfc="white")
    axes.set(
        xlabel="precision (within 3 px)",
        ylabel="right matches a pair",
        title="Own detection in both images; hollow: mutual neighbours alone",
    )
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


def _has(papers: Mapping[str, Any], family: str) -> bool:
    return any(family in scores["by_value"] for scores in papers.values())


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


def _write(folder: Path, figures: Mapping[str, Figure]) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=130, facecolor="white")
    return list(figures)
