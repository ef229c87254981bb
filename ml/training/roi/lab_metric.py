"""``python -m ml train metric``: a metric from labelled regions that ``embed`` wrote as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.index.metric_learning.dataset import MIN_TEST_PATIENTS, RULE, RegionDataset, TooLittleError
from ml.index.metric_learning.metric import learn_metric, write_metric
from ml.index.metric_learning.training import LearningOutcome, learn_from_archive
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.types import ArrayF32, Progress


class MetricReport(TypedDict):
    """Result of metric learning; ``score`` is of held-out patients, for the best candidate."""

    regions: int
    labels: int
    patients: int
    chosen: str
    score: float
    plain: float
    margin: float
    error: float | None
    written: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train metric``."""
    parser.add_argument(
        "vectors", type=Path, help="JSON of `python -m ml embed FOLDER --json`, with labels"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write (.npz)")
    parser.add_argument(
        "--card",
        type=Path,
        help=(
            "learn as a portal does, from most patients, and write the comparison on the others "
            "into this card"
        ),
    )
    parser.add_argument("--section", default="figures", help="section of the card")
    parser.add_argument(
        "--min-test-patients",
        type=int,
        default=MIN_TEST_PATIENTS,
        help="least number of patients to compare on; fewer prove little",
    )


def run(args: argparse.Namespace, progress: Progress) -> MetricReport:
    """Learn and write a metric, even if it is the identity; see ``learn_metric``.

    Raises:
        BadInputError: not such a file, or too few labels or patients in it.
    """
    vectors, labels, patients = _read(args.vectors)
    if args.card:
        dataset = RegionDataset.create(vectors, labels, patients)
        update_card(args.card, args.section, _figures(dataset, args.min_test_patients, progress))
    progress(0, 1, "learning")
    metric = learn_metric(vectors, labels, patients)
    write_metric(args.out, metric)
    return {
        "regions": len(vectors),
        "labels": len(set(labels)),
        "patients": len(set(patients)),
        "chosen": metric.chosen,
        "score": metric.score,
        "plain": metric.plain,
        "margin": metric.margin,
        "error": metric.error if np.isfinite(metric.error) else None,
        "written": args.out.name,
    }


def _figures(dataset: RegionDataset, min_test_patients: int, progress: Progress) -> str:
    """Markdown of the figures that a portal shows for such an archive."""
    try:
        outcome = learn_from_archive(
            dataset, progress=progress, min_test_patients=min_test_patients
        )
    except TooLittleError as error:
        return f"Refused: {error}"
    measures: list[list[str | float | None]] = [
        [
            measure.name,
            str(measure.patients),
            measure.old,
            measure.new,
            measure.gain,
            measure.low,
            measure.high,
        ]
        for measure in outcome.comparison.measures
    ]
    heads = ["Measure", "Patients", "Before", "Learned", "Gain", "from", "to"]
    changes = [
        f"- {label.label}, {label.regions} regions: {label.old:.3f} to {label.new:.3f}; "
        f"{label.better} better, {label.same} the same, {label.worse} worse"
        for label in outcome.comparison.labels
    ]
    parts = [_summary(outcome, dataset), markdown_table(heads, measures), "\n".join(changes)]
    return "\n\n".join(parts)


def _summary(outcome: LearningOutcome, dataset: RegionDataset) -> str:
    return (
        f"{len(dataset.vectors)} regions of {outcome.sufficiency.patients} patients, "
        f"{outcome.learned_patients} of them learned from. {RULE} "
        f"Chosen: {outcome.chosen}. Verdict: {'better' if outcome.is_better else 'not better'}."
    )


def _read(path: Path) -> tuple[ArrayF32, list[str], list[str]]:
    try:
        regions = json.loads(path.read_text(encoding="utf-8"))["regions"]
        vectors = np.array([region["vector"] for region in regions], np.float32)
        labels = [str(region["label"]) for region in regions]
        patients = [str(region["patient"]) for region in regions]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"{path.name}: expected what `python -m ml embed FOLDER --json` writes of a data set"
        ) from error
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise BadInputError(f"{path.name}: expected finite vectors of one length")
    return vectors, labels, patients
