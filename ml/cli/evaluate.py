"""``python -m ml evaluate <protocol>``: score retrieval, matching, epipolar geometry or mosaics."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ml.cli.lazy import Registry, add_lazy_parsers, module_of
from ml.cli.output import describe_result, terminal_progress

PROTOCOLS: Registry = {
    "retrieval": ("ml.evaluation.retrieval.command", "similar regions of other patients"),
    "query": (
        "ml.evaluation.retrieval.suite.query_command",
        "expansion and diffusion of queries over the sets of the suite",
    ),
    "places": (
        "ml.evaluation.retrieval.places.command",
        "the same tissue in later frames of a scope",
    ),
    "tissue": ("ml.evaluation.retrieval.tissue", "search for similar tissue with a whole slide"),
    "ablation": (
        "ml.evaluation.retrieval.ablation.command",
        "graph networks with and without labels against the mean",
    ),
    "arrangement": (
        "ml.evaluation.retrieval.arrangement",
        "graph networks against the mean on large regions",
    ),
    "matching": ("ml.evaluation.matching.command", "key point matches against known transforms"),
    "epipolar": ("ml.evaluation.epipolar.command", "key point matches against known camera poses"),
    "mosaic": ("ml.evaluation.mosaic.command", "registration of a video's frames"),
    "phi": ("ml.evaluation.phi.command", "identifying text, faces and frames outside the body"),
    "modality": ("ml.evaluation.modality.command", "histology or endoscopy, by an image"),
    "card": (
        "ml.evaluation.common.card",
        "the table of a model card, from the JSON that was written",
    ),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``evaluate`` with its protocols."""
    parser = subparsers.add_parser("evaluate", help="score a part of ml by a protocol")
    add_lazy_parsers(parser, dest="protocol", registry=PROTOCOLS)


def run(args: argparse.Namespace) -> Mapping[str, object]:
    """Score by the chosen protocol.

    Raises:
        MlError: data or options that cannot be scored.
    """
    with terminal_progress() as progress:
        result: Mapping[str, object] = module_of(PROTOCOLS, args.protocol).run(args, progress)
    return {"protocol": args.protocol, **result}


def describe(result: Mapping[str, object]) -> str:
    """Text of the result: the protocol's tables, or one line a value."""
    module = module_of(PROTOCOLS, str(result["protocol"]))
    return str(getattr(module, "describe", describe_result)(result))
