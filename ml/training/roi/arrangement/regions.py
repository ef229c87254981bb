"""Graphs of collages of patients of the atlas, cached."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.files import write_npz
from ml.roi.embed import RoiEncoder
from ml.roi.graph import RoiGraph, build_graph
from ml.training.roi.arrangement.collages import MIN_PIECES, collage, pieces_of
from ml.training.roi.arrangement.config import ArrangementConfig
from ml.training.roi.patches.blocks import TRAINING_USE, Block, read_patients
from ml.types import ArrayI64, Progress


@dataclass(frozen=True, slots=True)
class TrainingRegions:
    """Regions of several patients.

    Attributes:
        graphs: Graphs with raw features.
        patients: (R,) int64, patient of each region, ascending.
    """

    graphs: tuple[RoiGraph, ...]
    patients: ArrayI64

    def part(self, config: ArrangementConfig, *, validation: bool) -> TrainingRegions:
        """Regions of the patients for training, or of those kept for validation."""
        names = np.unique(self.patients)
        in_part = np.isin(self.patients, names[:: config.validation_every]) == validation
        graphs = [graph for graph, is_kept in zip(self.graphs, in_part, strict=True) if is_kept]
        return TrainingRegions(tuple(graphs), self.patients[in_part])


def training_regions(
    config: ArrangementConfig,
    encoder: RoiEncoder,
    data: Path,
    *,
    cache: Path | None,
    progress: Progress,
) -> TrainingRegions:
    """Read or compute the graphs of collages of the atlas' training patients.

    Args:
        encoder: Its patch features are used.
        cache: Folder of the features; None for no cache.
    Raises:
        BadInputError: See ``read_patients``.
    """
    key = f"{encoder.config_hash} {config.atlas} {config.collages} {config.collage_seed}"
    path = None
    if cache is not None:
        path = cache / f"collages-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
        if path.is_file():
            return _read(path, encoder.config.edge_px)
    blocks = read_patients(data / config.atlas, use=TRAINING_USE, progress=progress)
    graphs, patients = [], []
    for patient, patient_blocks in enumerate(blocks.values()):
        pieces = pieces_of(patient_blocks)
        if len(pieces) < MIN_PIECES:
            continue
        rng = np.random.default_rng((config.collage_seed, patient))
        for _ in range(config.collages):
            graphs.append(encoder.image_graph((collage(pieces, rng), None, 1.0)))
            patients.append(patient)
        progress(patient + 1, len(blocks), "features of collages")
    regions = TrainingRegions(tuple(graphs), np.array(patients, np.int64))
    if path is not None:
        write_graphs(path, regions.graphs, patients=regions.patients)
    return regions


def validation_blocks(
    config: ArrangementConfig, data: Path, progress: Progress
) -> dict[str, tuple[Block, ...]]:
    """Tissue of the atlas' training patients that are kept for validation."""
    blocks = read_patients(data / config.atlas, use=TRAINING_USE, progress=progress)
    usable_blocks = {
        name: patient_blocks
        for name, patient_blocks in blocks.items()
        if len(pieces_of(patient_blocks)) >= MIN_PIECES
    }
    return {name: usable_blocks[name] for name in list(usable_blocks)[:: config.validation_every]}


def write_graphs(path: Path, graphs: tuple[RoiGraph, ...], **extra_arrays: ArrayI64) -> None:
    """Write features and positions of graphs, atomically."""
    write_npz(
        path,
        {
            "x": np.concatenate([graph.x for graph in graphs]),
            "pos": np.concatenate([graph.pos for graph in graphs]),
            "sizes": np.array([len(graph) for graph in graphs], np.int64),
            **extra_arrays,
        },
    )


def read_graphs(path: Path, *, edge_px: float) -> tuple[RoiGraph, ...]:
    """Read the output of ``write_graphs``; edges are made again."""
    with np.load(path, allow_pickle=False) as file:
        ends = np.cumsum(file["sizes"])[:-1]
        parts = zip(np.split(file["x"], ends), np.split(file["pos"], ends), strict=True)
        return tuple(build_graph(x, pos.astype(np.float64), edge_px=edge_px) for x, pos in parts)


def _read(path: Path, edge_px: float) -> TrainingRegions:
    with np.load(path, allow_pickle=False) as file:
        patients = file["patients"]
    return TrainingRegions(read_graphs(path, edge_px=edge_px), patients)
