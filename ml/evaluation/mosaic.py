"""Score a mosaic: against known transforms, against itself (NCC), against a reference motion."""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError
from ml.keypoints import transform_points
from ml.keypoints.masks import checked_mask
from ml.mosaic import MosaicConfig, MosaicResult, build_mosaic
from ml.mosaic.sources import open_source
from ml.types import ArrayBool, ArrayF32, ArrayF64, Progress

DISTANCES = (1, 5, 20)
NCC_SIGMA, SHADING_SIGMA = 2.0, 25.0
MIN_OVERLAP = 0.1
MIN_PATTERN_FRAMES = 25


@dataclass(frozen=True, slots=True)
class TruthScore:
    """Corner errors of registered frames in the anchor's plane, anchor px.

    Attributes:
        mean_px, median_px, max_px: over frames, each the mean over the frame's four corners.
        drift_px: mean over the tenth of the frames farthest in time from the anchor.
    """

    n: int
    mean_px: float
    median_px: float
    max_px: float
    drift_px: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate mosaic``."""
    parser.add_argument("frames", type=Path, help="a folder of frames or a video")
    parser.add_argument("--mask", type=Path, help="scope mask image")
    parser.add_argument("--model", default="auto", help="similarity, affine, homography or auto")
    parser.add_argument(
        "--truth", type=Path, help="exact: CSV of index, h00..h22, or a sample video's .npz"
    )
    parser.add_argument(
        "--reference", type=Path, help="CSV: frame, to_frame, h00..h22; agreement, not truth"
    )
    parser.add_argument("--out", type=Path, help="keep the mosaic in this folder")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Build the mosaic and score it with what is given."""
    mask = None if args.mask is None else read_mask(args.mask)
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder) / "mosaic"
        started = time.perf_counter()
        result = build_mosaic(
            args.frames, out, config=MosaicConfig(model=args.model), mask=mask, progress=progress
        )
        seconds = time.perf_counter() - started
    scores: dict[str, Any] = {
        "frames": len(result.frames),
        "registered": result.n_registered,
        "model": result.model,
        "width_px": result.width_px,
        "height_px": result.height_px,
        "seconds": round(seconds, 2),
        "ncc": ncc_by_distance(args.frames, result, mask=mask),
    }
    if args.reference is not None:
        size = _frame_size(args.frames)
        scores["reference_px"] = reference_agreement(
            result, read_reference(args.reference, result), size_px=size
        )
    if args.truth is not None:
        score = score_against_truth(
            result, read_truth(args.truth), size_px=_frame_size(args.frames)
        )
        scores["truth"] = {name: getattr(score, name) for name in TruthScore.__slots__}
    return scores


