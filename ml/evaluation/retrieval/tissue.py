"""``python -m ml evaluate tissue``: search with a whole slide.

A portal searches with a slide in two ways: by the mean of its regions, and by its sampled tissue.
The first is scored by the organ, among regions of other patients; the second by finding the other
sections of a block, among regions of these and of other slides. The slides are few, so the figures
only distinguish a broken search from a working one.
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
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi import load_encoder
from ml.roi.calibration import random_tissue_regions
from ml.roi.protocol import RegionEncoder
from ml.roi.stain.outline import tissue_outline
from ml.training.common.sources import source_files
from ml.training.roi.tiles import read_tiles
from ml.types import ArrayBool, ArrayF32, ImageU8, Progress

K = 10
"""Number of nearest regions that count."""
INDEX = "histology/atlas/index.csv"
WHERE = {"use": "dev-eval", "stain": "H&E"}
"""Regions of eighteen patients and seven organs that no shipped encoder learned from."""
SECTIONS = "histology/sections"
ELSEWHERE = (
    "histology/slides/her2st-b-d2.tif",
    "histology/slides/tcga-cr-7395.svs",
    "histology/slides/cmu-1-small-region.svs",
)
"""Slides of other patients; the first is of the same laboratory, stain and organ."""
COLOUR = "HSV histogram"
_COLOUR_PX = 1024  # longer side of the image of a colour histogram


class TissueScore(TypedDict):
    """Scores of query slides; means over them.

    Attributes:
        first: share whose nearest region is right.
        precision: of the ten nearest.
        ap: average
            precision among them.
    """

    slides: int
    gallery: float
    first: float
    precision: float
    ap: float


class TissueReport(TypedDict):
    """Result of ``run``: scores by question and method; chance is that of a random order."""

    encoder: str
    version: str
    regions_of_a_slide: int
    scores: dict[str, dict[str, TissueScore]]


@dataclass(frozen=True, slots=True)
class _Method:
    """Embedding of regions and of whole slides."""

    name: str
    region: Callable[[SlideImage, object], ArrayF32]
    slide: Callable[[SlideImage], ArrayF32]


@dataclass(frozen=True, slots=True)
class _Query:
    """A slide's query: its vector, and the vectors (G, D) and relevance (G,) of its gallery."""

    vector: ArrayF32
    gallery: ArrayF32
    right: ArrayBool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate tissue``."""
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
        BadInputError: the data is missing, or ``--regions`` is below 1.
    """
    if args.regions < 1:
        raise BadInputError("--regions: expected at least 1")
    encoder = load_encoder(args.encoder)
    methods = [_encoder_method(encoder), _colour_method()]
    scores: dict[str, dict[str, TissueScore]] = {}
    for method in methods:
        organs = organ_queries(args.data, method, progress)
        sections = section_queries(args.data, method, args.regions, args.seed, progress)
        for question, queries in (("organ", organs), ("next section", sections)):
            scores.setdefault(question, {})[method.name] = tissue_score(queries)
            scores[question]["chance"] = chance_score(queries)
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
    """Markdown table of the scores."""
    rows: list[list[str | float | None]] = [
        [question, name, str(scores["slides"]), scores["first"], scores["precision"], scores["ap"]]
        for question, methods in result["scores"].items()
        for name, scores in methods.items()
    ]
    heads = ["Question", "By", "Slides", "First is right", f"Precision@{K}", f"AP@{K}"]
    return markdown_table(heads, rows)


def organ_queries(data: Path, method: _Method, progress: Progress) -> list[_Query]:
    """Queries by the mean of each patient's regions, among those of all others."""
    tiles = [tile for tile in read_tiles(data / INDEX, WHERE) if tile.label]
    rows: list[ArrayF32] = []
    for number, tile in enumerate(tiles, 1):
        with open_slide(tile.path) as slide:
            rows.append(method.region(slide, None))
        progress(number, len(tiles), f"{method.name}: regions of organs")
    vectors = np.stack(rows)
    patients = np.array([tile.patient for tile in tiles])
    labels = np.array([tile.label for tile in tiles])
    queries = []
    for patient in np.unique(patients):
        is_query = patients == patient
        right = labels[~is_query] == labels[is_query][0]
        if right.any():
            queries.append(_Query(mean_vector(vectors[is_query]), vectors[~is_query], right))
    return queries


