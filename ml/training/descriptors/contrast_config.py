"""Configuration of the cross-view contrastive training of ``cnn`` and ``graph``."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.keypoint_cnn import KeypointCnnConfig
from ml.networks.keypoint_gnn import KeypointGnnConfig
from ml.training.descriptors.views import StillsConfig, StillViewConfig


@dataclass(frozen=True, slots=True)
class ContrastConfig:
    """One run of ``cnn`` or ``graph``."""

    name: str = "cnn"  # of the descriptor
    version: str = "1.0"  # of the descriptor
    ratio: float = 0.95  # ratio test that goes with it
    has_graph: bool = False  # the attention network on top, or only the CNN
    train_cnn: bool = True  # False: the CNN stays as it was loaded
    network: KeypointCnnConfig = field(default_factory=KeypointCnnConfig)
    graph: KeypointGnnConfig = field(default_factory=KeypointGnnConfig)
    stills: StillsConfig = field(default_factory=StillsConfig)
    view: StillViewConfig = field(default_factory=StillViewConfig)
    neighbours: int = 10  # nodes of a mini-batch: one and its neighbours (section 4.2)
    far: float = 0.0  # share of the neighbours from anywhere in the image; the rest are the nearest
    temperature: float = 0.08  # tau of equation 5 (section 4.2)
    projection_dim: int = 128  # of the projection under the cosine
    learning_rate: float = 5e-4  # Adam (section 4.2)
    decay: bool = True  # to zero by a cosine; False keeps it constant, as in the paper
    pairs: int = 1  # still and view pairs a step
    min_share: float = 0.5  # of the nodes a pair keeps, at random; 1 keeps all
    jitter_px: float = 0.5  # deviation of a view's points from their true position; 0 in the paper
    bank: int = 0  # pairs that a frozen CNN describes once, to be used again; 0: always new ones
    steps: int = 430
    checkpoint_every: int = 50  # steps
    seed: int = 0
