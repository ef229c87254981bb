"""Settings of a graph network chosen on one fold and tested on another: ``evaluate settings``.

Patients are dealt into four folds. Two are learned from, settings drawn at random are compared on
the third, and the chosen ones are tested on the fourth; every fold is the test once. What a run
has worked out is kept, so that an interrupted one continues.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.config import config_hash
from ml.errors import BadInputError
from ml.evaluation.retrieval.ablation import region_graphs
from ml.evaluation.retrieval.manifest import RoiRecord, grouped, parse_groups, read_manifest
from ml.evaluation.retrieval.protocols import RetrievalOptions, other_patients_scores
from ml.evaluation.retrieval.splits import SplitConfig, split_patients
from ml.files import write_json
from ml.networks.graph_encoders import GRAPH_ENCODERS
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi import load_graph_encoder
from ml.roi.graph import RoiGraph
from ml.training.roi.encoder.graph import GraphTrainConfig, embed_graphs, train_graph_encoder
from ml.types import Progress

FOLDS = 4
"""The paper's: two to learn from, one to choose by, one to test on."""

SCHEMES = {"self-supervised": False, "supervised": True}
"""Whether labels are learned from."""


class FoldChoice(TypedDict):
    """A test fold: what was chosen for it, and mAP@10 of that and of the defaults."""

    fold: int
    chosen: dict[str, object]
    validation: float
    test: float
    test_of_defaults: float


