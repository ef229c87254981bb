"""Score a mosaic: against known transforms, against itself (NCC), against a reference motion."""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, CorruptFileError
from ml.evaluation.mosaic_baselines import sift_chain
from ml.evaluation.mosaic_table import SWEEPS, simulate_table, to_markdown
from ml.keypoints import transform_points
from ml.keypoints.masks import checked_mask
from ml.mosaic import MosaicConfig, MosaicResult, build_mosaic
from ml.mosaic.sources import open_source
from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8, Progress

DISTANCES = (1, 5, 20)
NCC_SIGMA, SHADING_SIGMA = 1.0, 6.0
MIN_OVERLAP = 0.1
MIN_PATTERN_FRAMES = 25
RIM_PX = 10
AGREEMENT_DISTANCES = (5, 20, 60)


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
    parser.add_argument("frames", type=Path, nargs="?", help="a folder of frames or a video")
    parser.add_argument(
        "--simulate",
        nargs="+",
        metavar="SWEEP",
        help=f"no frames, but sweeps with exact truth against other methods: {', '.join(SWEEPS)}",
    )
    parser.add_argument("--pictures", type=Path, help="keep the simulated mosaics in this folder")
    parser.add_argument("--card", type=Path, help="write the figures into this model card")
    parser.add_argument(
        "--compare", action="store_true", help="score a SIFT chain and SIFT pairs on the frames too"
    )
    parser.add_argument(
        "--backward", action="store_true", help="build from the reversed frames too and compare"
    )
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
    """Build the mosaic and score it with what is given, or run the simulated sweeps.

    Raises:
        BadInputError: neither frames nor ``--simulate``.
    """
    if args.simulate:
        result = simulate_table(args.simulate, progress, pictures=args.pictures)
        text = to_markdown(result)
    else:
        result = score_frames(args, progress)
        text = frames_markdown(result)
    if args.card is not None:
        update_card(args.card, str(result["data_set"]), text)
    return result


