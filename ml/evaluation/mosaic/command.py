"""``python -m ml evaluate mosaic``: score a mosaic of given frames, or of simulated sweeps."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.evaluation.common.images import mask_file
from ml.evaluation.mosaic.baselines import METHODS, sift_chain
from ml.evaluation.mosaic.ncc import (
    DISTANCES,
    Pairwise,
    chained,
    clean_frames,
    inner_view,
    meshes_of,
    ncc_table,
    sift_pairs,
    straightened_frames,
    visible,
)
from ml.evaluation.mosaic.table import SWEEPS, SweepTable, simulate_table, to_markdown
from ml.evaluation.mosaic.targets import MOSAIC, PAIRS, target_lines
from ml.evaluation.mosaic.truth import (
    TruthScore,
    accumulate,
    frame_corners,
    placed_maps,
    placed_transforms,
    read_reference,
    read_truth,
    reference_agreement,
    run_agreement,
    score_against_truth,
    view_points,
)
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.sources import open_source
from ml.mosaic.result import MosaicResult
from ml.reports.cards import update_card
from ml.types import ArrayBool, Progress

IN_VIEW = "in the view"
"""Name of the comparison of two runs at points inside the field of view."""


class FrameScores(TypedDict):
    """Scores of the mosaic of one folder or video.

    Attributes:
        ncc: mean NCC of overlapping frames, by method and distance.
        reference_px: median corner distance to the given reference, by distance.
        backward_px: median distance to a run over the reversed frames, by what is compared and by
            distance in frames.
    """

    data_set: str
    frames: int
    registered: int
    components: int
    model: str
    width_px: int
    height_px: int
    seconds: float
    cpu_seconds: float
    ncc: NotRequired[dict[str, dict[str, float]]]
    reference_px: NotRequired[dict[str, float]]
    backward_px: NotRequired[dict[str, dict[str, float]]]
    truth: NotRequired[TruthScore]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate mosaic``."""
    parser.add_argument("frames", type=Path, nargs="?", help="a folder of frames or a video")
    parser.add_argument(
        "--simulate",
        nargs="+",
        metavar="SWEEP",
        help=f"no frames, but sweeps with exact truth against other methods: {', '.join(SWEEPS)}",
    )
    parser.add_argument("--stills", type=Path, help="folder of the stills of such sweeps")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--pictures", type=Path, help="keep the simulated mosaics in this folder")
    parser.add_argument("--card", type=Path, help="write the figures into this model card")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="also score a SIFT chain and SIFT pairs on the frames",
    )
    parser.add_argument(
        "--backward", action="store_true", help="also build from the reversed frames, and compare"
    )
    parser.add_argument("--mask", type=Path, help="scope mask image; by default that of the folder")
    parser.add_argument("--model", default="auto", help="motion model, as for `ml mosaic`")
    parser.add_argument(
        "--truth", type=Path, help="exact: CSV of index, h00..h22, or a sample video's .npz"
    )
    parser.add_argument(
        "--reference", type=Path, help="CSV: frame, to_frame, h00..h22; agreement, not truth"
    )
    parser.add_argument("--out", type=Path, help="keep the mosaic in this folder")


def run(args: argparse.Namespace, progress: Progress) -> SweepTable | FrameScores:
    """Build the mosaic and score it with what is given, or run the simulated sweeps.

    Raises:
        BadInputError: neither frames nor ``--simulate``.
    """
    result: SweepTable | FrameScores
    if args.simulate:
        table = simulate_table(
            args.simulate,
            progress,
            methods=args.methods,
            pictures=args.pictures,
            stills=args.stills,
        )
        result, text = table, to_markdown(table)
    else:
        scores = score_frames(args, progress)
        result, text = scores, frames_markdown(scores)
    if args.card is not None:
        update_card(args.card, str(result["data_set"]), text)
    return result


