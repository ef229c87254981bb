"""``python -m ml evaluate tissue``: does a search with a whole slide find its like first?

A portal asks with a slide in two ways, each answered with single regions of other slides: by the
mean of the slide's regions, and by its sampled tissue. The first is asked with the slides of a
table of regions, for their organ, without the patient's own. The second is asked with sections of
one block, for the other sections, among regions of slides from elsewhere; the section itself is
left out. All figures are of few slides: they tell a broken search from a working one, and no more.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypedDict

import numpy as np

from ml.errors import BadInputError, EmptyRegionError
from ml.evaluation.retrieval.baselines import hsv_histogram
from ml.evaluation.retrieval.metrics import average_precision_at_k
from ml.imaging.slides import SlideImage, open_slide
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi import RegionEncoder, load_encoder
from ml.roi.calibration import regions_of
from ml.roi.stain.outline import tissue_outline
from ml.training.common.sources import source_files
from ml.training.roi.tiles import read_tiles
from ml.types import ArrayBool, ArrayF32, ImageU8, Progress

K = 10
"""Nearest regions that count."""
INDEX = "histology/atlas/index.csv"
WHERE = {"use": "dev-eval", "stain": "H&E"}
"""Regions of eighteen patients and seven organs that no shipped encoder learned from."""
SECTIONS = "histology/sections"
ELSEWHERE = (
    "histology/slides/her2st-b-d2.tif",
    "histology/slides/tcga-cr-7395.svs",
    "histology/slides/cmu-1-small-region.svs",
)
"""Slides of other patients; the first is of the sections' own laboratory, stain and organ."""
COLOUR = "HSV histogram"
_LOOK_PX = 1024  # longer side of what colours are counted on


class TissueScore(TypedDict):
    """Of slides that asked; means over them.

    Attributes:
        first: share whose nearest region is right. precision: of the ten nearest. ap: average
            precision among them.
    """

    slides: int
    gallery: float
    first: float
    precision: float
    ap: float


class TissueReport(TypedDict):
    """What ``run`` returns: scores by question and method; chance is that of a random order."""

    encoder: str
    version: str
    regions_of_a_slide: int
    scores: dict[str, dict[str, TissueScore]]


@dataclass(frozen=True, slots=True)
class _Method:
    """How regions and whole slides become vectors."""

    name: str
    region: Callable[[SlideImage, object], ArrayF32]
    slide: Callable[[SlideImage], ArrayF32]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One slide's question: the vectors of the gallery (G, D), and which are right (G,)."""

    vector: ArrayF32
    gallery: ArrayF32
    right: ArrayBool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate tissue``."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--encoder", default="default", help="name or file")
    parser.add_argument(
        "--regions", type=int, default=40, help="number of regions of each slide of a gallery"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--card", type=Path, help="page whose section `tissue` is renewed")


def run(args: argparse.Namespace, progress: Progress) -> TissueReport:
    """Score an encoder, colour, and chance.

    Raises:
        BadInputError: the data are not there, or a number makes no sense.
    """
    if args.regions < 1:
        raise BadInputError("--regions: expected at least 1")
    encoder = load_encoder(args.encoder)
    methods = [_by_encoder(encoder), _by_colour()]
    scores: dict[str, dict[str, TissueScore]] = {}
    for method in methods:
        organs = organ_questions(args.data, method, progress)
        sections = section_questions(args.data, method, args.regions, args.seed, progress)
        for question, asked in (("organ", organs), ("next section", sections)):
            scores.setdefault(question, {})[method.name] = tissue_score(asked)
            scores[question]["chance"] = chance_score(asked)
    report: TissueReport = {
        "encoder": encoder.name,
        "version": str(encoder.version),
        "regions_of_a_slide": args.regions,
        "scores": scores,
    }
    if args.card:
        update_card(args.card, "tissue", describe(report))
    return report


def describe(result: TissueReport) -> str:
    """The scores as a table."""
    rows: list[list[str | float | None]] = [
        [question, name, str(one["slides"]), one["first"], one["precision"], one["ap"]]
        for question, methods in result["scores"].items()
        for name, one in methods.items()
    ]
    heads = ["Question", "By", "Slides", "First is right", f"Precision@{K}", f"AP@{K}"]
    return markdown_table(heads, rows)


def organ_questions(data: Path, method: _Method, progress: Progress) -> list[_Asked]:
    """Each patient's slide by the mean of its regions, among the regions of all others."""
    tiles = [tile for tile in read_tiles(data / INDEX, WHERE) if tile.label]
    found: list[ArrayF32] = []
    for done, tile in enumerate(tiles, 1):
        with open_slide(tile.path) as slide:
            found.append(method.region(slide, None))
        progress(done, len(tiles), f"{method.name}: regions of organs")
    vectors = np.stack(found)
    patients = np.array([tile.patient for tile in tiles])
    labels = np.array([tile.label for tile in tiles])
    asked = []
    for patient in np.unique(patients):
        own = patients == patient
        right = labels[~own] == labels[own][0]
        if right.any():
            asked.append(_Asked(middle(vectors[own]), vectors[~own], right))
    return asked


def section_questions(
    data: Path, method: _Method, regions: int, seed: int, progress: Progress
) -> list[_Asked]:
    """Each section by its sampled tissue, among random regions of the other sections and slides."""
    sections = source_files([SECTIONS], data)
    files = [*sections, *source_files(list(ELSEWHERE), data)]
    vectors: list[ArrayF32] = []
    for number, path in enumerate(files):
        with open_slide(path) as slide:
            rng = np.random.default_rng((seed, number))
            squares = list(islice(regions_of(slide, regions, rng), regions))
            vectors.append(_embedded(method, slide, squares))
        progress(number + 1, len(files), f"{method.name}: regions of slides")
    asked = []
    for number, path in enumerate(sections):
        others = [at for at in range(len(files)) if at != number]
        right = [np.full(len(vectors[at]), at < len(sections)) for at in others]
        with open_slide(path) as slide:
            vector = method.slide(slide)
        gallery = np.concatenate([vectors[at] for at in others])
        asked.append(_Asked(vector, gallery, np.concatenate(right)))
        progress(number + 1, len(sections), f"{method.name}: tissue of sections")
    return asked


def middle(vectors: ArrayF32) -> ArrayF32:
    """(D,): the mean direction of (N, D), of their mean length: what a portal asks with."""
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(vectors, axis=1).mean())
    return np.asarray(mean * (length / max(float(np.linalg.norm(mean)), 1e-12)), np.float32)