class SettingsReport(TypedDict):
    """What ``run`` returns: the choices by scheme."""

    data_set: str
    encoder: str
    network: str
    trials: int
    steps: int
    seed: int
    choices: dict[str, list[FoldChoice]]


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions, their graphs, and the fold that each one's patient is in."""

    records: Sequence[RoiRecord]
    graphs: Sequence[RoiGraph]
    fold: np.ndarray

    def score(self, config: GraphTrainConfig, test: int, on: int, *, labelled: bool) -> float:
        """mAP@10 in fold ``on`` of a network that has seen neither the test nor its validation."""
        train = np.flatnonzero((self.fold != test) & (self.fold != validation_of(test))).tolist()
        labels = [self.records[i].label for i in train] if labelled else None
        network = train_graph_encoder([self.graphs[i] for i in train], labels, config=config)
        rows = np.flatnonzero(self.fold == on).tolist()
        vectors = embed_graphs(network, [self.graphs[i] for i in rows])
        distance = np.linalg.norm(vectors[:, None] - vectors[None], axis=2).astype(np.float64)
        own = [self.records[i] for i in rows]
        try:
            return float(other_patients_scores(distance, own, RetrievalOptions()).ap.mean())
        except BadInputError:  # no query of this fold has its like in another patient
            return 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate settings``."""
    parser.add_argument("folder", type=Path, help="data set: a folder with rois.csv")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps every trial")
    parser.add_argument("--encoder", default="default", help="its patch features are used")
    parser.add_argument("--network", default="gcn", choices=sorted(GRAPH_ENCODERS))
    parser.add_argument("--groups", nargs="+", default=[], metavar="NAME=LABEL,LABEL")
    parser.add_argument("--trials", type=int, default=12, help="settings drawn, beside the default")
    parser.add_argument("--steps", type=int, default=150, help="of each training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--card", type=Path, help="page whose table 'settings' is replaced")


def run(args: argparse.Namespace, progress: Progress) -> SettingsReport:
    """Choose and test for every fold, without labels and with them.

    Raises:
        MlError: data that cannot be scored; fewer patients than folds.
    """
    encoder = load_graph_encoder(str(args.encoder))
    records = read_manifest(args.folder)
    if args.groups:
        records = grouped(records, parse_groups(args.groups))
    fold_of = split_patients(records, SplitConfig(folds=FOLDS, seed=args.seed)).fold_of()
    graphs = region_graphs(encoder, records, grid=False, progress=progress)
    regions = Regions(records, graphs, np.array([fold_of[record.patient] for record in records]))
    default = GraphTrainConfig(encoder=args.network, steps=args.steps, seed=args.seed)
    trials = [default, *drawn_settings(default, args.trials)]
    choices: dict[str, list[FoldChoice]] = {}
    for scheme, labelled in SCHEMES.items():
        for test in range(FOLDS):
            progress(test, FOLDS, f"settings, {scheme}")
            found = chosen(regions, trials, test, labelled=labelled, folder=args.out / scheme)
            choices.setdefault(scheme, []).append(found)
    result: SettingsReport = {
        "data_set": args.folder.resolve().name,
        "encoder": f"{encoder.name} {encoder.version}",
        "network": args.network,
        "trials": args.trials,
        "steps": args.steps,
        "seed": args.seed,
        "choices": choices,
    }
    if args.card is not None:
        update_card(args.card, "settings", describe(result))
    return result


def chosen(
    regions: Regions,
    trials: Sequence[GraphTrainConfig],
    test: int,
    *,
    labelled: bool,
    folder: Path,
) -> FoldChoice:
    """The best of the trials on the validation fold, tested; the first of them is the default."""
    validation = validation_of(test)

    def score(config: GraphTrainConfig, on: int) -> float:
        path = folder / f"{test}-{on}-{config_hash(config)}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"map_at_10": regions.score(config, test, on, labelled=labelled)})
        return float(json.loads(path.read_text(encoding="utf-8"))["map_at_10"])

    scores = [score(config, validation) for config in trials]
    best = int(np.argmax(scores))
    return {
        "fold": test,
        "chosen": {name: getattr(trials[best], name) for name in DRAWN},
        "validation": scores[best],
        "test": score(trials[best], test),
        "test_of_defaults": score(trials[0], test),
    }


DRAWN = ("learning_rate", "weight_decay", "temperature", "hidden_dim", "out_dim", "drop")
"""What is searched over; everything else stays as it is by default."""


def drawn_settings(default: GraphTrainConfig, count: int) -> list[GraphTrainConfig]:
    """Settings drawn at random, rates evenly over their logarithms.

    Source: the retrieval paper, section IV-B: random search, whose ranges it does not give.
    """
    rng = np.random.default_rng((default.seed, count))
    return [
        dataclasses.replace(
            default,
            learning_rate=float(10 ** rng.uniform(-4, -2)),
            weight_decay=float(10 ** rng.uniform(-6, -2)),
            temperature=float(10 ** rng.uniform(-1.5, 0)),
            hidden_dim=int(rng.choice((32, 64, 128))),
            out_dim=int(rng.choice((32, 64, 128))),
            drop=(0.1, float(rng.uniform(0.2, 0.7))),
        )
        for _ in range(count)
    ]


def validation_of(test: int) -> int:
    """The fold that settings are chosen by where ``test`` is the test."""
    return (test + 1) % FOLDS


def describe(result: SettingsReport) -> str:
    """The choices as Markdown."""
    rows = []
    for scheme, choices in result["choices"].items():
        for choice in choices:
            told = ", ".join(
                f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in choice["chosen"].items()
                if name != "drop"
            )
            figures = (choice["validation"], choice["test"], choice["test_of_defaults"])
            rows.append([scheme, str(choice["fold"]), *(f"{f:.3f}" for f in figures), told])
        means = [
            float(np.mean([choice[key] for choice in choices]))
            for key in ("validation", "test", "test_of_defaults")
        ]
        rows.append([scheme, "mean", *(f"{mean:.3f}" for mean in means), ""])
    head = (
        f"{result['data_set']}: {result['network']} over features of {result['encoder']}; mAP@10 in"
        f" the fold, same patient excluded; best of {result['trials']} settings and the default,"
        f" {result['steps']} steps each; seed {result['seed']}."
    )
    columns = ["training", "test fold", "validation", "test", "test of the defaults", "chosen"]
    return f"{head}\n\n{markdown_table(columns, rows)}\n"
