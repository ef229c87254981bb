"""``python -m ml match A B``: corresponding points of two images."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, TypedDict

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.keypoints import match_images
from ml.keypoints.descriptors.registry import DESCRIPTOR_NAMES
from ml.keypoints.detect import DETECTOR_NAMES
from ml.types import Matches


class MatchReport(TypedDict):
    """Points of both images, pixels, with their scores."""

    matches: int
    seconds: float
    xy_a: list[list[float]]
    xy_b: list[list[float]]
    score: list[float]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``match``."""
    parser = subparsers.add_parser("match", help="match the key points of two images")
    parser.add_argument("image_a", type=Path)
    parser.add_argument("image_b", type=Path)
    parser.add_argument("--descriptor", default="default", help=", ".join(DESCRIPTOR_NAMES))
    parser.add_argument(
        "--detector", help=f"{', '.join(DETECTOR_NAMES)}; by default that of the descriptor"
    )
    parser.add_argument("--max-keypoints", type=int, default=1000)
    parser.add_argument("--picture", type=Path, help="draw the matches into this image file")


def run(args: argparse.Namespace) -> MatchReport:
    """Match two images by command line arguments."""
    image_a, image_b = read_image(args.image_a), read_image(args.image_b)
    started = time.perf_counter()
    matches = match_images(
        image_a,
        image_b,
        descriptor=args.descriptor,
        detector=args.detector,
        max_keypoints=args.max_keypoints,
    )
    seconds = time.perf_counter() - started
    if args.picture is not None:
        draw_matches(image_a, image_b, matches, args.picture)
    return {
        "matches": len(matches),
        "seconds": round(seconds, 3),
        "xy_a": np.round(matches.xy_a.astype(np.float64), 3).tolist(),
        "xy_b": np.round(matches.xy_b.astype(np.float64), 3).tolist(),
        "score": np.round(matches.score.astype(np.float64), 4).tolist(),
    }


def describe(result: MatchReport) -> str:
    """Text of the result."""
    return f"{result['matches']} matches in {result['seconds']} s"


def read_image(path: Path) -> npt.NDArray[Any]:
    """Read a still as stored: grey or RGB(A), 8 or 16 bits.

    Raises:
        BadInputError: not an image that can be read.
    """
    try:
        data = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError:
        raise BadInputError(f"{path.name}: expected an image, found nothing to read") from None
    pixels = cv2.imdecode(data, cv2.IMREAD_UNCHANGED) if len(data) else None
    if pixels is None:
        raise BadInputError(f"{path.name}: expected a PNG, JPEG or TIFF image")
    if pixels.ndim == 3:
        pixels = cv2.cvtColor(
            pixels, cv2.COLOR_BGRA2RGBA if pixels.shape[2] == 4 else cv2.COLOR_BGR2RGB
        )
    return np.asarray(pixels)


def draw_matches(
    image_a: npt.NDArray[Any], image_b: npt.NDArray[Any], matches: Matches, path: Path
) -> None:
    """Draw both images side by side with a line for each match.

    Raises:
        BadInputError: the path's ending names no image format, or it cannot be written.
    """
    from ml.mosaic.frames.sources import as_rgb

    a, b = as_rgb(image_a), as_rgb(image_b)
    sheet = np.zeros((max(len(a), len(b)), a.shape[1] + b.shape[1], 3), np.uint8)
    sheet[: len(a), : a.shape[1]], sheet[: len(b), a.shape[1] :] = a, b
    shifted = matches.xy_b + np.array([a.shape[1], 0], np.float32)
    for start, end in zip(matches.xy_a, shifted, strict=True):
        from_px, to_px = ([round(float(v)) for v in xy] for xy in (start, end))
        cv2.line(sheet, from_px, to_px, (0, 200, 90), 1, cv2.LINE_AA)
    try:
        is_written = cv2.imwrite(str(path), cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))
    except cv2.error:
        is_written = False
    if not is_written:
        raise BadInputError(f"{path.name}: expected a .png or .jpg in a folder that can be written")
