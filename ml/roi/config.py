"""Configuration of an ROI encoder."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.gcn import GcnConfig
from ml.networks.patch_cnn import PatchCnnConfig
from ml.networks.textons import TextonConfig
from ml.roi.graph import EDGE_PX
from ml.roi.measures.features import FEATURE_DIM, FEATURES_NAME
from ml.roi.sampling import SamplingConfig


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Configuration of a ``RoiEncoder``; with the weights it determines the vector of a region."""

    kind: str = "histology"  # training domain; any image can be embedded
    features: str = FEATURES_NAME  # patch encoder, see encoders.registry
    patch_cnn: PatchCnnConfig = field(default_factory=PatchCnnConfig)  # if in ``features``
    textons: TextonConfig = field(default_factory=TextonConfig)  # if in ``features``
    stain: str = "ruifrok"  # see stained.STAINS
    keep_strength: float = (
        0.0  # share of the staining strength that remains, see with_partial_scale
    )
    edge_px: float = EDGE_PX  # longest edge of the graph
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    network: GcnConfig = field(default_factory=lambda: GcnConfig(in_dim=FEATURE_DIM))