def tissue_score(asked: Sequence[_Asked]) -> TissueScore:
    """Mean scores with the galleries ranked by Euclidean distance."""
    ranked = []
    for one in asked:
        order = np.argsort(np.linalg.norm(one.gallery - one.vector, axis=1), kind="stable")
        ranked.append(one.right[order])
    return _score(asked, [_of_order(right) for right in ranked])


def chance_score(asked: Sequence[_Asked], *, draws: int = 2_000) -> TissueScore:
    """The mean over random orders, seeded."""
    rng = np.random.default_rng(0)
    rows = [
        np.mean([_of_order(rng.permutation(one.right)) for _ in range(draws)], axis=0)
        for one in asked
    ]
    return _score(asked, rows)


def _of_order(right: ArrayBool) -> tuple[float, float, float]:
    first = right[:K]
    ap = average_precision_at_k(right, k=K, n_relevant=int(right.sum()))
    return float(right[0]), float(first.mean()), ap


def _score(
    asked: Sequence[_Asked], rows: Sequence[tuple[float, float, float] | np.ndarray]
) -> TissueScore:
    first, precision, ap = np.mean(np.array(rows, float), axis=0).round(4).tolist()
    gallery = float(np.mean([len(one.right) for one in asked]))
    return {
        "slides": len(asked),
        "gallery": round(gallery, 1),
        "first": first,
        "precision": precision,
        "ap": ap,
    }


def _embedded(method: _Method, slide: SlideImage, squares: Sequence[object]) -> ArrayF32:
    found = []
    for square in squares:
        try:
            found.append(method.region(slide, square))
        except EmptyRegionError:
            continue
    if not found:
        raise BadInputError("a slide holds no tissue to search among")
    return np.stack(found)


def _by_encoder(encoder: RegionEncoder) -> _Method:
    def region(slide: SlideImage, outline: object) -> ArrayF32:
        return encoder.embed_region(slide, outline).vector  # type: ignore[arg-type]

    return _Method(encoder.name, region, lambda slide: region(slide, tissue_outline(slide)))


def _by_colour() -> _Method:
    def region(slide: SlideImage, outline: object) -> ArrayF32:
        size = (slide.info.width_px, slide.info.height_px)
        left, top, right, bottom = getattr(outline, "bounds", (0, 0, *size))
        side = max(right - left, bottom - top)
        shrink = max(1.0, side / _LOOK_PX)
        pixels: ImageU8 = slide.read_scaled((left, top), (right - left, bottom - top), shrink)
        return hsv_histogram(pixels, np.full(pixels.shape[:2], 255, np.uint8))

    return _Method(COLOUR, region, lambda slide: region(slide, tissue_outline(slide)))