def score_against_truth(
    result: MosaicResult, truth: Mapping[int, ArrayF64], *, size_px: tuple[int, int]
) -> TruthScore:
    """Compare each frame's transform to the anchor with the true one, at its corners.

    Args:
        truth: frame index -> (3, 3) H_reference_from_frame in one common plane.
        size_px: (width, height) of the frames.
    Raises:
        BadInputError: no registered frame has a truth, or the anchor has none.
    """
    placed = placed_transforms(result)
    anchor = result.anchor_index
    if anchor not in truth or anchor not in placed:
        raise BadInputError(f"truth: expected a transform of the anchor frame {anchor}, found none")
    common = sorted(set(placed) & set(truth))
    corners = frame_corners(size_px)
    errors = np.array(
        [
            _corner_error(
                np.linalg.solve(placed[anchor], placed[f]),
                np.linalg.solve(truth[anchor], truth[f]),
                corners,
            )
            for f in common
        ]
    )
    far = np.argsort([-abs(f - anchor) for f in common], kind="stable")
    return TruthScore(
        n=len(common),
        mean_px=float(errors.mean()),
        median_px=float(np.median(errors)),
        max_px=float(errors.max()),
        drift_px=float(errors[far[: max(1, len(far) // 10)]].mean()),
    )


def ncc_by_distance(
    frames: Path | Sequence[npt.NDArray[Any]],
    result: MosaicResult,
    *,
    mask: npt.NDArray[Any] | None = None,
    distances: Sequence[int] = DISTANCES,
) -> dict[str, float]:
    """Mean NCC of overlapping frames, the later warped onto the earlier, by distance in frames.

    The temporal median of the high-passed frames is taken off first, so that a pattern fixed on
    the lens cannot reward "no motion"; both are low-passed (sigma 2 px).
    """
    images = _clean_frames(frames)
    placed = placed_transforms(result)
    shape = next(iter(images.values())).shape
    inside = checked_mask(mask, (shape[0], shape[1]))
    scores = {}
    for distance in distances:
        values = [
            _ncc(
                images[f],
                images[f + distance],
                np.linalg.solve(placed[f], placed[f + distance]),
                inside,
            )
            for f in sorted(placed)
            if f + distance in placed and f in images and f + distance in images
        ]
        kept = [v for v in values if v is not None]
        scores[str(distance)] = round(float(np.mean(kept)), 4) if kept else float("nan")
    return scores


def reference_agreement(
    result: MosaicResult,
    reference: Mapping[int, ArrayF64],
    *,
    size_px: tuple[int, int],
    distances: Sequence[int] = DISTANCES,
) -> dict[str, float]:
    """Median corner distance in px to a reference motion, by distance in frames.

    Args:
        reference: index -> (3, 3) mapping that frame to the one before it.
    """
    placed, corners = placed_transforms(result), frame_corners(size_px)
    scores = {}
    for distance in distances:
        errors = []
        for first in sorted(placed):
            steps = [first + i for i in range(1, distance + 1)]
            if first + distance not in placed or any(step not in reference for step in steps):
                continue
            other = np.eye(3)
            for step in steps:
                other = other @ reference[step]
            own = np.linalg.solve(placed[first], placed[first + distance])
            errors.append(_corner_error(own, other, corners))
        scores[str(distance)] = round(float(np.median(errors)), 3) if errors else float("nan")
    return scores


def placed_transforms(result: MosaicResult) -> dict[int, ArrayF64]:
    """Frame index -> H_mosaic_from_frame of the registered frames."""
    return {
        frame.index: frame.H_mosaic_from_frame
        for frame in result.frames
        if frame.H_mosaic_from_frame is not None
    }


def frame_corners(size_px: tuple[int, int]) -> ArrayF64:
    """(4, 2) float64: the centres of the corner pixels."""
    w, h = size_px[0] - 1.0, size_px[1] - 1.0
    return np.array([[0, 0], [w, 0], [w, h], [0, h]], np.float64)


def read_truth(path: Path) -> dict[int, ArrayF64]:
    """Read a CSV of index, h00..h22, or the ``.npz`` that ``make_sample_video`` writes.

    Raises:
        BadInputError, CorruptFileError: no such file, or not of that form.
    """
    if path.suffix == ".npz":
        try:
            with np.load(path) as data:
                return dict(enumerate(data["H_retina_from_frame"]))
        except (OSError, ValueError, KeyError):
            message = f"{path.name}: expected an .npz with H_retina_from_frame"
            raise CorruptFileError(message) from None
    return {int(row["index"]): _matrix(row) for row in _rows(path, "index")}


def read_reference(path: Path, result: MosaicResult) -> dict[int, ArrayF64]:
    """Read a CSV of frame, to_frame, h00..h22; frames are numbered from the file's first row."""
    rows = _rows(path, "frame")
    first = int(rows[0]["frame"])
    return {int(row["frame"]) - first + result.frames[0].index: _matrix(row) for row in rows}


def read_mask(path: Path) -> npt.NDArray[Any]:
    """Read a mask image as (H, W) uint8."""
    pixels = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if pixels is None:
        raise BadInputError(f"{path.name}: expected a mask image")
    return np.asarray(pixels)


def _rows(path: Path, key: str) -> list[dict[str, str]]:
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError:
        raise BadInputError(f"{path.name}: expected a CSV file, found nothing to read") from None
    if not rows or key not in rows[0] or "h22" not in rows[0]:
        raise CorruptFileError(f"{path.name}: expected the columns {key}, h00 to h22")
    return rows


def _matrix(row: Mapping[str, str]) -> ArrayF64:
    values = [float(row[f"h{i}{j}"]) for i in range(3) for j in range(3)]
    return np.array(values, np.float64).reshape(3, 3)


def _corner_error(own: npt.NDArray[Any], other: npt.NDArray[Any], corners: ArrayF64) -> float:
    difference = transform_points(own, corners) - transform_points(other, corners)
    return float(np.hypot(*difference.T).mean())


def _clean_frames(frames: Path | Sequence[npt.NDArray[Any]]) -> dict[int, ArrayF32]:
    greys = {
        frame.index: cv2.cvtColor(frame.rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
        for frame in open_source(frames).frames()
        if frame.rgb is not None
    }
    chosen = sorted(greys)[:: max(1, len(greys) // 50)]
    fine = [greys[i] - cv2.GaussianBlur(greys[i], (0, 0), 4.0) for i in chosen]
    # of few frames the median is still scene, not lens
    pattern = np.median(np.stack(fine), axis=0) if len(fine) >= MIN_PATTERN_FRAMES else 0.0
    # between two Gaussians: shading by the light, which moves with the scope, must not score
    return {
        index: np.asarray(
            cv2.GaussianBlur(grey - pattern, (0, 0), NCC_SIGMA)
            - cv2.GaussianBlur(grey, (0, 0), SHADING_SIGMA),
            np.float32,
        )
        for index, grey in greys.items()
    }


def _ncc(a: ArrayF32, b: ArrayF32, a_from_b: npt.NDArray[Any], inside: ArrayBool) -> float | None:
    size = (a.shape[1], a.shape[0])
    warped = cv2.warpPerspective(b, a_from_b, size)
    seen = cv2.warpPerspective(inside.astype(np.uint8), a_from_b, size, flags=cv2.INTER_NEAREST)
    both = inside & seen.astype(np.bool_)
    if both.sum() < MIN_OVERLAP * inside.sum():
        return None
    x, y = a[both], warped[both]
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / max(float(np.sqrt((x * x).sum() * (y * y).sum())), 1e-9))


def _frame_size(frames: Path) -> tuple[int, int]:
    for frame in open_source(frames).frames():
        if frame.rgb is not None:
            return frame.rgb.shape[1], frame.rgb.shape[0]
    raise BadInputError("frames: none could be read")