def score_frames(args: argparse.Namespace, progress: Progress) -> FrameScores:
    """Scores of the mosaic of one folder or video."""
    if args.frames is None:
        raise BadInputError("evaluate mosaic: expected frames, or --simulate with sweeps")
    mask_path = args.mask or (mask_file(args.frames) if args.frames.is_dir() else None)
    mask = None if mask_path is None else read_mask(mask_path)
    config = MosaicConfig(motion_model=args.model)
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder) / "mosaic"
        wall, cpu = time.perf_counter(), time.process_time()
        result = build_mosaic(args.frames, out, config=config, mask=mask, progress=progress)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    images = clean_frames(args.frames)
    inside = inner_view(mask, next(iter(images.values())).shape)
    plane = chained(placed_transforms(result))
    ways: dict[str, Pairwise] = {"tessera, one homography a frame": plane}
    scores: FrameScores = {
        "data_set": args.frames.parent.name if args.frames.name == "frames" else args.frames.name,
        "frames": len(result.frames),
        "registered": result.registered_count,
        "components": len(result.components),
        "model": result.motion_model,
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
        plain = {index: visible(image) for index, image in images.items()}
        ways |= {
            "SIFT chain": chained(sift_chain(list(plain.values()))),
            PAIRS: sift_pairs(plain),
        }
    straight = straightened_frames(images, meshes_of(result))
    scores["ncc"] = {MOSAIC: ncc_table(straight, plane, inside)} | {
        name: ncc_table(images, way, inside) for name, way in ways.items()
    }
    if args.backward:
        scores["backward_px"] = _backward(
            args, result, config=config, mask=mask, inside=inside, progress=progress
        )
    if args.truth is not None:
        scores["truth"] = score_against_truth(result, read_truth(args.truth), size_px=size)
    return scores


def frames_markdown(scores: FrameScores) -> str:
    """Markdown list of the scores of one sequence."""
    lines = [
        f"{scores['data_set']}: {scores['registered']} of {scores['frames']} frames registered in "
        f"{scores['components']} mosaic(s), model {scores['model']}, {scores['width_px']} x "
        f"{scores['height_px']} px.",
        "",
        *(f"- {name}: mean NCC {_distance_text(values)}" for name, values in scores["ncc"].items()),
    ]
    if "reference_px" in scores:
        cells = ", ".join(f"{px} at {d}" for d, px in scores["reference_px"].items())
        lines += ["", f"Median corner distance to the given reference, px: {cells}."]
    if "backward_px" in scores:
        lines += ["", "Median distance between forward and backward run, px:"]
        for title, values in scores["backward_px"].items():
            lines.append(f"- {title}: " + ", ".join(f"{px} at {d}" for d, px in values.items()))
    targets = target_lines(scores["ncc"], scores.get("backward_px", {}).get(IN_VIEW, {}))
    if targets:
        lines += ["", "Targets and results:", *targets]
    return "\n".join(lines) + "\n"


def _distance_text(values: Mapping[str, float | None]) -> str:
    """Text of the mean NCC at each distance, ``none`` where no two frames overlap."""
    cells = [(d, values[str(d)]) for d in DISTANCES]
    return ", ".join(
        f"none at {d}" if value is None or np.isnan(value) else f"{value:.3f} at {d}"
        for d, value in cells
    )


def _backward(
    args: argparse.Namespace,
    forward: MosaicResult,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    inside: ArrayBool,
    progress: Progress,
) -> dict[str, dict[str, float]]:
    """Compare this run with one over the reversed frames, with meshes and without.

    Points are compared in the view and at the frames' corners, where a mesh only extrapolates.
    """
    frames = [f.rgb for f in open_source(args.frames).frames() if f.rgb is not None]
    with tempfile.TemporaryDirectory() as folder:
        result = build_mosaic(
            frames[::-1], Path(folder) / "m", config=config, mask=mask, progress=progress
        )
    last = len(frames) - 1
    corners = frame_corners((inside.shape[1], inside.shape[0]))
    scores: dict[str, dict[str, float]] = {}
    for bent, suffix in ((True, ""), (False, ", one homography a frame")):
        forward_maps = placed_maps(forward, bent=bent)
        backward_maps = {
            last - index: maps for index, maps in placed_maps(result, bent=bent).items()
        }
        in_view = run_agreement(forward_maps, backward_maps, view_points(inside), inside=inside)
        scores |= {f"{IN_VIEW}{suffix}": in_view}
        scores |= {
            f"at the frames' corners{suffix}": run_agreement(forward_maps, backward_maps, corners)
        }
    return scores


def read_mask(path: Path) -> npt.NDArray[Any]:
    """Read a mask image as (H, W) uint8; raises ``BadInputError`` if it cannot be read."""
    pixels = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if pixels is None:
        raise BadInputError(f"{path.name}: expected a mask image")
    return np.asarray(pixels)


def _frame_size(frames: Path) -> tuple[int, int]:
    for frame in open_source(frames).frames():
        if frame.rgb is not None:
            return frame.rgb.shape[1], frame.rgb.shape[0]
    raise BadInputError("frames: none could be read")
