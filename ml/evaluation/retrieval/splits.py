"""Patient-disjoint folds of similar class shares, found by a genetic algorithm.

The folds hold about equal shares of every class, in regions and in slides; a slide counts for each
class it holds a region of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.types import ArrayF64, ArrayI64, Progress, no_progress

_SIZE_WEIGHT = 0.5
"""Weight of equal sizes against equal shares of labels."""
_EMPTY_FOLD = 100.0
"""Cost of a fold without regions: more than any other cost."""
_ELITE = 4
"""Number of best individuals that survive unchanged."""
_TOURNAMENT = 3
"""Number of individuals of a tournament."""


@dataclass(frozen=True, slots=True)
class SplitConfig:
    """Configuration of the search for folds."""

    folds: int = 4  # the paper's number: two to train on, one to choose by, one to test on
    population: int = 120  # individuals: assignments of patients to folds
    generations: int = 250  # at most; fewer if the folds are perfect
    mutation: float = 0.03  # probability that a patient changes its fold
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Folds:
    """Folds and how even they are.

    Attributes:
        patients: of each fold, sorted.
        rois, slides: (folds, labels) int64 counts; a slide counts for each class it holds.
        imbalance: mean distance of the folds' shares from even ones, 0 is perfect.
    """

    patients: tuple[tuple[str, ...], ...]
    rois: ArrayI64
    slides: ArrayI64
    imbalance: float

    def fold_of(self) -> dict[str, int]:
        """Patient to fold."""
        return {name: fold for fold, names in enumerate(self.patients) for name in names}


def split_patients(
    records: Sequence[RoiRecord],
    config: SplitConfig | None = None,
    *,
    progress: Progress = no_progress,
) -> Folds:
    """Assign the patients to folds.

    Args:
        records: regions; the image is the slide.
    Returns:
        Folds in the order of their first patient; the same for the same records and seed.
    Raises:
        BadInputError: fewer patients than folds, fewer than two folds, or no regions.
    Source: the retrieval paper, section II: a genetic algorithm for similar slide- and ROI-level
        class distributions; its operators are not given there and are ours: tournaments of three,
        uniform crossover, elitism.
    """
    config = config or SplitConfig()
    names = sorted({record.patient for record in records})
    if config.folds < 2 or config.generations < 1 or config.population <= _ELITE:
        raise BadInputError(
            f"folds: expected 2 or more, a generation or more and over {_ELITE} lives,"
            f" got {config.folds}, {config.generations} and {config.population}"
        )
    if len(names) < config.folds:
        raise BadInputError(
            f"{config.folds} folds need {config.folds} patients or more, got {len(names)}"
        )
    labels = sorted({record.label for record in records})
    counts = _counts(records, names, labels)
    best = _evolve(counts, config, progress)
    return _folds(best, names, len(labels), counts, config)


def _counts(records: Sequence[RoiRecord], names: Sequence[str], labels: Sequence[str]) -> ArrayF64:
    """(patients, 2 L + 2): regions by label, slides by label, regions, slides."""
    patient = {name: i for i, name in enumerate(names)}
    label = {name: i for i, name in enumerate(labels)}
    width = len(labels)
    counts = np.zeros((len(names), 2 * width + 2))
    for record in records:
        counts[patient[record.patient], label[record.label]] += 1
        counts[patient[record.patient], -2] += 1
    for owner, kind, _ in {(r.patient, r.label, r.image) for r in records}:
        counts[patient[owner], width + label[kind]] += 1
    for owner, _ in {(r.patient, r.image) for r in records}:
        counts[patient[owner], -1] += 1
    return counts


def _evolve(counts: ArrayF64, config: SplitConfig, progress: Progress) -> ArrayI64:
    rng = np.random.default_rng(config.seed)
    size = (config.population, len(counts))
    lives = rng.integers(config.folds, size=size)
    lives[0] = _greedy(counts, config.folds)
    for generation in range(config.generations):
        cost = _cost(lives, counts, config.folds)
        order = np.argsort(cost, kind="stable")
        lives, cost = lives[order], cost[order]
        progress(generation, config.generations, "folds")
        if cost[0] < 1e-12:
            break
        # Individuals are sorted by cost: the lowest rank wins the tournament.
        children = config.population - _ELITE
        parents = rng.integers(config.population, size=(2, children, _TOURNAMENT)).min(axis=2)
        either = rng.random((children, size[1])) < 0.5
        bred = np.where(either, lives[parents[0]], lives[parents[1]])
        is_mutated = rng.random(bred.shape) < max(config.mutation, 1 / size[1])
        bred = np.where(is_mutated, rng.integers(config.folds, size=bred.shape), bred)
        lives = np.concatenate([lives[:_ELITE], bred])
    cost = _cost(lives, counts, config.folds)
    return np.asarray(lives[int(np.argmin(cost))], np.int64)


def _greedy(counts: ArrayF64, folds: int) -> ArrayI64:
    """First individual: largest patient first, each to the fold with the fewest regions."""
    dealt = np.zeros(len(counts), np.int64)
    load = np.zeros(folds)
    for patient in np.argsort(-counts[:, -2], kind="stable"):
        dealt[patient] = int(np.argmin(load))
        load[dealt[patient]] += counts[patient, -2]
    return dealt


def _cost(lives: ArrayI64, counts: ArrayF64, folds: int) -> ArrayF64:
    """(P,) cost of individuals: mean distance from even shares of labels and of sizes."""
    share = _shares(lives, counts, folds)
    deviation = np.abs(share - 1 / folds).mean(axis=1)
    empty = (share[:, :, -2] == 0).sum(axis=1)
    cost = deviation[:, :-2].mean(axis=1) + _SIZE_WEIGHT * deviation[:, -2:].mean(axis=1)
    return np.asarray(cost + _EMPTY_FOLD * empty, np.float64)


def _shares(lives: ArrayI64, counts: ArrayF64, folds: int) -> ArrayF64:
    """(P, folds, columns): share of each count in each fold."""
    fold_counts = np.stack(
        [(lives == fold).astype(np.float64) @ counts for fold in range(folds)], axis=1
    )
    return np.asarray(fold_counts / np.maximum(counts.sum(axis=0), 1), np.float64)


def _folds(
    dealt: ArrayI64,
    names: Sequence[str],
    width: int,
    counts: ArrayF64,
    config: SplitConfig,
) -> Folds:
    # Folds are in the order of their first patient.
    order = sorted(set(dealt.tolist()), key=dealt.tolist().index)
    fold_counts = np.stack([counts[dealt == fold].sum(axis=0) for fold in order]).astype(np.int64)
    share = _shares(dealt[None], counts, config.folds)[0, :, :-2]
    return Folds(
        patients=tuple(
            tuple(name for name, fold in zip(names, dealt, strict=True) if fold == number)
            for number in order
        ),
        rois=fold_counts[:, :width],
        slides=fold_counts[:, width : 2 * width],
        imbalance=float(np.abs(share - 1 / config.folds).mean()),
    )
