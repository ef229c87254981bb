"""``python -m ml train metric``: a metric from labelled regions that ``embed`` wrote as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.index.learning.archive import FromArchive, learn_from_archive
from ml.index.learning.material import ASIDE_LEAST, RULE, Material, TooLittleError
from ml.index.learning.metric import learn_metric, write_metric
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
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
        "--aside-least",
        type=int,
        default=ASIDE_LEAST,
        help="least number of patients to compare on; fewer prove little",
    )


def run(args: argparse.Namespace, progress: Progress) -> MetricReport:
    """Learn a metric and write it, also where it is the identity; see ``learn_metric``.

    Raises:
        BadInputError: not such a file, or too few labels or patients in it.
    """
    vectors, labels, patients = _read(args.vectors)
    if args.card:
        material = Material.of(vectors, labels, patients)
        update_card(args.card, args.section, _figures(material, args.aside_least, progress))
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


def _figures(material: Material, aside_least: int, progress: Progress) -> str:
    """What a portal would say of this archive, as Markdown."""
    try:
        found = learn_from_archive(material, progress=progress, aside_least=aside_least)
    except TooLittleError as error:
        return f"Refused: {error}"
    measures: list[list[str | float | None]] = [
        [one.name, str(one.patients), one.old, one.new, one.gain, one.low, one.high]
        for one in found.comparison.measures
    ]
    heads = ["Measure", "Patients", "Before", "Learned", "Gain", "from", "to"]
    changes = [
        f"- {one.label}, {one.regions} regions: {one.old:.3f} to {one.new:.3f}; "
        f"{one.better} better, {one.same} the same, {one.worse} worse"
        for one in found.comparison.labels
    ]
    parts = [_told(found, material), markdown_table(heads, measures), "\n".join(changes)]
    return "\n\n".join(parts)


def _told(found: FromArchive, material: Material) -> str:
    return (
        f"{len(material.vectors)} regions of {found.enough.patients} patients, "
        f"{found.learned_patients} of them learned from. {RULE} "
        f"Chosen: {found.chosen}. Verdict: {'better' if found.is_better else 'not better'}."
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
