"""Training of ``graph``: the attentional graph network over the CNN's features of an image.

Run it by ``python -m ml train graph --from cnn.safetensors``. ``--sweep temperature`` and
``--sweep neighbours`` train a short run for each value of tables 3 and 4 of the paper instead.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ml.training.keypoint_cnn import train_contrast
from ml.training.keypoint_contrast import ContrastConfig, ViewPair
from ml.training.keypoint_run import (
    add_run_arguments,
    config_of,
    data_folder,
    write_loss_plot,
)
from ml.training.keypoint_views import Still, read_stills
from ml.training.vit_card import write_card
from ml.types import Progress, no_progress

SWEEPS: dict[str, tuple[float, ...]] = {
    "temperature": (0.06, 0.08, 0.1, 0.12),
    "neighbours": (5, 10, 15, 20),
}
"""Tables 3 and 4."""

SWEEP_STEPS = 400

COLUMNS = {
    "nnt_precision": "precision",
    "nnt_score": "matching score",
    "precision": "NN precision",
}
"""The tables' columns; the last one is ours."""


def graph_config() -> ContrastConfig:
    """The default run of ``graph``: over the CNN of ``cnn`` as it is, on a bank of pairs.

    Half of the neighbours of a mini-batch are drawn from anywhere in the image: with the nearest
    alone the graph network learnt nothing of use (see the card).
    """
    return ContrastConfig(
        name="graph",
        version="1.1",
        has_graph=True,
        train_cnn=False,
        far=0.5,
        bank=150,
        steps=500,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train graph``."""
    add_run_arguments(parser)
    parser.add_argument("--from", dest="start", type=Path, help="weights whose CNN to start from")
    parser.add_argument("--sweep", choices=sorted(SWEEPS), help="train a short run for each value")
    parser.add_argument("--sweep-steps", type=int, default=SWEEP_STEPS)


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Train by command line arguments; see ``train_contrast`` and ``sweep``."""
    config = graph_config() if args.config is None else config_of(ContrastConfig, args.config)
    config = dataclasses.replace(config, has_graph=True)
    stills, held_out = read_stills(data_folder(args.data), config.stills, progress=progress)
    if args.sweep is None:
        return train_contrast(
            config,
            stills,
            held_out,
            out=args.out,
            weights=args.weights,
            start=args.start,
            card=args.card,
            progress=progress,
        )
    config = dataclasses.replace(config, steps=args.sweep_steps)
    result = sweep(
        config, args.sweep, stills, held_out, out=args.out, start=args.start, progress=progress
    )
    if args.card is not None:
        write_sweep(args.card, result)
    return result


def sweep(
    config: ContrastConfig,
    name: str,
    stills: Sequence[Still],
    held_out: Sequence[Still],
    *,
    out: Path,
    start: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train once for each value of one setting and validate each.

    A frozen CNN describes the pairs of the bank once for all values.

    Returns:
        ``rows``: value, precision and matching score (NNT at the threshold of the best F1) over
        the families on the held-out operations; ``table``: the same as Markdown.
    Source: graph-ssl-endoscopic-matching, section 4.6, tables 3 and 4.
    """
    rows: list[dict[str, Any]] = []
    bank: dict[int, ViewPair] = {}
    for value in SWEEPS[name]:
        chosen = int(value) if name == "neighbours" else value
        one = dataclasses.replace(config, **{name: chosen})  # type: ignore[arg-type]
        folder = out / f"{name}-{chosen}"
        scores = train_contrast(
            one, stills, held_out, out=folder, start=start, bank=bank, progress=progress
        )
        rows.append({name: chosen, **scores["validation"].get("all", {})})
    return {
        "sweep": name,
        "steps": config.steps,
        "stills": len(stills),
        "held_out": len(held_out),
        "rows": rows,
        "table": _table(name, rows),
    }


def write_sweep(card: Path, result: Mapping[str, Any]) -> None:
    """Write a sweep between the card's markers of its name, and its plot beside the card.

    Raises:
        BadInputError: no such card, or it lacks the markers.
    """
    name, rows = str(result["sweep"]), result["rows"]
    text = (
        f"{result['steps']} steps each on {result['stills']} stills, scored on"
        f" {result['held_out']} held out, at most 12 of them.\n\n{result['table']}"
    )
    picture = card.with_name(f"{card.stem}-{name}.png")
    lines = {label: [row[key] for row in rows] for key, label in COLUMNS.items() if key in rows[0]}
    values = [float(row[name]) for row in rows]
    if write_loss_plot(picture, lines, x=name, y="share of key points", values=values):
        text += f"\n\n![{name}]({picture.name})"
    write_card(card, name, text)


def describe(result: dict[str, Any]) -> str:
    """What to print: the table of a sweep, or nothing of its own."""
    return str(result.get("table", ""))


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"| {name} | {' | '.join(COLUMNS.values())} |", "| --- " * (len(COLUMNS) + 1) + "|"]
    lines += [
        f"| {row[name]:g} | {' | '.join(f'{row.get(key, 0):.4f}' for key in COLUMNS)} |"
        for row in rows
    ]
    return "\n".join(lines)
