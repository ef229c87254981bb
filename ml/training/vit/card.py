"""What a run of ``train vit`` shows: the loss plot, and the figures in the model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_PARTS = 8
"""Into how many parts a run is divided; mean losses are those of the first and of the last."""


def card_text(summary: Mapping[str, Any], losses: Sequence[float]) -> str:
    """The figures of training as Markdown: what was trained, the losses, the validation."""
    config = summary["train_config"]
    warmup = min(config["warmup_steps"], len(losses))
    part = max(1, round(len(losses) / _PARTS))
    lines = [
        f"{summary['stills']} stills, {summary['held_out_stills']} held out"
        f" (operations {', '.join(config['held_out'])}); {summary['steps']} steps of"
        f" {config['batch']} pairs, {warmup} of them contrastive, then triplets; seed"
        f" {config['seed']}; configuration {summary['train_config_hash']}."
        f" Mean loss of the first {part} steps {_mean(losses[:part])}, of the last"
        f" {_mean(losses[-part:])}."
    ]
    if summary["validation"]:
        first, last = summary["validation"][0], summary["validation"][-1]
        lines += [
            "",
            f"Synthetic pairs of the held-out stills ({config['validation_pairs']} pairs, mutual"
            " arg-max over patches, right within one patch along each axis): precision"
            f" {_cell(first['precision'])} and recall {_cell(first['recall'])} at step"
            f" {first['step']:.0f}, {_cell(last['precision'])} and {_cell(last['recall'])} at step"
            f" {last['step']:.0f}.",
        ]
    return "\n".join(lines)


def rules_text(summary: Mapping[str, Any]) -> str:
    """What each rule of a match keeps of the synthetic pairs: precision, recall."""
    told = [
        f"{rule} {_cell(found['precision'])}, {_cell(found['recall'])}"
        for rule, found in summary["rules"].items()
    ]
    return (
        "Precision and recall of what a rule keeps on the synthetic pairs of the held-out stills"
        f" ({summary['train_config']['validation_pairs']}): {'; '.join(told)}."
    )


def _mean(losses: Sequence[float]) -> str:
    return f"{np.mean(losses):.3f}" if losses else "none"


def _cell(value: float | None) -> str:
    return "none" if value is None or not np.isfinite(value) else f"{value:.3f}"


def plot_losses(
    losses: Sequence[float],
    validation: Sequence[Mapping[str, float]],
    out: Path,
    *,
    warmup: int = 0,
) -> bool:
    """Draw losses and validation; False if matplotlib is not installed."""
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
