"""Score descriptors on images warped by known transforms: the papers' protocol and a hard one.

The papers' protocol (graph-ssl-endoscopic-matching, section 4.3): key points are detected in an
image and *projected* into its warped copy, so that every partner is present; a match is right
where its projection error is at most 5 px. It leaks position (partners sit at true places), so
the hard protocol detects in both images independently and asks for 3 px.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.keypoints import (
    DetectorConfig,
    detect_keypoints,
    load_descriptor,
    match_descriptors,
    transform_points,
)
from ml.keypoints.describe import Descriptor
from ml.keypoints.pipeline import match_keypoints
from ml.mosaic.sources import open_source
from ml.types import ArrayF64, ImageU8, Progress

FAMILIES = ("rotation", "translation", "scale", "blur", "viewpoint")
PAPER_PE_PX, HARD_PE_PX = 5.0, 3.0
ROTATIONS_DEG = (5.0, 10.0, 15.0)
SHIFTS_PX = (4.0, 7.0, 10.0)
SCALES = (0.9, 0.95, 1.05, 1.1, 1.15)
BLURS_PX = (3, 5, 10, 15)
VIEWPOINTS = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """An image, its warped copy, and the truth between them."""

    family: str
    a: ImageU8
    b: ImageU8
    H_b_from_a: ArrayF64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate matching``."""
    parser.add_argument("frames", type=Path, help="a folder of images or a video")
    parser.add_argument("--descriptors", default="sift,orb,akaze,kaze")
    parser.add_argument("--detector", default="sift", help="key points of the papers' protocol")
    parser.add_argument("--keypoints", type=int, default=500)
    parser.add_argument("--images", type=int, default=10, help="at most so many images")
    parser.add_argument("--long-side-px", type=int, default=720)
    parser.add_argument("--seed", type=int, default=7)


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Score every named descriptor under both protocols; see ``score_descriptor``."""
    images = sample_images(args.frames, count=args.images, long_side_px=args.long_side_px)
    names = [name.strip() for name in args.descriptors.split(",") if name.strip()]
    descriptors = {name: load_descriptor(name) for name in names}
    pairs = [pair for i, image in enumerate(images) for pair in make_pairs(image, args.seed + i)]
    scores: dict[str, Any] = {}
    for done, (name, descriptor) in enumerate(descriptors.items()):
        progress(done, len(descriptors), name)
        scores[name] = score_descriptor(
            descriptor, pairs, detector=args.detector, keypoints=args.keypoints
        )
    return {"images": len(images), "pairs": len(pairs), "scores": scores}


def score_descriptor(
    descriptor: Descriptor, pairs: list[Pair], *, detector: str, keypoints: int
) -> dict[str, Any]:
    """Precision and matching score of one descriptor.

    Precision = right matches / matches; matching score = right matches / key points that have a
    partner. The NNT threshold is the one of the best F1 over all pairs of the run; the curve gives
    (1 - precision, recall) for others.

    Returns:
        by family and overall: ``nn_precision``, ``nnt_precision``, ``nnt_score``; ``worst_tenth``
        the mean NNT score of the worst tenth of pairs; ``hard_precision``, ``hard_right`` of own
        detection; ``seconds`` a pair.
    """
    started = time.perf_counter()
    paper = [_paper_pair(descriptor, pair, detector, keypoints) for pair in pairs]
    hard = [_hard_pair(descriptor, pair) for pair in pairs]
    threshold = best_threshold(
        np.concatenate([p[0] for p in paper]), np.concatenate([p[1] for p in paper])
    )
    result: dict[str, Any] = {"threshold": round(threshold, 4)}
    for family in (*FAMILIES, "all"):
        rows = [i for i, pair in enumerate(pairs) if family in (pair.family, "all")]
        result[family] = _summary([paper[i] for i in rows], [hard[i] for i in rows], threshold)
    recalls = sorted(float((p[1] & (p[0] < threshold)).sum() / max(len(p[0]), 1)) for p in paper)
    result["worst_tenth"] = round(float(np.mean(recalls[: max(1, len(recalls) // 10)])), 4)
    result["seconds"] = round((time.perf_counter() - started) / max(len(pairs), 1), 3)
    return result


def make_pairs(image: ImageU8, seed: int) -> Iterator[Pair]:
    """Warped copies of one image: the values of section 4.3.1, and random viewpoints with noise."""
    rng = np.random.default_rng(seed)
    height, width = image.shape[:2]
    centre = ((width - 1) / 2, (height - 1) / 2)
    for angle in ROTATIONS_DEG:
        yield _warped("rotation", image, _about(centre, angle, 1.0))
    for shift in SHIFTS_PX:
        matrix = np.array([[1, 0, shift], [0, 1, -shift], [0, 0, 1.0]])
        yield _warped("translation", image, matrix)
    for scale in SCALES:
        yield _warped("scale", image, _about(centre, 0.0, scale))
    for size in BLURS_PX:
        kernel = np.zeros((size, size), np.float32)
        kernel[size // 2] = 1.0 / size
        yield Pair("blur", image, np.asarray(cv2.filter2D(image, -1, kernel)), np.eye(3))
    for _ in range(VIEWPOINTS):
        pair = _warped("viewpoint", image, _random_view(rng, width, height))
        noise = rng.normal(0.0, 4.0, image.shape)
        noisy = np.clip(pair.b + noise, 0, 255).astype(np.uint8)
        yield Pair(pair.family, pair.a, noisy, pair.H_b_from_a)


def best_threshold(distance: np.ndarray, is_right: np.ndarray) -> float:
    """The NNT threshold of the best F1 = 2 right / (kept + all), over pooled nearest neighbours."""
    if not len(distance):
        return 0.0
    order = np.argsort(distance, kind="stable")
    right = np.cumsum(is_right[order])
    kept = np.arange(1, len(order) + 1)
    best = int(np.argmax(2.0 * right / (kept + len(order))))
    return float(np.nextafter(distance[order][best], np.float32(np.inf), dtype=np.float32))


def sample_images(frames: Path, *, count: int, long_side_px: int) -> list[ImageU8]:
    """Evenly spaced images of a folder or video, shrunk to ``long_side_px``.

    Raises:
        BadInputError: none could be read.
    """
    source = open_source(frames)
    wanted = set(np.linspace(0, source.count - 1, count).astype(int).tolist())
    images = []
    for position, frame in enumerate(source.frames()):
        if position in wanted and frame.rgb is not None:
            scale = min(1.0, long_side_px / max(frame.rgb.shape[:2]))
            size = (round(frame.rgb.shape[1] * scale), round(frame.rgb.shape[0] * scale))
            small = cv2.resize(frame.rgb, size, interpolation=cv2.INTER_AREA)
            images.append(np.asarray(small, np.uint8))
    if not images:
        raise BadInputError("frames: none could be read")
    return images


def _paper_pair(
    descriptor: Descriptor, pair: Pair, detector: str, keypoints: int
) -> tuple[np.ndarray, np.ndarray]:
    """(distance, is_right) of each key point whose projection falls inside b: NN matching."""
    points = detect_keypoints(pair.a, config=DetectorConfig(name=detector, max_keypoints=keypoints))
    partner = transform_points(pair.H_b_from_a, points.xy)
    size = np.array([pair.b.shape[1] - 1, pair.b.shape[0] - 1])
    inside = ((partner >= 0) & (partner <= size)).all(axis=1)
    xy_a, xy_b = points.xy[inside], partner[inside].astype(np.float32)
    response = points.response[inside]
    rows_a = descriptor.describe(pair.a, xy_a, response)
    rows_b = descriptor.describe(pair.b, xy_b, response)
    pairs, distance = match_descriptors(rows_a, rows_b, strategy="nn")
    error = np.hypot(*(xy_b[pairs[:, 1]] - xy_b[pairs[:, 0]]).T)
    return distance, error <= PAPER_PE_PX


def _hard_pair(descriptor: Descriptor, pair: Pair) -> tuple[int, int]:
    """(matches, right matches): own detection in both images, mutual, 3 px."""
    config = DetectorConfig(name=descriptor.detector, max_keypoints=1000)
    points_a = detect_keypoints(pair.a, config=config)
    points_b = detect_keypoints(pair.b, config=config)
    found = match_keypoints(descriptor, pair.a, points_a, pair.b, points_b)
    error = np.hypot(*(transform_points(pair.H_b_from_a, found.xy_a) - found.xy_b).T)
    return len(found), int((error <= HARD_PE_PX).sum())


def _summary(
    paper: list[tuple[np.ndarray, np.ndarray]], hard: list[tuple[int, int]], threshold: float
) -> dict[str, float]:
    distance = np.concatenate([p[0] for p in paper])
    right = np.concatenate([p[1] for p in paper])
    kept = distance < threshold
    n, matched = max(len(distance), 1), max(sum(h[0] for h in hard), 1)
    return {
        "nn_precision": round(float(right.sum()) / n, 4),
        "nnt_precision": round(float((right & kept).sum()) / max(int(kept.sum()), 1), 4),
        "nnt_score": round(float((right & kept).sum()) / n, 4),
        "hard_precision": round(sum(h[1] for h in hard) / matched, 4),
        "hard_right": round(float(np.mean([h[1] for h in hard])), 1),
    }


def _warped(family: str, image: ImageU8, matrix: ArrayF64) -> Pair:
    size = (image.shape[1], image.shape[0])
    warped = cv2.warpPerspective(image, matrix, size, flags=cv2.INTER_LINEAR)
    return Pair(family, image, np.asarray(warped, np.uint8), matrix)


def _about(centre: tuple[float, float], angle_deg: float, scale: float) -> ArrayF64:
    return np.vstack([cv2.getRotationMatrix2D(centre, angle_deg, scale), [0.0, 0.0, 1.0]])


def _random_view(rng: np.random.Generator, width: int, height: int) -> ArrayF64:
    """A small random perspective: corners moved by up to 6 % of the image, and a turn."""
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    moved = corners + rng.uniform(-0.06, 0.06, (4, 2)) * (width, height)
    tilt = cv2.getPerspectiveTransform(corners, moved.astype(np.float32))
    turn = _about((width / 2, height / 2), float(rng.uniform(-12, 12)), 1.0)
    matrix = turn @ tilt
    return np.asarray(matrix / matrix[2, 2], np.float64)
