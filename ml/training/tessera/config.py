"""Configuration of the training of the default key point descriptor."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.tessera_descriptor import TesseraConfig
from ml.training.tessera.pool import PoolConfig
from ml.training.tessera.views import TesseraViewConfig


@dataclass(frozen=True, slots=True)
class TesseraTrainConfig:
    """One training run of the default descriptor."""

    name: str = "tessera"
    version: str = "2.0"
    source: str = "endoscopy/laparoscopy-stills"  # folder in the data folder
    held_out: tuple[str, ...] = ("00009", "00011")  # operations that never train: file prefixes
    blank: tuple[float, ...] = (0.0, 0.88, 0.3, 1.0, 0.84, 0.9, 1.0, 1.0)  # burnt-in text: boxes
    rounds: int = 28  # each renews the pool
    passes: int = 1  # over the pool of a round
    batch: int = 384  # pairs a step
    group: int = 96  # pairs of one still in a batch
    learning_rate: float = 3e-3  # AdamW, warmed up, then a half cosine
    warmup: int = 40  # steps
    weight_decay: float = 1e-4
    near_px: float = 3.0  # closer points of a still are no negatives of each other
    temperature: float = 0.05  # of the contrastive loss
    bfloat16: bool = True  # convolutions in bfloat16 while training
    seed: int = 0
    pool: PoolConfig = field(default_factory=PoolConfig)
    view: TesseraViewConfig = field(default_factory=TesseraViewConfig)
    network: TesseraConfig = field(default_factory=TesseraConfig)
