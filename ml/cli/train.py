"""``python -m ml train <scheme>``: train a network by one configuration."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping

from ml.cli.lazy import Registry, add_lazy_parsers, module_of
from ml.cli.output import terminal_progress
from ml.gpu import device_override
from ml.types import no_progress

SCHEMES: Registry = {
    "default": ("ml.training.tessera.command", "the default key point descriptor, tessera"),
    "triplet": (
        "ml.training.descriptors.triplet",
        "the triplet descriptor, or its tuning to one sequence",
    ),
    "cnn": ("ml.training.descriptors.cnn", "the CNN descriptor, by contrast across two views"),
    "graph": ("ml.training.descriptors.graph", "the graph descriptor over the CNN's features"),
    "patches": (
        "ml.training.roi.patches.command",
        "the patch encoder, without labels, by views of patches",
    ),
    "roi": (
        "ml.training.roi.encoder.command",
        "the ROI encoder, without labels, by SimCLR over graphs",
    ),
    "arrangement": (
        "ml.training.roi.arrangement.command",
        "a graph part for the slide encoder, by the arrangement of tissue",
    ),
    "endoscopy": ("ml.training.roi.endoscopy", "the ROI encoder of frames and mosaics"),
    "vit": ("ml.training.vit.command", "the adapted vision transformer, by novel-view synthesis"),
    "metric": ("ml.training.roi.lab_metric", "a metric from a lab's own labels, for an encoder"),
    "calibration": ("ml.training.roi.calibration", "calibrate the distances of an encoder"),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``train`` with its schemes."""
    parser = subparsers.add_parser("train", help="train a network by a named scheme")
    for scheme in add_lazy_parsers(parser, dest="scheme", registry=SCHEMES):
        scheme.add_argument(
            "--device", help="auto, cpu, cuda or cuda:N (by default the value of TESSERA_DEVICE)"
        )


def run(args: argparse.Namespace) -> Mapping[str, object]:
    """Train by command line arguments; the same command resumes an interrupted run.

    Raises:
        MlError: a bad configuration, or sources that cannot be trained on.
    """
    from ml.networks.device import select_device  # loads torch: ``--help`` needs none
    from ml.training.common.peers import joined

    with device_override(args.device), joined() as peers:
        select_device()  # an unknown device is refused before anything is read
        if peers.rank == 0:
            with terminal_progress() as progress:
                return dict(module_of(SCHEMES, args.scheme).run(args, progress))
        try:
            module_of(SCHEMES, args.scheme).run(args, no_progress)
        finally:
            shutil.rmtree(args.out / f".rank-{peers.rank}", ignore_errors=True)
        return {"rank": peers.rank}
