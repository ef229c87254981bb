"""Training of ``graph``: the attentional graph network over the CNN's features of an image.

Run it by ``python -m ml train graph --from cnn.safetensors``. ``--sweep temperature neighbours``
trains a short run for each value of tables 3 and 4 of the paper instead; two more sweeps are ours.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ml.config import config_from_file
from ml.networks.keypoint_gnn import KeypointGnnConfig
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.training.common.plots import write_loss_plot
from ml.training.common.run import TrainingRun, add_run_arguments
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.contrast import ViewPair
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.views import KeypointStill, read_stills
from ml.types import Progress, no_progress

SWEEPS: dict[str, tuple[float | str, ...]] = {
    "temperature": (0.06, 0.08, 0.1, 0.12),
    "neighbours": (5, 10, 15, 20),
    "far": (0.0, 0.5, 1.0),
    "position": ("image", "radial", "none"),
}
"""Tables 3 and 4; how many neighbours of a mini-batch are far ones; the position encoding."""

TITLES = {
    "temperature": "Temperature of the contrastive loss (table 3 of the paper)",
    "neighbours": "Size of the mini-batch of neighbours (table 4 of the paper)",
    "far": "Share of a mini-batch's neighbours that are drawn from anywhere in the image",
    "position": "Encoding of the positions",
}

SWEEP_STEPS, SWEEP_STILLS = 400, 6
"""Of each run, and held-out stills that it is scored on: short, for a sweep has many runs."""

JOINT_STEPS = 1000
"""Of ``--joint``: each step runs the CNN over two whole images, forwards and back."""

COLUMNS = {
    "nnt_precision": "precision",
    "nnt_score": "matching score",
    "precision": "NN precision",
}
"""The tables' columns that are drawn as well; the last one is ours."""


Row = dict[str, float | str]
"""A value of what is swept, under its name, and the figures of its run."""


class Sweep(TypedDict):
    """One swept setting: how long and on what, its rows, and these as Markdown."""

    sweep: str
    steps: int
    stills: int
    held_out: int
    rows: list[Row]
    table: str


class Sweeps(TypedDict):
    """What ``run`` returns with ``--sweep``."""

    sweeps: list[Sweep]


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


def joint_config() -> ContrastConfig:
    """``--joint``: CNN and graph network trained at once, by attention that is not flat.

    A key point attends to its nearest 32, by cosines with a learned temperature.
    """
    graph = KeypointGnnConfig(attention="cosine", nearest=32)
    return dataclasses.replace(
        graph_config(), version="2.0", graph=graph, train_cnn=True, bank=0, steps=JOINT_STEPS
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train graph``."""
    add_run_arguments(parser, has_card=True, has_start=True)
    parser.add_argument(
        "--joint", action="store_true", help="train the CNN too, by attention to the nearest"
    )
    parser.add_argument("--sweep", nargs="+", choices=sorted(SWEEPS), help="compare short runs")
    parser.add_argument("--sweep-steps", type=int, default=SWEEP_STEPS)


def run(args: argparse.Namespace, progress: Progress) -> Mapping[str, object]:
    """Train by command line arguments; see ``train_contrast`` and ``sweep``."""
    default = joint_config() if args.joint else graph_config()
    config = dataclasses.replace(config_from_file(default, args.config), has_graph=True)
    stills, held_out = read_stills(args.data, config.stills, progress=progress)
    if args.sweep is None:
        return train_contrast(TrainingRun.of(args, config, progress), stills, held_out)
    config = dataclasses.replace(config, steps=args.sweep_steps)
    tables = sweep(
        config, args.sweep, stills, held_out, out=args.out, start=args.start, progress=progress
    )
    for table in tables:
        plot_sweep(args.out, table)
    result: Sweeps = {"sweeps": tables}
    if args.card is not None:
        update_card(args.card, "sweeps", describe(result))
    return result


def sweep(
    config: ContrastConfig,
    names: Sequence[str],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill],
    *,
    out: Path,
    start: Path | None = None,
    progress: Progress = no_progress,
) -> list[Sweep]:
    """Train once for each value of each of some settings and validate each.

    A frozen CNN describes the pairs of the bank once for all values.

    Returns:
        For each setting: ``rows``, value, precision and matching score (NNT at the threshold of
        the best F1) over the families on the held-out operations; ``table``, the rows as Markdown.
    Source: graph-ssl-endoscopic-matching, section 4.6, tables 3 and 4.
    """
    tables: list[Sweep] = []
    bank: dict[int, ViewPair] = {}
    for name in names:
        rows: list[Row] = []
        for value in SWEEPS[name]:
            run = TrainingRun(
                with_setting(config, name, value),
                out / f"{name}-{value}",
                start=start,
                progress=progress,
            )
            done = train_contrast(run, stills, held_out, bank=bank, most=SWEEP_STILLS)
            rows.append({name: value, **done["validation"].get("all", {})})
        tables.append(
            {
                "sweep": name,
                "steps": config.steps,
                "stills": len(stills),
                "held_out": min(len(held_out), SWEEP_STILLS),
                "rows": rows,
                "table": _table(name, rows),
            }
        )
    return tables


def with_setting(config: ContrastConfig, name: str, value: Any) -> ContrastConfig:
    """A configuration with one of ``SWEEPS`` set."""
    if name == "position":
        return dataclasses.replace(config, graph=dataclasses.replace(config.graph, position=value))
    return dataclasses.replace(config, **{name: value})


def plot_sweep(out: Path, result: Sweep) -> bool:
    """Draw a sweep over numbers, ``sweep-NAME.png``; False if there is nothing to draw."""
    name, rows = result["sweep"], result["rows"]
    if not all(isinstance(row[name], int | float) for row in rows):
        return False
    lines = {
        label: [float(row[key]) for row in rows] for key, label in COLUMNS.items() if key in rows[0]
    }
    values = [float(row[name]) for row in rows]
    picture = out / f"sweep-{name}.png"
    return write_loss_plot(picture, lines, x=name, y="share of key points", values=values)


def describe(result: Mapping[str, Any]) -> str:
    """What to print: the tables of sweeps, or nothing of its own."""
    return "\n\n".join(
        f"**{TITLES[found['sweep']]}; {found['steps']} steps each on {found['stills']} stills,"
        f" scored on {found['held_out']} held out**\n\n{found['table']}"
        for found in result.get("sweeps", [])
    )


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    heads = [*COLUMNS.values(), "wrong neighbours beyond 64 px"]
    cells = [
        [str(row[name]), *(f"{row.get(key, 0):.4f}" for key in (*COLUMNS, "far_wrong"))]
        for row in rows
    ]
    return markdown_table([name, *heads], cells)
