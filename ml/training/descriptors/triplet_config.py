"""Configuration of the training of ``triplet``."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.triplet_cnn import TripletCnnConfig
from ml.training.descriptors.triplets import PerspectiveConfig
from ml.training.descriptors.views import StillsConfig, StillViewConfig


@dataclass(frozen=True, slots=True)
class TripletConfig:
    """One run of ``triplet``."""

    name: str = "triplet"  # of the descriptor
    version: str = "2.0"  # of the descriptor
    ratio: float = 0.95  # ratio test that goes with it
    network: TripletCnnConfig = field(default_factory=TripletCnnConfig)
    stills: StillsConfig = field(default_factory=StillsConfig)
    perspective: PerspectiveConfig = field(default_factory=PerspectiveConfig)
    light: StillViewConfig = field(default_factory=StillViewConfig)  # its photometric part
    triplets: int = 2048  # of a data set; the paper has 300 key points, "over 15000" triplets
    epochs: int = 80  # 250 in section 3.2
    renew_every: int = 2  # epochs a data set is used for; 50 in section 3.2
    batch: int = 256  # 36 in section 3.2; more of them offer more negatives to choose from
    by_still: bool = True  # batches of patches of few stills; False: of any
    mined: bool = True  # the negative is the nearest of the batch; False: drawn, as in section 2.2
    learning_rate: float = 0.001  # section 3.2
    decay: bool = True  # to zero by a cosine; section 3.2 calls its rate the initial one
    adam: bool = True  # False: gradient descent with ``momentum``, as in section 3.2
    momentum: float = 0.9  # section 3.2
    hinge: bool = True  # see losses.adaptive_triplet; the paper prints none
    min_margin: float = 1.0  # see there; a quarter of the largest squared distance
    settled: float = 1.0  # share of easy triplets from which on there is no minimum margin
    checkpoint_every: int = 2  # epochs
    seed: int = 0
