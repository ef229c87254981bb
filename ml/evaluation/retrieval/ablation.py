"""``python -m ml evaluate ablation``: graph networks, with and without labels and graph."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.evaluation.retrieval.manifest import RoiRecord, grouped, parse_groups, read_manifest
from ml.evaluation.retrieval.protocols import RetrievalOptions, other_patients_scores
from ml.evaluation.retrieval.splits import SplitConfig, split_patients
from ml.imaging.slides.slide import open_slide
from ml.networks.graph_encoders import GRAPH_ENCODERS
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi.embed import RoiEncoder
from ml.roi.graph import RoiGraph
from ml.roi.load import load_graph_encoder
from ml.training.roi.encoder.graph import GraphTrainConfig, embed_graphs, train_graph_encoder
from ml.types import ArrayF32, Progress

SEEDS = 3
"""Default number of runs that are averaged."""


class EncoderName(TypedDict):
    """Encoder whose patch features are used."""

    name: str
    version: str


class GraphAblation(TypedDict):
    """Result of ``run``; ``map_at_10`` by "graph network, training, sampling"."""

    data_set: str
    labels: list[str]
    encoder: EncoderName
    folds: int
    steps: int
    seeds: int
    map_at_10: dict[str, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate ablation``."""
    parser.add_argument("folder", type=Path, help="data set: a folder with rois.csv")
    parser.add_argument("--encoder", default="default", help="its patch features are used")
    parser.add_argument("--groups", nargs="+", default=[], metavar="NAME=LABEL,LABEL")
    parser.add_argument("--folds", type=int, default=3, help="patient-disjoint")
    parser.add_argument("--steps", type=int, default=150, help="of each training")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs to average")
    parser.add_argument("--card", type=Path, help="card whose table 'ablation' is replaced")


def run(args: argparse.Namespace, progress: Progress) -> GraphAblation:
    """Train every combination on all folds but one and score that one's queries.

    Raises:
        MlError: data that cannot be scored.
    """
    encoder = load_graph_encoder(str(args.encoder))
    records = read_manifest(args.folder)
    if args.groups:
        records = grouped(records, parse_groups(args.groups))
    fold_of = split_patients(records, SplitConfig(folds=args.folds)).fold_of()
    folds = np.array([fold_of[record.patient] for record in records])
    rows: dict[str, float] = {}
    sobol = region_graphs(encoder, records, grid=False, progress=progress)
    for sampling in ("sobol", "grid"):
        graphs = sobol
        if sampling == "grid":
            graphs = region_graphs(encoder, records, grid=True, progress=progress)
        for name in GRAPH_ENCODERS if sampling == "sobol" else ("gcn",):
            for labelled in (False, True):
                scheme = "supervised" if labelled else "self-supervised"
                rows[f"{name}, {scheme}, {sampling}"] = _score(
                    name, records, graphs, folds, labelled=labelled, args=args
                )
                progress(len(rows), 2 * len(GRAPH_ENCODERS) + 2, "combinations")
    result: GraphAblation = {
        "data_set": args.folder.resolve().name,
        "labels": sorted({record.label for record in records}),
        "encoder": {"name": encoder.name, "version": encoder.version},
        "folds": args.folds,
        "steps": args.steps,
        "seeds": args.seeds,
        "map_at_10": rows,
    }
    if args.card is not None:
        update_card(args.card, "ablation", describe(result))
    return result


def describe(result: GraphAblation) -> str:
    """Markdown table of the scores."""
    about = result["encoder"]
    rows = [[*key.split(", "), f"{value:.3f}"] for key, value in result["map_at_10"].items()]
    lines = [
        f"{result['data_set']}: features of {about['name']} {about['version']};"
        f" {result['folds']} patient-disjoint folds, {result['seeds']} seeds, {result['steps']}"
        " steps; mAP@10, same patient excluded. `mean` has no graph.",
        "",
        markdown_table(["graph network", "training", "sampling", "mAP@10"], rows),
    ]
    return "\n".join(lines)


def _score(
    name: str,
    records: Sequence[RoiRecord],
    graphs: Sequence[RoiGraph],
    folds: np.ndarray,
    *,
    labelled: bool,
    args: argparse.Namespace,
) -> float:
    scores: list[float] = []
    for seed in range(args.seeds):
        distance = np.zeros((len(records), len(records)))
        for fold in np.unique(folds):
            train = np.flatnonzero(folds != fold).tolist()
            config = GraphTrainConfig(encoder=name, steps=args.steps, seed=seed)
            network = train_graph_encoder(
                [graphs[i] for i in train],
                [records[i].label for i in train] if labelled else None,
                config=config,
            )
            vectors: ArrayF32 = embed_graphs(network, graphs)
            queries = np.flatnonzero(folds == fold)
            gap = vectors[queries, None] - vectors[None]
            distance[queries] = np.linalg.norm(gap, axis=2)
        scores.append(float(other_patients_scores(distance, records, RetrievalOptions()).ap.mean()))
    return float(np.mean(scores))


def region_graphs(
    encoder: RoiEncoder, records: Sequence[RoiRecord], *, grid: bool, progress: Progress
) -> list[RoiGraph]:
    """Graph of each region over an encoder's patch features, on a grid or at Sobol points."""
    pattern = "grid" if grid else "sobol"
    sampling = dataclasses.replace(encoder.config.sampling, pattern=pattern)
    graphs = []
    for done, record in enumerate(records, 1):
        with open_slide(record.image) as slide:
            graph = encoder.region_graph(slide, record.geometry, record.mpp, sampling=sampling)
        graphs.append(graph)
        progress(done, len(records), "graphs on a grid" if grid else "graphs")
    return graphs
