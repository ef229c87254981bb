"""What a run of ``train vit`` shows: the loss plot, and the figures in the model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ml.reports.tables import markdown_table

_ROWS = 8
"""Lines of the table of losses."""

_SCORES = ("precision", "recall", "sure_precision", "sure_recall")


def card_text(summary: Mapping[str, Any], losses: Sequence[float]) -> str:
    """The figures of training as Markdown: what was trained, the losses, the validation."""
    config = summary["train_config"]
    warmup = min(config["warmup_steps"], len(losses))
    lines = [
        f"{summary['stills']} stills, {summary['held_out_stills']} held out"
        f" (operations {', '.join(config['held_out'])}); {summary['steps']} steps of"
        f" {config['batch']} pairs, {warmup} of them contrastive, then triplets; seed"
        f" {config['seed']}; configuration {summary['train_config_hash']}.",
        "",
        "Mean loss over the steps before:",
        "",
        _losses(losses, warmup),
        "",
        f"Synthetic pairs of the held-out stills ({config['validation_pairs']} pairs, mutual"
        " arg-max over patches, right within one patch along each axis); above 0.95: matches of a"
        " similarity above the paper's threshold. Step 0 is before training.",
        "",
        markdown_table(
            ["step", "precision", "recall", "precision above 0.95", "recall above 0.95"],
            [
                [str(int(row["step"])), *(_cell(row[key]) for key in _SCORES)]
                for row in summary["validation"]
            ],
        ),
    ]
    if summary["thresholds"]:
        lines += ["", "The same pairs at the end, by the least similarity of a match:", ""]
        rows = [
            [threshold, *(_cell(row[key]) for key in _SCORES[2:])]
            for threshold, row in summary["thresholds"].items()
        ]
        lines.append(markdown_table(["similarity above", "precision", "recall"], rows))
    return "\n".join(lines)


def _losses(losses: Sequence[float], warmup: int) -> str:
    edges = np.unique(np.linspace(0, len(losses), _ROWS + 1).round().astype(int))
    edges = np.unique(np.r_[edges, warmup])
    rows = [
        [
            str(high),
            f"{np.mean(losses[low:high]):.3f}",
            "contrastive" if high <= warmup else "triplet",
        ]
        for low, high in pairwise(edges)
    ]
    return markdown_table(["step", "loss", "kind"], rows)


def _cell(value: float | None) -> str:
    return "none" if value is None or not np.isfinite(value) else f"{value:.3f}"


def plot_losses(
    losses: Sequence[float],
    validation: Sequence[Mapping[str, float]],
    out: Path,
    *,
    warmup: int = 0,
) -> bool:
    """Draw losses and validation; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(np.arange(1, len(losses) + 1), losses, lw=0.5)
    if 0 < warmup < len(losses):
        left.axvline(warmup, color="grey", lw=0.8, ls="--")
    left.set(xlabel="step", ylabel="loss", title="contrastive, then triplet")
    for key in ("precision", "recall"):
        values = [row[key] for row in validation]
        right.plot([row["step"] for row in validation], values, label=key)
    right.set(xlabel="step", ylim=(0, 1), title="held-out pairs, within one patch")
    right.legend()
    figure.savefig(out, dpi=110)
    return True
