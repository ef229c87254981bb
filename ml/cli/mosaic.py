"""``python -m ml mosaic FRAMES OUT``: a mosaic from a video or a folder of frames."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import TypedDict

from ml.cli.match import read_image
from ml.cli.output import terminal_progress
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.result import MosaicQuality


class ComponentSummary(TypedDict):
    """One connected piece: its file, and how many frames it holds."""

    pyramid: str
    registered: int


class MosaicSummary(TypedDict):
    """Result of ``run``.

    Attributes:
        frames: number of frames.
        registered: of those placed.
        reasons: number of frames by reason.
        pyramid, manifest: names in the folder.
    """

    width_px: int
    height_px: int
    motion_model: str
    frames: int
    registered: int
    reasons: dict[str, int]
    seconds: float
    components: list[ComponentSummary]
    gaps: list[str]
    quality: MosaicQuality
    pyramid: str
    manifest: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``mosaic``."""
    parser = subparsers.add_parser("mosaic", help="build a mosaic from a video or frames")
    parser.add_argument("frames", type=Path, help="a folder of images in natural order, or a video")
    parser.add_argument("out", type=Path, help="folder for mosaic.tif, preview.jpg, mosaic.json")
    parser.add_argument("--mask", type=Path, help="image that is bright where the scope sees")
    parser.add_argument(
        "--motion-model", default="auto", help="translation, similarity, affine, homography or auto"
    )
    parser.add_argument("--descriptor", default=MosaicConfig().descriptor)
    parser.add_argument("--step", type=int, default=1, help="use every step-th frame")
    parser.add_argument(
        "--work-dir", type=Path, help="keep finished stages here; another run continues from them"
    )
    parser.add_argument(
        "--distortion", type=float, nargs="+", default=(), help="fx fy cx cy [k1 k2 p1 p2 [k3]], px"
    )


def run(args: argparse.Namespace) -> MosaicSummary:
    """Build a mosaic by command line arguments."""
    config = MosaicConfig(
        motion_model=args.motion_model,
        descriptor=args.descriptor,
        step=args.step,
        distortion=tuple(args.distortion),
    )
    mask = None if args.mask is None else read_image(args.mask)
    started = time.perf_counter()
    with terminal_progress() as progress:
        result = build_mosaic(
            args.frames,
            args.out,
            config=config,
            mask=mask,
            progress=progress,
            work_dir=args.work_dir,
        )
    return {
        "width_px": result.width_px,
        "height_px": result.height_px,
        "motion_model": result.motion_model,
        "frames": len(result.frames),
        "registered": result.registered_count,
        "reasons": dict(Counter(frame.reason for frame in result.frames if frame.reason)),
        "seconds": round(time.perf_counter() - started, 2),
        "components": [
            {"pyramid": component.pyramid, "registered": component.registered_count}
            for component in result.components
        ],
        "gaps": [gap.text for gap in result.gaps],
        "quality": result.quality,
        "pyramid": result.path.name,
        "manifest": result.manifest.name,
    }
