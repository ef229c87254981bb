"""``python -m ml evaluate <protocol>``: score retrieval, matching, epipolar geometry or mosaics."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ml.cli.lazy import Registry, add_lazy_parsers, module_of
from ml.cli.output import describe_result, terminal_progress

PROTOCOLS: Registry = {
    "retrieval": ("ml.evaluation.retrieval.command", "similar regions of other patients"),
    "places": (
        "ml.evaluation.retrieval.places.command",
        "the same tissue in later frames of a scope",
    ),
    "tissue": ("ml.evaluation.retrieval.tissue", "search for similar tissue with a whole slide"),
    "splits": ("ml.evaluation.retrieval.splits", "patient-disjoint folds of similar class shares"),
    "settings": (
        "ml.evaluation.retrieval.settings",
        "settings of graph networks, chosen on one fold and tested on another",
    ),
    "matching": ("ml.evaluation.matching.command", "key point matches against known transforms"),
    "epipolar": ("ml.evaluation.epipolar.command", "key point matches against known camera poses"),
    "mosaic": ("ml.evaluation.mosaic.command", "registration of a video's frames"),
    "revealing": ("ml.evaluation.revealing.command", "text, faces and frames outside the body"),
    "plots": (
        "ml.evaluation.epipolar.drawn",
        "the plot of the epipolar scores, from the JSON that was written",
    ),
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
    """Score.

    Raises:
        MlError: data or options that cannot be scored.
    """
    with terminal_progress() as progress:
        result: Mapping[str, object] = module_of(PROTOCOLS, args.protocol).run(args, progress)
    return {"protocol": args.protocol, **result}


def describe(result: Mapping[str, object]) -> str:
    """The protocol's own table, or one line a value."""
    module = module_of(PROTOCOLS, str(result["protocol"]))
    return str(getattr(module, "describe", describe_result)(result))
