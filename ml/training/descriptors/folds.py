"""Cross-validation of ``cnn`` and ``graph`` over operations: ``python -m ml train folds``.

Every operation is held out once. A fold that an interrupted run has finished is not trained again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.files import write_json
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.training.common.run import TrainingRun, add_run_arguments
from ml.training.common.sources import images_in
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.contrast_config import ContrastConfig, short_config
from ml.training.descriptors.graph import graph_config, joint_config
from ml.training.descriptors.validate import FAMILIES, NNT_FIGURES
from ml.training.descriptors.views import StillsConfig, read_stills
from ml.types import Progress

CONFIGS: dict[str, Callable[[], ContrastConfig]] = {
    "cnn": ContrastConfig,
    "graph": graph_config,
    "joint": joint_config,
    "short": short_config,
}
"""What can be cross-validated, by its default run; ``short`` is ``cnn`` on small stills."""

FOLDS = 5
"""As many as the paper repeats its experiments."""

DONE = "fold.json"
"""In the folder of a fold: its result."""


class Fold(TypedDict):
    """One fold: the operations that it holds out, how much it saw, and its validation."""

    held_out: list[str]
    stills: int
    stills_held_out: int
    steps: int
    validation: dict[str, dict[str, float]]


class CrossValidation(TypedDict):
    """What a cross-validation returns; ``table`` is Markdown."""

    name: str
    folds: list[Fold]
    table: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train folds``; ``--hours`` is of each fold."""
    add_run_arguments(parser, has_card=True)
    parser.add_argument("--of", choices=sorted(CONFIGS), default="cnn", help="what is trained")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument(
        "--from", dest="start", type=Path, help="folder of folds of cnn, for graph to start from"
    )


def run(args: argparse.Namespace, progress: Progress) -> CrossValidation:
    """Cross-validate by command line arguments; see ``cross_validate``."""
    config = config_from_file(CONFIGS[args.of](), args.config)
    return cross_validate(TrainingRun.of(args, config, progress), args.data, folds=args.folds)


def describe(result: CrossValidation) -> str:
    """The table alone."""
    return f"{result['table']}\n"


def cross_validate(run: TrainingRun[ContrastConfig], data: Path, *, folds: int) -> CrossValidation:
    """Train once for each fold on the operations of the others, and score it on its own.

    Args:
        run: its folder gets one of each fold. Its ``start`` is a folder of an earlier
            cross-validation with as many folds of the same seed, whose networks have not seen what
            is held out here; None starts from nothing. Its ``card`` gets the table.
    Raises:
        BadInputError: more folds than operations, a fold without a still to score, ``start`` lacks
            the weights of a fold, or is a file, which may have seen all.
    Source: graph-ssl-endoscopic-matching, section 4: 16 sequences of 21 to train on, 5 to validate,
        five times over; here the splits do not overlap.
    """
    config, done = run.config, []
    if run.start is not None and not run.start.is_dir():
        raise BadInputError(f"{run.start.name}: expected a folder of folds, got a file")
    dealt = dealt_operations(data, config.stills, folds=folds, seed=config.seed)
    for number, operations in enumerate(dealt):
        folder = run.out / f"fold-{number}"
        found = _finished(folder / DONE, operations, config.steps)
        if found is None:
            found = _trained(run, data, folder, operations)
            write_json(folder / DONE, found)
        done.append(found)
    result: CrossValidation = {
        "name": config.name,
        "folds": done,
        "table": folds_table(config.name, done),
    }
    if run.card is not None:
        update_card(run.card, "folds", result["table"])
    return result


def dealt_operations(
    data: Path, stills: StillsConfig, *, folds: int, seed: int
) -> list[tuple[str, ...]]:
    """The operations of each fold, at random, as even in number as can be.

    An operation is what the name of its stills says before the first dash or dot.
    """
    names = {path.name for path in images_in(data / stills.folder)}
    operations = sorted({name.replace(".", "-").split("-")[0] for name in names})
    if not 2 <= folds <= len(operations):
        raise BadInputError(f"folds: expected 2 to {len(operations)} operations, got {folds}")
    order = np.random.default_rng(seed).permutation(len(operations))
    return [tuple(sorted(operations[i] for i in order[n::folds])) for n in range(folds)]


def folds_table(name: str, folds: Sequence[Fold]) -> str:
    """NN precision by family, a line for each fold and one for the mean over folds."""
    families = (*FAMILIES, "all")
    lines = []
    for fold in folds:
        found = fold["validation"]
        figures = [found[family]["precision"] for family in families]
        lines.append([*figures, *(found["all"][key] for key in NNT_FIGURES)])
    values = np.array(lines)
    rows = [
        [", ".join(fold["held_out"]), *(f"{value:.4f}" for value in line)]
        for fold, line in zip(folds, lines, strict=True)
    ]
    spread = zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)
    rows.append(["mean ± sd", *(f"{mean:.4f} ± {sd:.4f}" for mean, sd in spread)])
    head = (
        f"{name}: {len(folds)} folds over operations, {folds[0]['steps']} steps each;"
        " NN precision on the operations held out."
    )
    columns = ["held out", *families, *NNT_FIGURES.values()]
    return f"{head}\n\n{markdown_table(columns, rows)}"


def _trained(
    run: TrainingRun[ContrastConfig], data: Path, folder: Path, operations: tuple[str, ...]
) -> Fold:
    stills = dataclasses.replace(run.config.stills, held_out=operations)
    config = dataclasses.replace(run.config, stills=stills)
    start = None if run.start is None else _weights_in(run.start / folder.name)
    read = read_stills(data, stills, progress=run.progress)
    if not read[1]:
        names = ", ".join(operations)
        raise BadInputError(f"{names}: no still with enough key points to validate on")
    own = run.part(config, folder.name, start=start)
    summary = train_contrast(own, *read)
    return {
        "held_out": list(operations),
        "stills": summary["stills"],
        "stills_held_out": summary["held_out"],
        "steps": len(own.losses),
        "validation": summary["validation"],
    }


def _weights_in(folder: Path) -> Path:
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        raise BadInputError(f"{folder.name}: expected weights to start from, found none")
    return found[0]


def _finished(path: Path, operations: Sequence[str], steps: int) -> Fold | None:
    """What an earlier run of the same fold and length left."""
    if not path.is_file():
        return None
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    is_same = found["held_out"] == list(operations) and found["steps"] == steps
    return Fold(**found) if is_same else None  # type: ignore[typeddict-item]
