"""``python -m ml train metric``: a metric from labelled regions that ``embed`` wrote as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.index.metric import learn_metric, write_metric
from ml.types import ArrayF32, Progress


class MetricReport(TypedDict):
    """What was learned; ``score`` is of patients kept apart, of the best candidate."""

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
    """Arguments of ``python -m ml train metric``."""
    parser.add_argument(
        "vectors", type=Path, help="JSON of `python -m ml embed FOLDER --json`, with labels"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write (.npz)")


def run(args: argparse.Namespace, progress: Progress) -> MetricReport:
    """Learn a metric and write it, also where it is the identity; see ``learn_metric``.

    Raises:
        BadInputError: not such a file, or too few labels or patients in it.
    """
    vectors, labels, patients = _read(args.vectors)
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
