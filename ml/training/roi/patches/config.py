"""Configuration of the patch encoder's training."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.patch_cnn import PatchCnnConfig
from ml.training.roi.patches.views import ViewConfig

ATLAS = "histology/atlas/index.csv"
"""Table of tiles; those whose ``use`` is "train" are trained on."""
SLIDES = (
    ("histology/slides/cmu-1-small-region.svs", "cmu-1", 0.5),
    ("histology/slides/tcga-cr-7395.svs", "tcga-cr-7395", 0.5),
    ("histology/slides/her2st-c2.tif", "her2st-c", 0.6),
    ("histology/slides/her2st-b-d2.tif", "her2st-b", 0.6),
    ("histology/sections", "her2st-c", 0.6),
    ("histology/lc25000-lung/lung_aca", "lc25000-aca", 0.8),
    ("histology/lc25000-lung/lung_n", "lc25000-n", 0.8),
    ("histology/lc25000-lung/lung_scc", "lc25000-scc", 0.8),
)
"""File or folder; patient (of LC25000 the class, for its patients are not known); microns per pixel
where the file says none, judged by the size of nuclei."""


@dataclass(frozen=True, slots=True)
class PatchTrainConfig:
    """One training run of the patch encoder."""

    name: str = "patch-cnn"  # of the encoder
    version: str = "2.0"  # of the encoder
    atlas: str = ATLAS  # table of tiles; empty for none
    slides: tuple[tuple[str, str, float], ...] = SLIDES
    held_out: tuple[tuple[str, str, float], ...] = ()  # as ``slides``: validation
    steps: int = 3600
    cooldown: int = 600  # last steps, in which the learning rate falls to 0
    batch: int = 192  # examples a step, two views each
    learning_rate: float = 1.5e-3  # AdamW, constant between warm-up and cooldown
    warmup: int = 100  # steps
    weight_decay: float = 1e-2  # AdamW
    head_hidden: int = 512
    head_dim: int = 128
    temperature: float = 0.15  # of SimCLR, and of the contrast of organs
    organ_weight: float = 0.0  # of the contrast of organs, see ssl.SimClr; 0 leaves labels unread
    patient_power: float = 0.5  # a patient is drawn by its number of blocks to this power
    average: float = 0.998  # decay of the moving average of the weights, which is saved
    checkpoint_every: int = 100  # steps
    seed: int = 0
    view: ViewConfig = field(default_factory=ViewConfig)
    network: PatchCnnConfig = field(default_factory=PatchCnnConfig)
