"""``python -m ml evaluate places``: retrieval of the same place, near and far in time.

There are three truths: simulated sweeps over stills of operations that no shipped weights saw, the
same places in still, frames and mosaic together, and a sequence with structure from motion. Each
region of a place is searched among the regions of other frames of its recording.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.closeness import CalledClose
from ml.evaluation.retrieval.places.methods import (
    PlaceMethod,
    baseline_methods,
    encoder_method,
    region_view,
)
from ml.evaluation.retrieval.places.scenes import Scene
from ml.evaluation.retrieval.places.scores import (
    DISTANCES,
    PlaceQuery,
    PlaceScore,
    by_truth,
    called_close,
    nearest,
    queries,
    ranked_score,
    score_vectors,
    summed,
)
from ml.evaluation.retrieval.places.sequences import SequenceConfig, sequence_scene
from ml.evaluation.retrieval.places.sweeps import StillSweepConfig, kinds_scene, sweep_scene
from ml.imaging.slides.slide import open_slide
from ml.index.ranking.calibration import calibration_of
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.roi import load_encoder
from ml.roi.keypoints.encoder import KeypointEncoder
from ml.roi.keypoints.rerank import region_features, rerank
from ml.training.common.sequence import read_sequence
from ml.training.common.sources import source_files
from ml.training.roi.endoscopy import EndoscopyTrainConfig, drawn_views
from ml.types import ArrayF32, ImageU8, Progress

SEQUENCE = "endoscopy/sinus-4584"
Scores = dict[tuple[str, str], PlaceScore]


@dataclass(frozen=True, slots=True)
class PlacesConfig:
    """Configuration of the search."""

    stills: int = 9  # stills swept, evenly over the operations left out of training
    vocabulary: int = 150  # regions that the bag of words is learned from
    seed: int = 0


class PlacesReport(TypedDict):
    """Result of ``run``; scores by method, truth and distance.

    Attributes:
        called_close: see ``called_close``, of encoders that have a calibration.
    """

    config: PlacesConfig
    scenes: list[str]
    regions: int
    scores: dict[str, dict[str, dict[str, PlaceScore]]]
    called_close: dict[str, dict[str, dict[str, CalledClose]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate places``."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--encoder", action="append", help="name or file; repeat it for several")
    parser.add_argument("--stills", type=int, default=PlacesConfig().stills)
    parser.add_argument(
        "--rerank", type=int, default=0, help="number of queries to rerank in each case"
    )
    parser.add_argument("--card", type=Path, help="model card whose table is renewed")


def run(args: argparse.Namespace, progress: Progress) -> PlacesReport:
    """Score the encoders and the baselines.

    Raises:
        BadInputError: the data are not there, or a number makes no sense.
    """
    if args.stills < 1:
        raise BadInputError(f"--stills: expected at least 1, got {args.stills}")
    if args.rerank < 0:
        raise BadInputError(f"--rerank: expected 0 or more, got {args.rerank}")
    config = PlacesConfig(stills=args.stills)
    scenes = read_scenes(args.data, config, progress)
    encoders = [load_encoder(name) for name in args.encoder or ("endoscopy",)]
    views = _views(encoders)
    training = drawn_views(views, EndoscopyTrainConfig(regions=config.vocabulary), args.data)
    methods = [*baseline_methods(views, training, seed=config.seed), *map(encoder_method, encoders)]
    calibrations = {encoder_method(e).name: calibration_of(e.config_hash) for e in encoders}
    scores: dict[str, Scores] = {}
    close: dict[str, dict[str, dict[str, CalledClose]]] = {}
    for method in methods:
        vectors = _vectors(method, scenes, progress)
        calibration = calibrations.get(method.name)
        if calibration is not None:
            close[method.name] = called_close(scenes, vectors, calibration)
        scores[method.name] = score_vectors(scenes, vectors)
        if args.rerank and method.name == methods[-1].name:
            reranked_scores = _scores_after_rerank(views, scenes, vectors, args.rerank, progress)
            scores |= reranked_scores
    if args.card:
        update_card(args.card, "places", f"{scores_table(scores)}\n\n{close_lines(close)}")
    return {
        "config": config,
        "scenes": [scene.name for scene in scenes],
        "regions": sum(len(scene.regions) for scene in scenes),
        "scores": {name: by_truth(method_scores) for name, method_scores in scores.items()},
        "called_close": close,
    }


def read_scenes(data: Path, config: PlacesConfig, progress: Progress) -> list[Scene]:
    """Scenes of the sweeps over stills left out of training, and of the sequence."""
    train = EndoscopyTrainConfig()
    files = [
        path for path in source_files([train.source], data) if path.name.startswith(train.left_out)
    ]
    if not files:
        raise BadInputError(f"{train.source}: no still of {', '.join(train.left_out)}")
    chosen = np.linspace(0, len(files) - 1, min(config.stills, len(files))).round().astype(int)
    scenes = []
    for number, index in enumerate(chosen):
        still = _read(files[index])
        seed = config.seed + int(index)
        for scene_of in (sweep_scene, kinds_scene):
            scenes.append(scene_of(still, files[index].stem, StillSweepConfig(), seed=seed))
        progress(number + 1, len(chosen) + 1, "filming")
    scenes.append(sequence_scene(read_sequence(data / SEQUENCE), SequenceConfig()))
    progress(len(chosen) + 1, len(chosen) + 1, "filming")
    return scenes


def scores_table(scores: dict[str, Scores]) -> str:
    """Markdown table of the methods by truth and distance, with intervals in brackets."""
    cases = sorted(
        {case for method_scores in scores.values() for case in method_scores},
        key=lambda case: (case[0], DISTANCES.index(case[1])),
    )
    heads = ["method", *(f"{truth}, {distance}" for truth, distance in cases)]
    first = next(iter(scores.values()))
    rows = [["chance", *(f"{first[case].chance:.3f}" for case in cases)]]
    for name, method_scores in scores.items():
        rows.append([name, *(_cell(method_scores.get(case)) for case in cases)])
    return markdown_table(heads, rows)


def close_lines(close: dict[str, dict[str, dict[str, CalledClose]]]) -> str:
    """Text with the shares of close hits, a line for each calibrated encoder."""
    return "\n".join(
        f"{name} calls the right place close in this share of searches: "
        + ", ".join(
            f"{of.found:.2f} ({truth}, {distance})"
            for truth, by_distance in nested.items()
            for distance, of in by_distance.items()
        )
        + "; and the nearest of as many regions of other operations in "
        + ", ".join(
            f"{of.unrelated:.2f}" for by_distance in nested.values() for of in by_distance.values()
        )
        + "."
        for name, nested in close.items()
    )


def _cell(score: PlaceScore | None) -> str:
    if score is None:
        return ""
    return f"{score.score:.3f} ({score.low:.2f} to {score.high:.2f})"


def _views(encoders: Sequence[object]) -> KeypointEncoder:
    """Encoder that brings regions to one size: one of those scored, or the shipped one."""
    for encoder in encoders:
        if isinstance(encoder, KeypointEncoder):
            return encoder
    shipped = load_encoder("endoscopy")
    if not isinstance(shipped, KeypointEncoder):
        raise BadInputError("endoscopy: expected an encoder of key points")
    return shipped


def _vectors(method: PlaceMethod, scenes: Sequence[Scene], progress: Progress) -> list[ArrayF32]:
    vectors = []
    for number, scene in enumerate(scenes):
        rows = [method.vector(scene, index) for index in range(len(scene.regions))]
        vectors.append(np.stack(rows))
        progress(number + 1, len(scenes), method.name)
    return vectors


def _scores_after_rerank(
    views: KeypointEncoder,
    scenes: Sequence[Scene],
    vectors: Sequence[ArrayF32],
    count: int,
    progress: Progress,
) -> dict[str, Scores]:
    """Scores before and after re-ranking the first fifty, on ``count`` queries of each case."""
    features: dict[tuple[int, int], Any] = {}

    def of(scene: int, index: int) -> Any:
        if (scene, index) not in features:
            view = region_view(views, scenes[scene], index)
            features[scene, index] = region_features(view)
        return features[scene, index]

    before: Scores = {}
    after: Scores = {}
    for truth in sorted({scene.truth for scene in scenes}):
        for distance in DISTANCES:
            found_queries = list(queries(scenes, truth, distance))
            rows = (
                np.linspace(0, len(found_queries) - 1, min(count, len(found_queries)))
                .round()
                .astype(int)
            )
            chosen = [found_queries[row] for row in rows]
            if not chosen:
                continue
            pairs = []
            for number, query in enumerate(chosen):
                pairs.append(_rerank(query, vectors[query.scene], of))
                progress(number + 1, len(chosen), f"reranked, {truth} {distance}")
            before[truth, distance] = summed(scenes, chosen, [pair[0] for pair in pairs])
            after[truth, distance] = summed(scenes, chosen, [pair[1] for pair in pairs])
    return {f"the same, {count} queries": before, "reranked": after}


def _rerank(query: PlaceQuery, vectors: ArrayF32, of: Any) -> tuple[float, float]:
    distances = np.linalg.norm(vectors[query.gallery] - vectors[query.index], axis=1)
    candidates = [of(query.scene, int(index)) for index in query.gallery]
    order, _ = rerank(of(query.scene, query.index), candidates, distances.astype(np.float32))
    return ranked_score(query, nearest(vectors, query)), ranked_score(query, order)


def _read(path: Path) -> ImageU8:
    with open_slide(path) as slide:
        return slide.read_scaled((0, 0), (slide.info.width_px, slide.info.height_px), 1.0)
