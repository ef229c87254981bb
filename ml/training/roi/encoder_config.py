"""Configuration of the ROI encoder's training."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.gcn import GcnConfig
from ml.networks.textons import TextonConfig
from ml.roi.config import EncoderConfig
from ml.roi.encoders.colour import NAME as COLOUR
from ml.roi.encoders.colour import ColourEncoder
from ml.roi.encoders.textons import NAME as TEXTONS
from ml.roi.geometry import ASSUMED_MPP
from ml.roi.sampling import SamplingConfig
from ml.training.roi.textons import WHOLE, TextonFitConfig

SLIDES = (
    "histology/slides/cmu-1-small-region.svs",
    "histology/slides/tcga-cr-7395.svs",
    "histology/slides/her2st-c2.tif",
    "histology/slides/her2st-b-d2.tif",
)
SECTIONS = "histology/sections"
TILES = (
    "histology/lc25000-lung/lung_aca",
    "histology/lc25000-lung/lung_n",
    "histology/lc25000-lung/lung_scc",
)
STILLS = "endoscopy/laparoscopy-stills"
SCOPE_WINDOW = (0.16, 0.0, 0.76, 0.8)
"""Inside the scope's circle of ``STILLS``, clear of the text and the logo at the bottom."""


def _encoder() -> EncoderConfig:
    return EncoderConfig(
        features=TEXTONS,
        keep_strength=0.5,
        network=GcnConfig(in_dim=TextonConfig().words, context_weight=0.2),
    )


@dataclass(frozen=True, slots=True)
class RoiTrainConfig:
    """One training run."""

    name: str = "roi-default"  # of the encoder
    version: str = "3.0"  # of the encoder
    sources: tuple[str, ...] = (*SLIDES, SECTIONS)  # files or folders, relative to the data folder
    texton_sources: tuple[str, ...] = (*SLIDES, SECTIONS, *TILES)  # where textons are learned from
    texton_fit: TextonFitConfig = field(default_factory=TextonFitConfig)
    window: tuple[float, ...] = WHOLE  # part of a source that patches are taken from
    pool_density: float = 1.2  # patches per patch area of a slide
    looks: int = 3  # sets of features a patch has: the slide as it is, and augmented ones
    stain_strength: float = 0.15  # see augment.random_look
    zoom_strength: float = 0.15  # see augment.random_look
    radius_px: tuple[float, float] = (100.0, 600.0)  # regions, pixels at 10x
    vertices: tuple[int, int] = (4, 64)  # of a region
    drop: tuple[float, float] = (0.3, 0.8)  # share of vertices a view loses
    batch: int = 48  # regions a step
    steps: int = 400
    head_dim: int = 64  # output of the projection head
    temperature: float = 0.1  # tau of equation 1
    learning_rate: float = 3e-4  # AdamW
    weight_decay: float = 1e-4  # AdamW
    part_weights: tuple[float, ...] = (1.0, 0.25)  # of several patch encoders in the metric
    metric_ridge: float = 4.0  # see metric.learn_metric
    checkpoint_every: int = 100  # steps
    calibration_regions: int = 1000  # regions that the context part is standardised by
    seed: int = 0
    encoder: EncoderConfig = field(default_factory=_encoder)


ENDOSCOPY = RoiTrainConfig(
    name="roi-endoscopy",
    version="1.0",
    sources=(STILLS,),
    texton_sources=(STILLS,),
    texton_fit=TextonFitConfig(patches=600, window=SCOPE_WINDOW),
    window=SCOPE_WINDOW,
    pool_density=1.5,
    radius_px=(60.0, 250.0),
    vertices=(3, 32),
    stain_strength=0.05,
    part_weights=(1.0, 2.0),
    encoder=EncoderConfig(
        kind="endoscopy",
        features=f"{TEXTONS}+{COLOUR}",
        edge_px=192.0,
        # Frames know no microns: target_mpp = ASSUMED_MPP reads them pixel for pixel.
        sampling=SamplingConfig(target_mpp=ASSUMED_MPP, patch_px=96),
        network=GcnConfig(in_dim=TextonConfig().words + ColourEncoder.dim, context_weight=0.2),
    ),
)
"""The encoder of ROIs on frames and mosaics: textons of the laparoscopy stills, and colour, which
inside a body is the tissue's more than a laboratory's."""


@dataclass(frozen=True, slots=True)
class PoolKey:
    """What the features of a pool depend on."""

    features: str
    stain: str
    keep_strength: float
    sampling: SamplingConfig
    density: float
    window: tuple[float, ...]
    looks: int
    stain_strength: float
    zoom_strength: float
    seed: int
