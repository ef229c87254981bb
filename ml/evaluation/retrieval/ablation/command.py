"""``python -m ml evaluate ablation``: the experiment of the retrieval paper's table III."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.common.data import data_folder
from ml.evaluation.retrieval.ablation.experiment import (
    ARCHITECTURES,
    LENGTHS,
    TRAININGS,
    WITHOUT_EDGES,
    ExperimentConfig,
    Precisions,
    run_experiment,
)
from ml.evaluation.retrieval.ablation.regions import DataSet, LabelledGraphs, labelled_graphs
from ml.evaluation.retrieval.metrics import bootstrap_interval
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi.load import load_graph_encoder
from ml.types import ArrayF64, Progress

DATA_SETS = (
    DataSet("organs", "histology/atlas/index.csv"),
    # The files state no scale. At 2 um per pixel, a tile of 224 px holds several patches.
    DataSet("lung", "histology/lc25000-lung", mpp=2.0, test_gallery=True),
)
BOOTSTRAP = 2000
"""Draws of the intervals."""

Interval = tuple[float, float]


class Value(TypedDict):
    """A mean over queries and its 95 % interval, patients resampled."""

    value: float
    interval: Interval


class Row(TypedDict):
    """One network; values by K.

    Attributes:
        seed_values: score of each seed.
        gains: over the mean of the vertices.
        edge_gains: over the network without edges of the same training.
    """

    architecture: str
    training: str
    scores: dict[str, Value]
    seed_values: dict[str, list[float]]
    gains: dict[str, Value]
    edge_gains: dict[str, Value]


class FoldCounts(TypedDict):
    """Sizes of a fold; ``regions`` by label."""

    patients: int
    slides: int
    regions: dict[str, int]


class SetResult(TypedDict):
    """One data set.

    Attributes:
        vertices: least, median and largest number of a region.
        connected: mean share of the pairs of vertices that an edge connects.
        imbalance: see ``Folds``.
        unscored: regions without a right answer.
        mean, chance: scores of the untrained mean and of random rankings, by K.
        without_labels: gain of self-supervised over supervised by architecture and K.
    """

    name: str
    test_gallery: bool
    regions: int
    dropped: int
    patients: int
    labels: list[str]
    vertices: tuple[int, float, int]
    connected: float
    folds: list[FoldCounts]
    imbalance: float
    unscored: int
    chance: dict[str, float]
    mean: dict[str, Value]
    rows: list[Row]
    without_labels: dict[str, dict[str, Value]]


class AblationResult(TypedDict):
    """Result of ``run``."""

    encoder: str
    seeds: int
    draws: int
    sets: list[SetResult]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate ablation``."""
    default = ExperimentConfig()
    parser.add_argument("--data", type=Path, help="by default TESSERA_DATA")
    parser.add_argument("--encoder", default="default", help="its patch features are used")
    parser.add_argument(
        "--cache", type=Path, required=True, help="folder of features and vectors; runs resume"
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        default=[data_set.name for data_set in DATA_SETS],
        choices=[data_set.name for data_set in DATA_SETS],
        help="data sets",
    )
    parser.add_argument("--seeds", type=int, default=default.seeds, help="trainings of a network")
    parser.add_argument(
        "--draws", type=int, default=default.draws, help="settings of the random search"
    )
    parser.add_argument("--card", type=Path, help="card whose table 'ablation' is replaced")


def run(args: argparse.Namespace, progress: Progress) -> AblationResult:
    """Train and score every network on every data set.

    Raises:
        MlError: data or options that cannot be scored.
    """
    folder = data_folder(args.data)
    if args.seeds < 1 or args.draws < 1:
        raise BadInputError(
            f"--seeds, --draws: expected at least 1, got {args.seeds} and {args.draws}"
        )
    encoder = load_graph_encoder(str(args.encoder))
    args.cache.mkdir(parents=True, exist_ok=True)
    config = replace(ExperimentConfig(), seeds=args.seeds, draws=args.draws)
    results = []
    for data_set in DATA_SETS:
        if data_set.name not in args.sets:
            continue
        data = labelled_graphs(data_set, encoder, folder, cache=args.cache, progress=progress)
        precisions = run_experiment(
            data, config, test_gallery=data_set.test_gallery, cache=args.cache, progress=progress
        )
        results.append(set_result(data_set, data, precisions))
    result: AblationResult = {
        "encoder": f"{encoder.name} {encoder.version}",
        "seeds": args.seeds,
        "draws": args.draws,
        "sets": results,
    }
    if args.card is not None:
        update_card(args.card, "ablation", describe(result))
    return result


