"""Configuration of the ROI encoder's training."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.gcn import GcnConfig
from ml.networks.patch_cnn import PatchCnnConfig
from ml.roi.config import EncoderConfig
from ml.roi.encoders.colour import ColourEncoder
from ml.roi.features import FEATURE_DIM, FEATURES_NAME
from ml.roi.geometry import ASSUMED_MPP
from ml.roi.sampling import SamplingConfig

SLIDES = (
    "histology/slides/cmu-1-small-region.svs",
    "histology/slides/tcga-cr-7395.svs",
    "histology/slides/her2st-c2.tif",
    "histology/slides/her2st-b-d2.tif",
)
SECTIONS = "histology/sections"
STILLS = "endoscopy/laparoscopy-stills"
WHOLE = (0.0, 0.0, 1.0, 1.0)
"""Left, top, right, bottom, as shares of a source: where patches are taken from."""
SCOPE_WINDOW = (0.16, 0.0, 0.76, 0.8)
"""Inside the scope's circle of ``STILLS``, clear of the text and the logo at the bottom."""
IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".svs", ".ndpi"}


def _encoder() -> EncoderConfig:
    in_dim = FEATURE_DIM + PatchCnnConfig().out_dim
    return EncoderConfig(
        features=f"{FEATURES_NAME}+patch-cnn",
        network=GcnConfig(in_dim=in_dim, context_weight=0.2),
    )


@dataclass(frozen=True, slots=True)
class RoiTrainConfig:
    """One training run."""

    name: str = "roi-default"  # of the encoder
    version: str = "2.0"  # of the encoder
    sources: tuple[str, ...] = (*SLIDES, SECTIONS)  # files or folders, relative to the data folder
    window: tuple[float, ...] = WHOLE  # see WHOLE
    pool_density: float = 1.2  # patches per patch area of a slide
    looks: int = 3  # sets of features a patch has: the slide as it is, and augmented ones
    stain_strength: float = 0.15  # see augment.random_look
    zoom_strength: float = 0.15  # see augment.random_look
    radius_px: tuple[float, float] = (100.0, 600.0)  # regions, pixels at 10x
    vertices: tuple[int, int] = (4, 64)  # of a region
    drop: tuple[float, float] = (0.3, 0.8)  # share of vertices a view loses
    batch: int = 48  # regions a step
    steps: int = 800
    head_dim: int = 64  # output of the projection head
    temperature: float = 0.1  # tau of equation 1
    learning_rate: float = 3e-4  # AdamW
    weight_decay: float = 1e-4  # AdamW
    part_weights: tuple[float, ...] = (1.0, 0.25)  # of several patch encoders in the metric
    metric_ridge: float = 0.3  # see metric.learn_metric
    checkpoint_every: int = 100  # steps
    calibration_regions: int = 1000  # regions that the context part is standardised by
    seed: int = 0
    encoder: EncoderConfig = field(default_factory=_encoder)


ENDOSCOPY = RoiTrainConfig(
    name="roi-endoscopy",
    version="1.0",
    sources=(STILLS,),
    window=SCOPE_WINDOW,
    pool_density=1.5,
    radius_px=(60.0, 250.0),
    vertices=(3, 32),
    stain_strength=0.1,
    part_weights=(1.0, 1.0),
    encoder=EncoderConfig(
        kind="endoscopy",
        features="patch-cnn+colour-1",
        edge_px=192.0,
        # Frames know no microns: target_mpp = ASSUMED_MPP reads them pixel for pixel.
        sampling=SamplingConfig(target_mpp=ASSUMED_MPP, patch_px=96),
        network=GcnConfig(in_dim=PatchCnnConfig().out_dim + ColourEncoder.dim, context_weight=0.2),
    ),
)
"""The encoder of ROIs on frames and mosaics. Its patches are described by a network of its own
(``patches_config.ENDOSCOPY``) and by their colour: nuclei and glands are not to be found there."""


@dataclass(frozen=True, slots=True)
class PoolKey:
    """What the features of a pool depend on."""

    features: str
    stain: str
    sampling: SamplingConfig
    density: float
    window: tuple[float, ...]
    looks: int
    stain_strength: float
    zoom_strength: float
    seed: int