def score_frames(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Scores of the mosaic of one folder or video."""
    if args.frames is None:
        raise BadInputError("evaluate mosaic: expected frames, or --simulate with sweeps")
    mask = None if args.mask is None else read_mask(args.mask)
    config = MosaicConfig(model=args.model)
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder) / "mosaic"
        wall, cpu = time.perf_counter(), time.process_time()
        result = build_mosaic(args.frames, out, config=config, mask=mask, progress=progress)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    images = clean_frames(args.frames)
    inside = _inner(mask, next(iter(images.values())).shape)
    ways: dict[str, Pairwise] = {"tessera": chained(placed_transforms(result))}
    scores: dict[str, Any] = {
        "data_set": args.frames.parent.name if args.frames.name == "frames" else args.frames.name,
        "frames": len(result.frames),
        "registered": result.n_registered,
        "components": len(result.components),
        "model": result.model,
        "width_px": result.width_px,
        "height_px": result.height_px,
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
    }
    size = _frame_size(args.frames)
    if args.reference is not None:
        steps = read_reference(args.reference, result)
        scores["reference_px"] = reference_agreement(result, steps, size_px=size)
        ways["given reference"] = chained(accumulate(steps, result.frames[0].index))
    if args.compare:
        plain = {index: _visible(image) for index, image in images.items()}
        ways |= {
            "SIFT chain": chained(sift_chain(list(plain.values()))),
            "SIFT pairs": sift_pairs(plain),
        }
    scores["ncc"] = {name: ncc_table(images, way, inside) for name, way in ways.items()}
    if args.backward:
        scores["backward_px"] = _backward(
            args, result, config=config, mask=mask, size=size, progress=progress
        )
    if args.truth is not None:
        score = score_against_truth(result, read_truth(args.truth), size_px=size)
        scores["truth"] = {name: getattr(score, name) for name in TruthScore.__slots__}
    return scores


def frames_markdown(scores: Mapping[str, Any]) -> str:
    """The scores of one sequence as tables."""
    distances = [str(d) for d in DISTANCES]
    lines = [
        f"{scores['data_set']}: {scores['registered']} of {scores['frames']} frames registered in "
        f"{scores['components']} mosaic(s), model {scores['model']}, {scores['width_px']} x "
        f"{scores['height_px']} px, {scores['cpu_seconds']} s of one CPU core.",
        "",
        "| mean NCC at distance | " + " | ".join(distances) + " |",
        "|" + " --- |" * (len(distances) + 1),
    ]
    for name, values in scores["ncc"].items():
        row = ["none" if not is_number(values[d]) else f"{values[d]:.3f}" for d in distances]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    if "reference_px" in scores:
        cells = ", ".join(f"{px} at {d}" for d, px in scores["reference_px"].items())
        lines += ["", f"Median corner distance to the given reference, px: {cells}."]
    if "backward_px" in scores:
        cells = ", ".join(f"{px} at {d}" for d, px in scores["backward_px"].items())
        lines += ["", f"Forward against backward run, median corner distance, px: {cells}."]
    return "\n".join(lines) + "\n"


def is_number(value: float | None) -> bool:
    """False for what no pair of frames could tell."""
    return value is not None and not np.isnan(value)


def update_card(card: Path, data_set: str, text: str) -> None:
    """Replace what stands between ``<!-- figures: NAME -->`` and ``<!-- end figures -->``.

    Raises:
        BadInputError: the card has no such place.
    """
    whole = card.read_text(encoding="utf-8")
    start = f"<!-- figures: {data_set} -->"
    pattern = re.compile(re.escape(start) + r".*?<!-- end figures -->", re.DOTALL)
    if not pattern.search(whole):
        raise BadInputError(f"{card.name}: expected a line {start!r} and '<!-- end figures -->'")
    figures = f"{start}\n{text}<!-- end figures -->"
    card.write_text(pattern.sub(lambda _: figures, whole), encoding="utf-8")


def _backward(
    args: argparse.Namespace,
    forward: MosaicResult,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    size: tuple[int, int],
    progress: Progress,
) -> dict[str, float]:
    """Median corner distance between this run and one over the reversed frames, by distance."""
    frames = [f.rgb for f in open_source(args.frames).frames() if f.rgb is not None]
    with tempfile.TemporaryDirectory() as folder:
        result = build_mosaic(
            frames[::-1], Path(folder) / "m", config=config, mask=mask, progress=progress
        )
    last = len(frames) - 1
    other = {last - index: m for index, m in placed_transforms(result).items()}
    own, corners, scores = placed_transforms(forward), frame_corners(size), {}
    for distance in AGREEMENT_DISTANCES:
        errors = [
            _corner_error(
                np.linalg.solve(own[i], own[i + distance]),
                np.linalg.solve(other[i], other[i + distance]),
                corners,
            )
            for i in sorted(own)
            if all(k in own and k in other for k in (i, i + distance))
        ]
        scores[str(distance)] = round(float(np.median(errors)), 3) if errors else float("nan")
    return scores


Pairwise = Callable[[int, int], "npt.NDArray[Any] | None"]
"""(a, b) -> (3, 3) that maps frame b to frame a, or None where the method has none."""


def chained(placed: Mapping[int, npt.NDArray[Any]]) -> Pairwise:
    """The motion between any two frames that have a place in one plane."""

    def between(a: int, b: int) -> npt.NDArray[Any] | None:
        if a not in placed or b not in placed:
            return None
        return np.asarray(np.linalg.solve(placed[a], placed[b]))

    return between


def accumulate(steps: Mapping[int, ArrayF64], first: int) -> dict[int, ArrayF64]:
    """Places from a motion of each frame to the one before it."""
    placed = {first: np.eye(3)}
    index = first + 1
    while index in steps:
        placed[index] = placed[index - 1] @ steps[index]
        index += 1
    return placed


def sift_pairs(frames: Mapping[int, ImageU8]) -> Pairwise:
    """Each pair matched for itself: what a chain of SIFT could reach at best."""

    def between(a: int, b: int) -> npt.NDArray[Any] | None:
        found = sift_chain([frames[a], frames[b]])
        return found.get(1)

    return between


def ncc_table(
    images: Mapping[int, ArrayF32],
    between: Pairwise,
    inside: ArrayBool,
    *,
    distances: Sequence[int] = DISTANCES,
) -> dict[str, float]:
    """Mean NCC of overlapping frames, the later warped onto the earlier, by distance."""
    scores = {}
    for distance in distances:
        values = []
        for f in sorted(images):
            if f + distance not in images:
                continue
            matrix = between(f, f + distance)
            if matrix is not None:
                values.append(_ncc(images[f], images[f + distance], matrix, inside))
        kept = [v for v in values if v is not None]
        scores[str(distance)] = round(float(np.mean(kept)), 4) if kept else float("nan")
    return scores


def score_against_truth(
    result: MosaicResult, truth: Mapping[int, ArrayF64], *, size_px: tuple[int, int]
) -> TruthScore:
    """Compare each frame's transform to the anchor with the true one, at its corners.

    Args:
        truth: frame index -> (3, 3) H_reference_from_frame in one common plane.
            Frames of other components than the anchor's lie in other planes and are left out.
        size_px: (width, height) of the frames.
    Raises:
        BadInputError: no registered frame has a truth, or the anchor has none.
    """
    main = {frame.index for frame in result.frames if frame.component in (0, None)}
    placed = {f: m for f, m in placed_transforms(result).items() if f in main}
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
    """Mean NCC of overlapping frames by distance in frames; see ``clean_frames``, ``ncc_table``."""
    images = clean_frames(frames)
    inside = _inner(mask, next(iter(images.values())).shape)
    way = chained(placed_transforms(result))
    return ncc_table(images, way, inside, distances=distances)


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


def clean_frames(frames: Path | Sequence[npt.NDArray[Any]]) -> dict[int, ArrayF32]:
    """Index -> (H, W) float32 that may be compared: without what stands still on the lens.

    The temporal median is taken off, so that a pattern fixed on the lens cannot reward "no
    motion", then all but the band from 1 to 6 px, where vessels are and shading is not.
    """
    greys = {
        frame.index: cv2.cvtColor(frame.rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
        for frame in open_source(frames).frames()
        if frame.rgb is not None
    }
    # of few frames the median is still scene, not lens
    many = len(greys) >= MIN_PATTERN_FRAMES
    still = np.median(np.stack(list(greys.values())), axis=0) if many else np.float32(0)
    cleaned = {}
    for index, grey in greys.items():
        moving = np.asarray(grey - still, np.float32)
        band = cv2.GaussianBlur(moving, (0, 0), NCC_SIGMA)
        cleaned[index] = np.asarray(band - cv2.GaussianBlur(moving, (0, 0), SHADING_SIGMA))
    return cleaned


def _visible(band: ArrayF32) -> ImageU8:
    """A cleaned frame as (H, W, 3) uint8, so that key points see no fixed pattern either."""
    spread = 4 * max(float(band.std()), 1e-3)
    grey = np.clip(128 + 127 * cv2.GaussianBlur(band, (0, 0), NCC_SIGMA) / spread, 0, 255)
    return np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2)


def _inner(mask: npt.NDArray[Any] | None, shape: tuple[int, ...]) -> ArrayBool:
    """The view without its rim, which stands still."""
    inside = checked_mask(mask, (shape[0], shape[1])).astype(np.uint8)
    rim = np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8)
    return np.asarray(cv2.erode(inside, rim, borderValue=1) > 0)


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
