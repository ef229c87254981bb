"""``python -m ml encoder``: make an encoder from a published network, list those known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypedDict, final

from ml.errors import BadInputError


class ModelLine(TypedDict):
    """A foundation model: its recipe, and whether its weights are installed."""

    name: str
    repository: str
    licence: str
    gated: bool
    dim: int
    tile_px: int
    mpp: float
    unverified: str
    has_weights: bool


@final
class ModelList(TypedDict):
    """Result of ``encoder list``."""

    models: list[ModelLine]


@final
class WrittenEncoder(TypedDict):
    """Result of ``encoder make``."""

    out: str
    name: str
    version: str
    features: str
    dim: int
    tile_px: int
    mpp: float


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``encoder make`` and ``encoder list``."""
    parser = subparsers.add_parser("encoder", help="make an encoder from a published network")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser(
        "list",
        help="list foundation models: licence, magnification, whether their weights are here",
    )
    make = actions.add_parser("make", help="write an encoder that takes the mean of its patches")
    make.add_argument(
        "--features", required=True, help="hub:NAME (see list), hf:NAME-OR-FOLDER or timm:NAME"
    )
    make.add_argument("--out", type=Path, required=True, help="the .safetensors file to write")
    make.add_argument("--name", help="its name in results; by default the name of the features")
    make.add_argument("--version", default="1", help="version of the encoder (default 1)")
    make.add_argument("--kind", default="histology", choices=("histology", "endoscopy"))
    make.add_argument("--stain", default="none", help="none, nuclei or macenko (default none)")
    make.add_argument(
        "--mpp", type=float, help="microns per pixel of a patch; by default that of the recipe"
    )
    make.add_argument(
        "--tile", type=int, help="side of a patch in pixels; by default that of the recipe"
    )
    make.add_argument("--density", type=float, default=1.0, help="patches per patch area (1)")


def run(args: argparse.Namespace) -> ModelList | WrittenEncoder:
    """Make an encoder, or list the recipes.

    Raises:
        MlError: the features cannot be loaded, or a number makes no sense.
    """
    return _list_models() if args.action == "list" else _write_encoder(args)


def describe(result: ModelList | WrittenEncoder) -> str:
    """Text with a paragraph for each model, or with the written encoder."""
    if "models" not in result:
        return (
            f"{result['out']}: {result['name']} {result['version']}, {result['dim']} dimensions,"
            f" patches of {result['tile_px']} px at {result['mpp']} um/px"
        )
    lines = []
    for model in result["models"]:
        availability = "weights here" if model["has_weights"] else "no weights here"
        lines.append(
            f"hub:{model['name']}: {model['repository']}, {model['dim']} dimensions, patches of"
            f" {model['tile_px']} px at {model['mpp']} um/px, {availability}\n"
            f"    {model['licence']}"
        )
    return "\n".join(lines)


def _list_models() -> ModelList:
    from ml.errors import WeightsError
    from ml.roi.encoders.foundation import weights_file
    from ml.roi.encoders.recipes import RECIPES

    models: list[ModelLine] = []
    for recipe in RECIPES.values():
        try:
            has_weights = weights_file(recipe).is_file()
        except WeightsError:
            has_weights = False
        models.append(
            {
                "name": recipe.name,
                "repository": recipe.repository,
                "licence": recipe.licence,
                "gated": recipe.gated,
                "dim": recipe.dim,
                "tile_px": recipe.tile_px,
                "mpp": recipe.mpp,
                "unverified": recipe.unverified,
                "has_weights": has_weights,
            }
        )
    return {"models": models}


def _write_encoder(args: argparse.Namespace) -> WrittenEncoder:
    from ml.roi.load import ENDING
    from ml.roi.mean_encoder import save_mean_encoder

    if args.out.suffix != ENDING:
        raise BadInputError(f"--out: expected a name that ends in {ENDING}, got {args.out.name!r}")
    for option in ("mpp", "tile", "density"):
        value = getattr(args, option)
        if value is not None and not value > 0:
            raise BadInputError(f"--{option}: expected more than 0, got {value}")
    name = args.name or args.features.rpartition(":")[2].rpartition("/")[2]
    config = save_mean_encoder(
        args.out,
        args.features,
        name=name,
        version=args.version,
        kind=args.kind,
        stain=args.stain,
        mpp=args.mpp,
        tile_px=args.tile,
        density=args.density,
    )
    return {
        "out": str(args.out),
        "name": name,
        "version": args.version,
        "features": config.features,
        "dim": config.network.embedding_dim,
        "tile_px": config.sampling.patch_px,
        "mpp": config.sampling.target_mpp,
    }