def section_queries(
    data: Path, method: _Method, regions: int, seed: int, progress: Progress
) -> list[_Query]:
    """Queries by each section's tissue, among random regions of the other sections and slides."""
    sections = source_files([SECTIONS], data)
    files = [*sections, *source_files(list(ELSEWHERE), data)]
    vectors: list[ArrayF32] = []
    for number, path in enumerate(files):
        with open_slide(path) as slide:
            rng = np.random.default_rng((seed, number))
            squares = list(islice(random_tissue_regions(slide, regions, rng), regions))
            vectors.append(_embed_squares(method, slide, squares))
        progress(number + 1, len(files), f"{method.name}: regions of slides")
    queries = []
    for number, path in enumerate(sections):
        gallery_files = [at for at in range(len(files)) if at != number]
        right = [np.full(len(vectors[at]), at < len(sections)) for at in gallery_files]
        with open_slide(path) as slide:
            vector = method.slide(slide)
        gallery = np.concatenate([vectors[at] for at in gallery_files])
        queries.append(_Query(vector, gallery, np.concatenate(right)))
        progress(number + 1, len(sections), f"{method.name}: tissue of sections")
    return queries


def mean_vector(vectors: ArrayF32) -> ArrayF32:
    """Mean direction of (N, D) vectors with their mean length, (D,), as in the portal's search."""
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(vectors, axis=1).mean())
    return np.asarray(mean * (length / max(float(np.linalg.norm(mean)), 1e-12)), np.float32)


def tissue_score(queries: Sequence[_Query]) -> TissueScore:
    """Mean scores of galleries ranked by Euclidean distance."""
    ranked = []
    for query in queries:
        order = np.argsort(np.linalg.norm(query.gallery - query.vector, axis=1), kind="stable")
        ranked.append(query.right[order])
    return _score(queries, [_order_scores(right) for right in ranked])


def chance_score(queries: Sequence[_Query], *, draws: int = 2_000) -> TissueScore:
    """Mean scores of random orders."""
    rng = np.random.default_rng(0)
    rows = [
        np.mean([_order_scores(rng.permutation(query.right)) for _ in range(draws)], axis=0)
        for query in queries
    ]
    return _score(queries, rows)


def _order_scores(right: ArrayBool) -> tuple[float, float, float]:
    first = right[:K]
    ap = average_precision_at_k(right, k=K, n_relevant=int(right.sum()))
    return float(right[0]), float(first.mean()), ap


def _score(
    queries: Sequence[_Query], rows: Sequence[tuple[float, float, float] | np.ndarray]
) -> TissueScore:
    first, precision, ap = np.mean(np.array(rows, float), axis=0).round(4).tolist()
    gallery = float(np.mean([len(query.right) for query in queries]))
    return {
        "slides": len(queries),
        "gallery": round(gallery, 1),
        "first": first,
        "precision": precision,
        "ap": ap,
    }


def _embed_squares(method: _Method, slide: SlideImage, squares: Sequence[object]) -> ArrayF32:
    vectors = []
    for square in squares:
        try:
            vectors.append(method.region(slide, square))
        except EmptyRegionError:
            continue
    if not vectors:
        raise BadInputError("a slide holds no tissue to search among")
    return np.stack(vectors)


def _encoder_method(encoder: RegionEncoder) -> _Method:
    def region(slide: SlideImage, outline: object) -> ArrayF32:
        return encoder.embed_region(slide, outline).vector  # type: ignore[arg-type]

    return _Method(encoder.name, region, lambda slide: region(slide, tissue_outline(slide)))


def _colour_method() -> _Method:
    def region(slide: SlideImage, outline: object) -> ArrayF32:
        size = (slide.info.width_px, slide.info.height_px)
        left, top, right, bottom = getattr(outline, "bounds", (0, 0, *size))
        side = max(right - left, bottom - top)
        shrink = max(1.0, side / _COLOUR_PX)
        pixels: ImageU8 = slide.read_scaled((left, top), (right - left, bottom - top), shrink)
        return hsv_histogram(pixels, np.full(pixels.shape[:2], 255, np.uint8))

    return _Method(COLOUR, region, lambda slide: region(slide, tissue_outline(slide)))
