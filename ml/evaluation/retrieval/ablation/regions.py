"""Graphs of labelled regions, whose features are computed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ml.errors import BadInputError, EmptyRegionError
from ml.evaluation.retrieval.manifest import MANIFEST, RoiRecord, read_manifest
from ml.evaluation.retrieval.regions import region_image
from ml.files import write_text
from ml.roi.embed import RegionOfImage, RoiEncoder
from ml.roi.graph import RoiGraph
from ml.training.roi.arrangement.regions import read_graphs, write_graphs
from ml.training.roi.encoder.graph import subgraph
from ml.training.roi.patches.blocks import TRAINING_USE, read_organ_regions
from ml.types import Progress

STAIN = "H&E"
MPP = (0.5, 2.0)
"""Least and largest microns per pixel of a region of the atlas: 0.25 to 1 mm across."""
MIN_VERTICES, MAX_VERTICES = 2, 20
"""Patches of a region: a view keeps two; the first points of a Sobol sequence are even."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set of the experiment."""

    name: str
    path: str  # a table of tiles (CSV), or a folder with rois.csv, relative to the data folder
    mpp: float | None = None  # replaces the scale of a folder's regions
    test_gallery: bool = False  # whether galleries hold regions of the test fold only, as in the
    # paper; if not, they hold the regions of all other patients


@dataclass(frozen=True, slots=True)
class LabelledGraphs:
    """Regions of a data set.

    Attributes:
        records: patient, label and slide of each.
        graphs: vertices in the encoder's learned metric, of unit variance.
        dropped: number of regions with too little tissue for a graph.
        key: digest of the regions and the encoder.
    """

    records: tuple[RoiRecord, ...]
    graphs: tuple[RoiGraph, ...]
    dropped: int
    key: str


_Source = tuple[RoiRecord, RegionOfImage]


def atlas_regions(table: Path, progress: Progress) -> Iterator[_Source]:
    """Regions of the atlas' training patients, labelled by organ."""
    for region in read_organ_regions(
        table, use=TRAINING_USE, stain=STAIN, mpp=MPP, progress=progress
    ):
        record = RoiRecord(Path(region.slide), region.patient, region.organ, region.mpp, None)
        yield record, (region.pixels, None, region.mpp)


def manifest_regions(folder: Path, mpp: float | None, progress: Progress) -> Iterator[_Source]:
    """Regions of a folder with ``rois.csv``, at ``mpp`` microns per pixel if given."""
    records = read_manifest(folder)
    for number, record in enumerate(records, 1):
        image = region_image(record)
        yield record, (image.pixels, image.polygon, mpp or image.mpp)
        progress(number, len(records), folder.name)


def labelled_graphs(
    data_set: DataSet, encoder: RoiEncoder, data: Path, *, cache: Path, progress: Progress
) -> LabelledGraphs:
    """Read or compute the graphs of a data set.

    Args:
        data: folder that paths start from.
        cache: folder of the features.
    Raises:
        BadInputError: missing files, or no region with tissue.
    """
    path = data / data_set.path
    is_table = path.suffix == ".csv"
    table = path if is_table else path / MANIFEST
    if not table.is_file():
        raise BadInputError(f"{data_set.path}: no such data set")
    digest = hashlib.sha256(f"{encoder.config_hash} {STAIN} {MPP} {data_set.mpp} ".encode())
    digest.update(table.read_bytes())
    key = digest.hexdigest()[:16]
    features, about = cache / f"regions-{key}.npz", cache / f"regions-{key}.json"
    if not (features.is_file() and about.is_file()):
        regions = (
            atlas_regions(path, progress)
            if is_table
            else manifest_regions(path, data_set.mpp, progress)
        )
        _compute(regions, encoder, features, about)
    stored = json.loads(about.read_text(encoding="utf-8"))
    graphs = [
        subgraph(graph, np.arange(min(len(graph), MAX_VERTICES)))
        for graph in read_graphs(features, edge_px=encoder.config.edge_px)
    ]
    return LabelledGraphs(
        tuple(
            RoiRecord(Path(image), patient, label, mpp, None)
            for image, patient, label, mpp in stored["records"]
        ),
        tuple(_apply_metric(graph, encoder) for graph in graphs),
        stored["dropped"],
        f"{key} {MAX_VERTICES}",
    )


def _compute(regions: Iterator[_Source], encoder: RoiEncoder, features: Path, about: Path) -> None:
    records, graphs, dropped = [], [], 0
    for record, region in regions:
        try:
            graph = encoder.image_graph(region)
        except EmptyRegionError:
            dropped += 1
            continue
        if len(graph) < MIN_VERTICES:
            dropped += 1
            continue
        records.append([str(record.image), record.patient, record.label, record.mpp])
        graphs.append(graph)
    if not graphs:
        raise BadInputError("no region with tissue")
    write_graphs(features, tuple(graphs))
    write_text(about, json.dumps({"records": records, "dropped": dropped}))


def _apply_metric(graph: RoiGraph, encoder: RoiEncoder) -> RoiGraph:
    with torch.inference_mode():
        vertices = encoder.network.vertices(torch.from_numpy(graph.x)).numpy()
    # The metric has a mean squared length of one.
    scaled = np.asarray(vertices * np.sqrt(vertices.shape[1]), np.float32)
    return RoiGraph(scaled, graph.pos, graph.edge_index)
