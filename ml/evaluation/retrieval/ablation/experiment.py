"""Folds, choice of settings, training and scores of the experiment."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from ml.config import config_hash
from ml.evaluation.retrieval.ablation.regions import LabelledGraphs
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import average_precision_at_k
from ml.evaluation.retrieval.splits import Folds, SplitConfig, split_patients
from ml.files import write_npz
from ml.roi.graph import RoiGraph
from ml.training.roi.encoder.graph import GraphTrainConfig, embed_graphs, train_graph_encoder
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress

WITHOUT_EDGES = "no edges"
ARCHITECTURES = {"GCN": "gcn", "DiffPool": "diffpool", "GraphConv": "topk", WITHOUT_EDGES: "mean"}
"""Rows of the table: the paper's three and one without edges, by ``GRAPH_ENCODERS``."""
TRAININGS = {"supervised": True, "self-supervised": False}
"""Use of labels, by the name of the training."""
LENGTHS = (10, 25)
"""Lengths K of the result lists: section IV-B."""

ArrayStr = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Values of the settings, drawn independently: section IV-A names these settings."""

    learning_rate: tuple[float, ...] = (3e-4, 1e-3, 3e-3)
    weight_decay: tuple[float, ...] = (1e-4, 1e-2)
    temperature: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5)
    hidden_dim: tuple[int, ...] = (32, 64, 128)
    steps: tuple[int, ...] = (50, 100, 200)


@dataclass(frozen=True, slots=True)
class ExperimentConfig:
    """Configuration of the experiment."""

    split: SplitConfig = field(default_factory=SplitConfig)
    seeds: int = 5  # trainings of each network, each with settings chosen for the first
    draws: int = 4  # settings of the random search
    search: SearchSpace = field(default_factory=SearchSpace)
    search_seed: int = 0


@dataclass(frozen=True, slots=True)
class Precisions:
    """Average precision of each query, for each of ``LENGTHS``.

    Attributes:
        mean: (K, Q) of the untrained mean of the vertices.
        chance: (K, Q) of random rankings.
        networks: (seeds, K, Q) by architecture and training.
        patients: (Q,) of the queries.
        unscored: number of regions without a right answer.
    """

    folds: Folds
    mean: ArrayF64
    chance: ArrayF64
    networks: dict[tuple[str, str], ArrayF64]
    patients: tuple[str, ...]
    unscored: int


def run_experiment(
    data: LabelledGraphs,
    config: ExperimentConfig,
    *,
    test_gallery: bool,
    cache: Path,
    progress: Progress,
) -> Precisions:
    """Train every network on two folds, choose its settings on a third and score the fourth.

    Every fold is the test fold once.

    Args:
        test_gallery: see ``DataSet``.
        cache: folder of the vectors of each training; a run that was stopped resumes.
    Raises:
        BadInputError: see ``split_patients`` and ``train_graph_encoder``.
    Source: the retrieval paper, sections II and IV.
    """
    folds = split_patients(data.records, config.split)
    fold_of = folds.fold_of()
    number = np.array([fold_of[record.patient] for record in data.records])
    trainer = _Trainer(data, cache)
    queries = _Queries.create(data.records, number, only_fold=test_gallery)
    mean = np.stack([graph.x.mean(axis=0) for graph in data.graphs])
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    networks: dict[tuple[str, str], ArrayF64] = {}
    for architecture, encoder in ARCHITECTURES.items():
        for training, labelled in TRAININGS.items():
            precisions = np.full((config.seeds, len(LENGTHS), len(data.records)), np.nan)
            for test in range(config.split.folds):
                settings = _best_settings(trainer, queries, encoder, labelled, test, config)
                rows = queries.of_fold(test)
                for seed in range(config.seeds):
                    trained = replace(settings, seed=seed)
                    vectors = trainer.vectors(trained, _training_rows(number, test), labelled)
                    precisions[seed][:, rows] = queries.precisions(rows, vectors)
            networks[architecture, training] = precisions[:, :, queries.scored]
            progress(len(networks), len(ARCHITECTURES) * len(TRAININGS), "networks")
    scored = queries.scored
    return Precisions(
        folds=folds,
        mean=queries.precisions(scored, mean),
        chance=queries.chance(scored),
        networks=networks,
        patients=tuple(data.records[row].patient for row in scored),
        unscored=len(data.records) - len(scored),
    )


def drawn_settings(encoder: str, config: ExperimentConfig) -> list[GraphTrainConfig]:
    """Settings of the random search; the same draws for every network."""
    rng = np.random.default_rng(config.search_seed)
    space = config.search
    return [
        GraphTrainConfig(
            encoder=encoder,
            learning_rate=float(rng.choice(space.learning_rate)),
            weight_decay=float(rng.choice(space.weight_decay)),
            temperature=float(rng.choice(space.temperature)),
            hidden_dim=int(rng.choice(space.hidden_dim)),
            steps=int(rng.choice(space.steps)),
        )
        for _ in range(config.draws)
    ]


def _validation_fold(test: int, folds: int) -> int:
    return (test + 1) % folds


def _training_rows(number: ArrayI64, test: int) -> ArrayI64:
    validation = _validation_fold(test, int(number.max()) + 1)
    return np.flatnonzero((number != test) & (number != validation))


def _best_settings(  # noqa: PLR0917
    trainer: _Trainer,
    queries: _Queries,
    encoder: str,
    labelled: bool,
    test: int,
    config: ExperimentConfig,
) -> GraphTrainConfig:
    """Settings with the best MAP@10 of the validation fold; the test fold takes no part."""
    validation = _validation_fold(test, config.split.folds)
    training_queries = queries.without_fold(test)
    rows = training_queries.of_fold(validation)
    number = queries.number
    train = _training_rows(number, test)
    settings = drawn_settings(encoder, config)
    if not rows.size or len(settings) == 1:
        return settings[0]
    scores = [
        training_queries.precisions(rows, trainer.vectors(drawn, train, labelled))[0].mean()
        for drawn in settings
    ]
    return settings[int(np.argmax(scores))]


@dataclass(frozen=True, slots=True)
class _Trainer:
    """Trains networks and keeps the vectors of all regions."""

    data: LabelledGraphs
    cache: Path

    def vectors(self, config: GraphTrainConfig, rows: ArrayI64, labelled: bool) -> ArrayF32:
        """(N, D) vectors of all regions by a network trained on ``rows``."""
        key = hashlib.sha256(f"{self.data.key} {config_hash(config)} {labelled} ".encode())
        key.update(rows.astype(np.int64).tobytes())
        path = self.cache / f"vectors-{key.hexdigest()[:24]}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                return np.asarray(file["vectors"], np.float32)
        graphs: list[RoiGraph] = [self.data.graphs[row] for row in rows]
        labels = [self.data.records[row].label for row in rows] if labelled else None
        network = train_graph_encoder(graphs, labels, config=config)
        vectors = embed_graphs(network, self.data.graphs)
        write_npz(path, {"vectors": vectors})
        return vectors


@dataclass(frozen=True, slots=True)
class _Queries:
    """Leave one out, without the query's own patient.

    Attributes:
        labels: (N,) of all regions.
        number: (N,) their folds.
        allowed: (N, N) bool, whether a region is in the gallery of a query.
        scored: queries with a right answer.
    """

    labels: ArrayStr
    number: ArrayI64
    allowed: ArrayBool
    scored: ArrayI64

    @classmethod
    def create(cls, records: Sequence[RoiRecord], number: ArrayI64, *, only_fold: bool) -> _Queries:
        labels = np.array([record.label for record in records])
        patients = np.array([record.patient for record in records])
        allowed = patients[:, None] != patients[None]
        if only_fold:
            allowed &= number[:, None] == number[None]
        return cls._with_matches(labels, number, allowed)

    @classmethod
    def _with_matches(cls, labels: ArrayStr, number: ArrayI64, allowed: ArrayBool) -> _Queries:
        right = allowed & (labels[:, None] == labels[None])
        return cls(labels, number, allowed, np.flatnonzero(right.any(axis=1)))

    def without_fold(self, fold: int) -> _Queries:
        """Queries and galleries without the regions of a fold."""
        is_kept = self.number != fold
        allowed = self.allowed & is_kept[:, None] & is_kept[None]
        return self._with_matches(self.labels, self.number, allowed)

    def of_fold(self, fold: int) -> ArrayI64:
        return self.scored[self.number[self.scored] == fold]

    def precisions(self, rows: ArrayI64, vectors: ArrayF32) -> ArrayF64:
        """(K, Q) average precision at each of ``LENGTHS`` of the queries in ``rows``."""
        return self._rank(rows, cdist(vectors[rows], vectors))

    def chance(self, rows: ArrayI64, runs: int = 20) -> ArrayF64:
        rng = np.random.default_rng(0)
        drawn = [self._rank(rows, rng.random((len(rows), len(self.labels)))) for _ in range(runs)]
        return np.asarray(np.mean(drawn, axis=0), np.float64)

    def _rank(self, rows: ArrayI64, distance: ArrayF64) -> ArrayF64:
        precisions = np.zeros((len(LENGTHS), len(rows)))
        for column, (row, to_regions) in enumerate(zip(rows, distance, strict=True)):
            gallery = np.flatnonzero(self.allowed[row])
            ranked = gallery[np.argsort(to_regions[gallery], kind="stable")]
            relevant = self.labels[ranked] == self.labels[row]
            total = int(relevant.sum())
            for place, k in enumerate(LENGTHS):
                precisions[place, column] = average_precision_at_k(relevant, k=k, n_relevant=total)
        return precisions
