"""Plots of training curves."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_loss_plot(
    path: Path, lines: Mapping[str, Sequence[float]], *, x: str, y: str = "loss"
) -> bool:
    """Draw lines over steps or epochs as PNG.

    Returns:
        False if matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, line in lines.items():
        axes.plot(range(1, len(line) + 1), line, label=name, linewidth=1)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#d9dce1", linewidth=0.6)
    if len(lines) > 1:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    return True
