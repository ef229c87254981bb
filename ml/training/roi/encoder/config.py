"""Configuration of the ROI encoder's training."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.patch_cnn import MOMENTS, PatchCnnConfig
from ml.networks.vertex_mean import vertex_mean_config
from ml.roi.config import EncoderConfig
from ml.roi.encoders.patch_cnn import NAME as PATCH_CNN
from ml.roi.sampling import SamplingConfig
from ml.training.roi.patches.config import ATLAS

SLIDES = (
    "histology/slides/cmu-1-small-region.svs",
    "histology/slides/tcga-cr-7395.svs",
    "histology/slides/her2st-c2.tif",
    "histology/slides/her2st-b-d2.tif",
)
SECTIONS = "histology/sections"


def _encoder() -> EncoderConfig:
    patch_cnn = PatchCnnConfig(readout=MOMENTS)
    return EncoderConfig(
        features=PATCH_CNN,
        patch_cnn=patch_cnn,
        stain="none",
        sampling=SamplingConfig(density=2.0),
        network=vertex_mean_config(patch_cnn.out_dim, vertex_dim=80),
    )


@dataclass(frozen=True, slots=True)
class RoiTrainConfig:
    """One training run."""

    name: str = "roi-default"  # of the encoder
    version: str = "5.1"  # of the encoder
    sources: tuple[str, ...] = (*SLIDES, SECTIONS)  # files or folders, relative to the data folder
    held_out: tuple[str, ...] = ()  # as ``sources``, disjoint from them; for validation
    atlas: str = ATLAS  # table of tiles that the metric is learned from; empty for none
    slides: tuple[tuple[str, str, float], ...] = ()  # further ones: file, patient, um per pixel
    pool_density: float = 1.2  # patches per patch area of a slide
    looks: int = 3  # versions of a patch: the original and augmented ones
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
    metric_ridge: float = 1.0  # see metric.learn_metric
    metric_power: float = 0.5  # see metric.learn_metric
    checkpoint_every: int = 100  # steps
    calibration_regions: int = 1000  # regions that standardise the context part
    seed: int = 0
    encoder: EncoderConfig = field(default_factory=_encoder)


@dataclass(frozen=True, slots=True)
class TissueKey:
    """Cache key of the features from which a metric is learned, besides those of a pool."""

    pool: str
    atlas: str
    slides: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class PoolKey:
    """Cache key of the features of a pool."""

    features: str
    stain: str
    keep_strength: float
    sampling: SamplingConfig
    density: float
    looks: int
    stain_strength: float
    zoom_strength: float
    seed: int
