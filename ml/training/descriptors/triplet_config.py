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
    version: str = "1.0"  # of the descriptor
    ratio: float = 0.95  # ratio test that goes with it
    network: TripletCnnConfig = field(default_factory=TripletCnnConfig)
    stills: StillsConfig = field(default_factory=StillsConfig)
    perspective: PerspectiveConfig = field(default_factory=PerspectiveConfig)
    light: StillViewConfig = field(default_factory=StillViewConfig)  # its photometric part
    triplets: int = 480  # of a data set; the paper has 300 key points, "over 15000" triplets
    epochs: int = 100  # 250 in section 3.2; five data sets here as there
    renew_every: int = 20  # epochs a data set is used for; 50 in section 3.2
    batch: int = 36  # section 3.2
    by_still: bool = False  # batches of patches of one still; False: of any
    all_negatives: bool = False  # the mean over all draws of a negative; False: one draw
    learning_rate: float = 0.01  # ten times section 3.2: with the hinge few triplets still count
    decay: bool = False  # to zero by a cosine; section 3.2 calls its rate the initial one
    momentum: float = 0.9  # section 3.2
    hinge: bool = True  # see losses.adaptive_triplet; the paper prints none
    checkpoint_every: int = 2  # epochs
    seed: int = 0
