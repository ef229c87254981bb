"""``python -m ml embed``: regions of a slide or image, or of a data set, into vectors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from ml.cli.output import terminal_progress
from ml.errors import BadInputError
from ml.types import Progress


class EmbeddedRegion(TypedDict):
    """One region: its image, its vector, and in a data set its patient and label."""

    image: str
    patient: NotRequired[str]
    label: NotRequired[str]
    n_patches: int
    seconds: float
    stain: Any
    vector: Any


class EmbedReport(TypedDict):
    """Regions, and the encoder that embedded them."""

    encoder: str
    version: str
    config_hash: str
    dim: int
    regions: list[EmbeddedRegion]


class _Known(TypedDict, total=False):
    patient: str
    label: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``embed``."""
    parser = subparsers.add_parser("embed", help="embed regions of interest into vectors")
    parser.add_argument("source", type=Path, help="slide or image, or a folder with rois.csv")
    parser.add_argument("--polygon", metavar="WKT", help="region as WKT in level-0 pixels")
    parser.add_argument("--mpp", type=float, help="microns per level-0 pixel, if the file is wrong")
    parser.add_argument("--encoder", default="default", help="name, or a .safetensors file")
    parser.add_argument("--out", type=Path, help="write the vectors as .npy (N, D)")


def run(args: argparse.Namespace) -> EmbedReport:
    """Embed one region, or every region of a data set.

    Raises:
        MlError: the source, the polygon or the encoder cannot be used.
    """
    from ml.roi import load_encoder

    encoder = load_encoder(args.encoder)
    with terminal_progress() as progress:
        rows, vectors = _embed_all(args, encoder, progress)
    if args.out is not None:
        with args.out.open("wb") as file:
            np.save(file, np.stack(vectors))
    return {
        "encoder": encoder.name,
        "version": encoder.version,
        "config_hash": encoder.config_hash,
        "dim": encoder.dim,
        "regions": rows,
    }


def describe(result: EmbedReport) -> str:
    """One line per region."""
    lines = [f"{result['encoder']} {result['version']}, {result['dim']} dimensions"]
    lines += [
        f"{row['image']}: {row['n_patches']} patches, {row['seconds']:.2f} s"
        for row in result["regions"]
    ]
    return "\n".join(lines)


def _embed_all(
    args: argparse.Namespace, encoder: Any, progress: Progress
) -> tuple[list[EmbeddedRegion], list[Any]]:
    from ml.imaging.slides.slide import open_slide

    jobs = _jobs(args)
    rows: list[EmbeddedRegion] = []
    vectors = []
    for number, (image, polygon, mpp, stain) in enumerate(jobs, 1):
        with open_slide(image) as slide:
            embedded = encoder.embed_region(slide, polygon, mpp=mpp)
        vectors.append(embedded.vector)
        rows.append(
            {
                "image": image.name,
                **stain,
                "n_patches": embedded.n_patches,
                "seconds": embedded.seconds,
                "stain": embedded.stain,
                "vector": embedded.vector,
            }
        )
        progress(number, len(jobs), "regions")
    return rows, vectors


def _jobs(
    args: argparse.Namespace,
) -> list[tuple[Path, BaseGeometry | None, float | None, _Known]]:
    if not args.source.is_dir():
        if not args.source.is_file():
            raise FileNotFoundError(2, "No such file", str(args.source))
        return [(args.source, _polygon(args.polygon), args.mpp, {})]
    from ml.evaluation.retrieval.manifest import read_manifest

    if args.polygon is not None:
        raise BadInputError("--polygon is for a single image; a data set has its own geometries")
    return [
        (r.image, r.geometry, r.mpp or args.mpp, {"patient": r.patient, "label": r.label})
        for r in read_manifest(args.source)
    ]


def _polygon(text: str | None) -> BaseGeometry | None:
    if text is None:
        return None
    try:
        return shapely.from_wkt(text)
    except shapely.GEOSException as error:
        raise BadInputError(f"--polygon is not WKT: {text[:40]!r}") from error
