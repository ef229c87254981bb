"""Configuration of the training by arrangement."""

from __future__ import annotations

from dataclasses import dataclass

from ml.training.roi.patches.config import ATLAS

ARCHITECTURES = ("gcn", "graphconv", "diffpool")
"""Section III-C of the retrieval paper; ``graphconv`` is ``topk`` of ``graph_encoders``."""


@dataclass(frozen=True, slots=True)
class ArrangementConfig:
    """One training run."""

    name: str = "roi-graph"  # of the encoder
    version: str = "1.0"  # of the encoder
    architecture: str = "gcn"  # see ARCHITECTURES
    atlas: str = ATLAS  # table of tiles, relative to the data folder
    collages: int = 6  # regions of each patient
    collage_seed: int = 0  # of the regions, the same for all runs
    validation_every: int = 6  # one patient in so many is held out to choose the architecture
    hidden_dim: int = 64
    out_dim: int = 64
    steps: int = 600
    checkpoint_every: int = 100  # steps
    batch: int = 32  # regions a step
    cut: tuple[float, float] = (0.1, 0.5)  # share of a region that a view loses on one side
    drop: tuple[float, float] = (0.1, 0.5)  # share of the remaining vertices that it loses
    grids: tuple[int, ...] = (2, 3, 4)  # sides of the grids whose cells a negative exchanges
    temperature: float = 0.1  # tau of equation 1
    learning_rate: float = 1e-3  # AdamW
    weight_decay: float = 1e-4  # AdamW
    context_weight: float = 0.35  # length of the context part at the start; it is learned
    seed: int = 0