def set_result(data_set: DataSet, data: LabelledGraphs, precisions: Precisions) -> SetResult:
    """Scores and intervals of a data set."""
    labels = sorted({record.label for record in data.records})
    sizes = np.array([len(graph) for graph in data.graphs])
    pairs = sizes * (sizes - 1)
    connected = [graph.edge_index.shape[1] for graph in data.graphs] / np.maximum(pairs, 1)

    def values(rows: ArrayF64) -> dict[str, Value]:
        return {
            str(k): {
                "value": float(values_at_k.mean()),
                "interval": bootstrap_interval(values_at_k, precisions.patients, repeats=BOOTSTRAP),
            }
            for k, values_at_k in zip(LENGTHS, rows, strict=True)
        }

    rows: list[Row] = []
    for (architecture, training), runs in precisions.networks.items():
        mean = np.asarray(runs.mean(axis=0), np.float64)
        rows.append(
            {
                "architecture": architecture,
                "training": training,
                "scores": values(mean),
                "seed_values": {
                    str(k): runs[:, place].mean(axis=1).tolist() for place, k in enumerate(LENGTHS)
                },
                "gains": values(mean - precisions.mean),
                "edge_gains": values(
                    np.asarray((runs - precisions.networks[WITHOUT_EDGES, training]).mean(axis=0))
                ),
            }
        )
    with_labels, without_labels = TRAININGS
    return {
        "name": data_set.name,
        "test_gallery": data_set.test_gallery,
        "regions": len(data.records),
        "dropped": data.dropped,
        "patients": len({record.patient for record in data.records}),
        "labels": labels,
        "vertices": (int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        "connected": float(connected[pairs > 0].mean()),
        "folds": [
            {
                "patients": len(names),
                "slides": len({r.image for r in data.records if r.patient in set(names)}),
                "regions": dict(zip(labels, counts.tolist(), strict=True)),
            }
            for names, counts in zip(precisions.folds.patients, precisions.folds.rois, strict=True)
        ],
        "imbalance": precisions.folds.imbalance,
        "unscored": precisions.unscored,
        "chance": {
            str(k): float(values_at_k.mean())
            for k, values_at_k in zip(LENGTHS, precisions.chance, strict=True)
        },
        "mean": values(precisions.mean),
        "rows": rows,
        "without_labels": {
            name: values(
                np.asarray(
                    (
                        precisions.networks[name, without_labels]
                        - precisions.networks[name, with_labels]
                    ).mean(axis=0),
                    np.float64,
                )
            )
            for name in ARCHITECTURES
        },
    }


def describe(result: AblationResult) -> str:
    """Markdown tables of the scores."""
    lines = [
        f"Patches of {result['encoder']}; means over {result['seeds']} seeds; settings chosen"
        f" among {result['draws']} on the validation fold. In brackets: 95 % intervals, patients"
        " resampled."
    ]
    for data_set in result["sets"]:
        lines += ["", *_set_lines(data_set)]
    return "\n".join(lines)


def _set_lines(result: SetResult) -> list[str]:
    smallest, median, largest = result["vertices"]
    sizes = "; ".join(
        f"{fold['patients']} patients, {sum(fold['regions'].values())} regions"
        for fold in result["folds"]
    )
    gallery = "the test fold" if result["test_gallery"] else "all regions of other patients"
    heads = ["architecture", "training"]
    for k in LENGTHS:
        heads += [f"MAP@{k}", f"gain over the mean, @{k}"]
    heads.append("seeds, @10")
    rows = [["mean, not trained", "", *_cells(result["mean"]), ""]]
    rows += [
        [
            row["architecture"],
            row["training"],
            *_cells(row["scores"], row["gains"]),
            _range(row["seed_values"][str(LENGTHS[0])]),
        ]
        for row in result["rows"]
    ]
    chance = [cell for k in LENGTHS for cell in (f"{result['chance'][str(k)]:.3f}", "")]
    k = LENGTHS[0]
    rows.insert(0, ["chance", "", *chance, ""])
    return [
        f"**{result['name']}**: {result['regions']} regions, {len(result['labels'])} classes,"
        f" {result['patients']} patients; {result['dropped']} regions without enough tissue left"
        f" out, {result['unscored']} without a right answer not scored. Vertices of a region:"
        f" {smallest} to {largest}, median {median:g}; {result['connected']:.0%} of their pairs are"
        f" connected. Folds: {sizes}; imbalance {result['imbalance']:.3f}. Gallery: {gallery}.",
        "",
        markdown_table(heads, rows),
        "",
        f"Less the network without edges of the same training, MAP@{k}: "
        + "; ".join(
            f"{row['architecture']} {row['training']} {_signed_text(row['edge_gains'][str(k)])}"
            for row in result["rows"]
            if row["architecture"] != WITHOUT_EDGES
        )
        + ".",
        "",
        f"Self-supervised less supervised, MAP@{k}: "
        + "; ".join(
            f"{name} {_signed_text(values[str(k)])}"
            for name, values in result["without_labels"].items()
        )
        + ".",
    ]


def _cells(scores: dict[str, Value], gains: dict[str, Value] | None = None) -> list[str]:
    cells = []
    for k in LENGTHS:
        score = scores[str(k)]
        low, high = score["interval"]
        cells.append(f"{score['value']:.3f} ({low:.2f} to {high:.2f})")
        cells.append(_signed_text(gains[str(k)]) if gains is not None else "")
    return cells


def _signed_text(value: Value) -> str:
    low, high = value["interval"]
    return f"{value['value']:+.3f} ({low:+.3f} to {high:+.3f})"


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"
