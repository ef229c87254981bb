"""``python -m ml train calibration``: distances between unrelated regions, for an encoder."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from ml.errors import BadInputError
from ml.roi.calibration import FULL_WINDOW, calibration_path, fit_calibration, write_calibration
from ml.roi.load import load_encoder
from ml.types import Progress

_PICTURES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".svs", ".ndpi", ".mrxs", ".bif", ".scn"}


class CalibrationSummary(TypedDict):
    """Result of ``run``.

    Attributes:
        regions: number of regions.
        unrelated_pairs: number of measured distances.
        close_below, median: 5 % and 50 % quantiles of the distances.
        written: name of the file.
    """

    encoder: str
    config_hash: str
    groups: list[str]
    regions: int
    unrelated_pairs: int
    close_below: float
    median: float
    written: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml train calibration``."""
    parser.add_argument("weights", type=Path, help=".safetensors file of the encoder")
    parser.add_argument(
        "--groups",
        nargs="+",
        required=True,
        metavar="NAME=PATH,PATH",
        help="unrelated tissue: slides, stills or folders of them; two groups or more",
    )
    parser.add_argument("--regions", type=int, default=40, help="random regions of each group")
    parser.add_argument(
        "--window",
        nargs=4,
        type=float,
        default=FULL_WINDOW,
        metavar=("LEFT", "TOP", "RIGHT", "BOTTOM"),
        help="for endoscopic stills: the part without burnt-in text, as shares of their sides",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="default: beside the weights")


def run(args: argparse.Namespace, progress: Progress) -> CalibrationSummary:
    """Write the calibration of an encoder; see ``fit_calibration``."""
    if args.regions < 1:
        raise BadInputError("--regions: expected at least 1")
    left, top, right, bottom = args.window
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise BadInputError(f"--window: expected 0 <= left < right <= 1, and so on: {args.window}")
    encoder = load_encoder(str(args.weights))
    calibration = fit_calibration(
        encoder,
        parse_sources(args.groups),
        regions_per_group=args.regions,
        seed=args.seed,
        window=(left, top, right, bottom),
        progress=progress,
    )
    out = args.out or calibration_path(args.weights)
    write_calibration(out, calibration)
    close = calibration.distances[calibration.probabilities.index(0.05)]
    return {
        "encoder": encoder.name,
        "config_hash": encoder.config_hash,
        "groups": list(calibration.groups),
        "regions": calibration.regions,
        "unrelated_pairs": calibration.pairs,
        "close_below": close,
        "median": calibration.distances[calibration.probabilities.index(0.5)],
        "written": out.name,
    }


def parse_sources(words: Iterable[str]) -> dict[str, tuple[Path, ...]]:
    """Parse ``["lung=folder", "skin=a.svs,b.svs"]``; folders are searched recursively.

    Raises:
        BadInputError: a word of another form, a path that is not there, a folder without images.
    """
    groups: dict[str, tuple[Path, ...]] = {}
    for word in words:
        name, equals, paths = word.partition("=")
        if not (name and equals and paths):
            raise BadInputError(f"groups: expected NAME=PATH,PATH..., got {word!r}")
        groups[name] = tuple(file for text in paths.split(",") for file in _files(Path(text)))
    return groups


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInputError(f"groups: {path.name!r} is not there")
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in _PICTURES)
    if not files:
        raise BadInputError(f"groups: no images in {path.name!r}")
    return files
