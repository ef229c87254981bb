"""Configuration of the patch encoder's training."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.patch_cnn import PatchCnnConfig
from ml.training.roi.encoder_config import SECTIONS, SLIDES, TILES
from ml.training.roi.patch_views import PatchViewConfig


@dataclass(frozen=True, slots=True)
class PatchTrainConfig:
    """One training run of the patch encoder."""

    name: str = "patch-cnn"  # of the encoder
    version: str = "1.0"  # of the encoder
    sources: tuple[str, ...] = (*SLIDES, SECTIONS, *TILES)  # files or folders in the data folder
    density: float = 1.5  # patches per patch area
    min_tissue: float = 0.3  # share of tissue a patch needs
    scheme: str = "vicreg"  # see ssl.SCHEMES
    steps: int = 700
    batch: int = 64  # patches a step, two views each
    learning_rate: float = 1e-3  # AdamW, warmed up, then a half cosine
    warmup: int = 20  # steps
    weight_decay: float = 1e-4  # AdamW
    head_hidden: int = 256
    head_dim: int = 128
    temperature: float = 0.2  # of simclr
    checkpoint_every: int = 50  # steps
    seed: int = 0
    view: PatchViewConfig = field(default_factory=PatchViewConfig)
    network: PatchCnnConfig = field(default_factory=PatchCnnConfig)
