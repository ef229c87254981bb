"""``python -m ml evaluate modality``: proposed modality of images, cross-validated by source."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.common.images import image_paths, read_image
from ml.imaging.modality import BIAS, LONG_SIDE_PX, WEIGHTS, modality_features
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.types import ArrayBool, ArrayF64, Progress

_RIDGE = 0.05
_STEPS = 100
_CLASS_WEIGHT = 100.0


class SourceScore(TypedDict):
    """Errors on one source by weights fitted on all other sources, and by the shipped weights."""

    source: str
    is_endoscopy: bool
    images: int
    errors: int
    min_probability: float
    errors_shipped: int


class ModalityReport(TypedDict):
    """Result that ``--figures`` writes."""

    sources: list[SourceScore]
    weights: list[float]
    bias: float


@dataclass(frozen=True, slots=True)
class _Images:
    """Features (N, 3), truth (N,) bool and number of the source (N,) of all images."""

    features: ArrayF64
    is_endoscopy: ArrayBool
    source: ArrayF64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate modality``."""
    add = parser.add_argument
    add("--histology", type=Path, nargs="+", required=True, help="folders; each is one source")
    add("--endoscopy", type=Path, nargs="+", required=True, help="folders; each is one source")
    add("--images", type=int, default=150, help="at most this many of a folder, evenly spaced")
    add("--card", type=Path, help="model card whose figures are replaced")


def run(args: argparse.Namespace, progress: Progress) -> ModalityReport:
    """Cross-validate over the sources, then fit on all.

    Raises:
        BadInputError: a modality with one source only.
    """
    for name, of_modality in (("histology", args.histology), ("endoscopy", args.endoscopy)):
        if len(of_modality) < 2:
            raise BadInputError(f"--{name}: expected at least 2 folders, got {len(of_modality)}")
    folders: list[Path] = [*args.histology, *args.endoscopy]
    images = _read(folders, len(args.histology), args.images, progress)
    sources: list[SourceScore] = []
    for number, folder in enumerate(folders):
        is_held_out = images.source == number
        weights = fit_logistic(
            images.features[~is_held_out],
            images.is_endoscopy[~is_held_out],
            images.source[~is_held_out],
        )
        sources.append(_score("/".join(folder.parts[-2:]), images, is_held_out, weights))
    weights = fit_logistic(images.features, images.is_endoscopy, images.source)
    result: ModalityReport = {
        "sources": sources,
        "weights": [round(float(weight), 3) for weight in weights[:-1]],
        "bias": round(float(weights[-1]), 3),
    }
    if args.card is not None:
        update_card(args.card, "modality", _figures(sources))
    return result


def fit_logistic(features: ArrayF64, is_endoscopy: ArrayBool, source: ArrayF64) -> ArrayF64:
    """Fit a ridge logistic regression with equal weights of classes and of sources in a class.

    Args:
        features: (N, D) float64.
        is_endoscopy: (N,) bool.
        source: (N,) numbers of sources.
    Returns:
        (D + 1,) float64, the bias last.
    """
    weight = np.zeros(len(features))
    for truth in (False, True):
        names = np.unique(source[is_endoscopy == truth])
        for name in names:
            rows = source == name
            weight[rows] = _CLASS_WEIGHT / len(names) / rows.sum()
    design = np.c_[features, np.ones(len(features))]
    ridge = _RIDGE * np.r_[np.ones(features.shape[1]), 0.0]
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):  # Newton's method
        probability = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (weight * (probability - is_endoscopy)) + ridge * weights
        curvature = weight * probability * (1 - probability)
        hessian = design.T @ (design * curvature[:, None]) + np.diag(ridge)
        weights = weights - np.linalg.solve(hessian, gradient)
    return np.asarray(weights, np.float64)


def _paths(folder: Path) -> list[Path]:
    """Images of a folder and of the folders below it.

    Raises:
        BadInputError: there is none.
    """
    paths: list[Path] = []
    for subfolder in [folder, *sorted(path for path in folder.rglob("*") if path.is_dir())]:
        with suppress(BadInputError):
            paths += image_paths(subfolder)
    if not paths:
        raise BadInputError(f"{folder.name}: expected a folder of images, found no image")
    return paths


def _read(folders: Sequence[Path], histology: int, count: int, progress: Progress) -> _Images:
    features, truth, source = [], [], []
    for number, folder in enumerate(folders):
        progress(number, len(folders), folder.name)
        paths = _paths(folder)
        chosen = np.linspace(0, len(paths) - 1, min(count, len(paths))).round().astype(int)
        for index in np.unique(chosen):
            image = read_image(paths[index], long_side_px=LONG_SIDE_PX)
            features.append(modality_features(image.rgb))
            truth.append(number >= histology)
            source.append(number)
    return _Images(np.array(features), np.array(truth), np.array(source, np.float64))


def _score(name: str, images: _Images, is_held_out: ArrayBool, weights: ArrayF64) -> SourceScore:
    truth = images.is_endoscopy[is_held_out]
    probability = _endoscopy(images.features[is_held_out], weights)
    shipped = _endoscopy(images.features[is_held_out], np.r_[WEIGHTS, BIAS])
    return {
        "source": name,
        "is_endoscopy": bool(truth[0]),
        "images": int(is_held_out.sum()),
        "errors": int(((probability > 0.5) != truth).sum()),
        "min_probability": float(np.where(truth, probability, 1 - probability).min()),
        "errors_shipped": int(((shipped > 0.5) != truth).sum()),
    }


def _endoscopy(features: ArrayF64, weights: ArrayF64) -> ArrayF64:
    return np.asarray(1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1]))), np.float64)


def _figures(sources: Sequence[SourceScore]) -> str:
    rows: list[Sequence[str | float | None]] = [
        [
            row["source"],
            "endoscopy" if row["is_endoscopy"] else "histology",
            str(row["images"]),
            str(row["errors"]),
            round(row["min_probability"], 3),
            str(row["errors_shipped"]),
        ]
        for row in sources
    ]
    total: list[str | float | None] = ["all", ""]
    total += [str(sum(row[key] for row in sources)) for key in ("images", "errors")]
    total += ["", str(sum(row["errors_shipped"] for row in sources))]
    header = ["Source", "Modality", "Images", "Errors", "Least probability", "Errors as shipped"]
    return markdown_table(header, [*rows, total])


def describe(result: Mapping[str, object]) -> str:
    """Markdown table, and the weights of the fit on all sources."""
    sources: list[SourceScore] = result["sources"]  # type: ignore[assignment]
    return f"{_figures(sources)}\n\nweights {result['weights']}, bias {result['bias']}"
