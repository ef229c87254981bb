"""Baselines for encoders, each in its best form: colour, binary patterns, SIFT, textons.

Words are learned from training tiles only. The best form was chosen on the sets of the shipped
suite, in favour of the baselines: see docs/evaluation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.config import config_hash
from ml.errors import BadInputError
from ml.evaluation.retrieval.baselines import (
    bag_of_words,
    hsv_histogram,
    region_mask,
    root_sift,
    visual_words,
)
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.config import TrainingConfig
from ml.evaluation.retrieval.suite.methods import SuiteMethod
from ml.files import write_npz
from ml.networks.textons import TextonConfig
from ml.roi.encoders.textons import (
    TextonEncoder,
    load_textons,
)
from ml.roi.geometry import downsample_for
from ml.roi.measures.texture import lbp_histogram
from ml.training.roi.textons import fit_textons, tile_pixels
from ml.training.roi.tiles import Tile, balanced, read_tiles
from ml.types import ArrayF32, ImageU8, Progress

HSV, LBP, SIFT, TEXTONS = "HSV histogram", "LBP", "bag of RootSIFT", "local textons"
TARGET_MPP = 1.0
"""Scale of all baselines but the colour histogram."""


@dataclass(frozen=True, slots=True)
class SiftConfig:
    """A bag of RootSIFT (Arandjelovic and Zisserman 2012)."""

    words: int = 128  # of the vocabulary
    contrast: float = 0.04  # least contrast of a key point, OpenCV's own
    each: int = 60  # descriptors of one training tile


@dataclass(frozen=True, slots=True)
class _Key:
    """Cache key of learned words."""

    training: TrainingConfig
    sift: SiftConfig
    textons: TextonConfig
    seed: int


@dataclass(frozen=True, slots=True)
class _Words:
    """Training data and cache of words."""

    tiles: tuple[Tile, ...]
    seed: int
    key: str
    cache: Path | None

    def path(self, name: str, suffix: str) -> Path | None:
        return self.cache / f"{name}-{self.key}{suffix}" if self.cache else None


def baseline_methods(
    training: TrainingConfig, data: Path, *, seed: int, cache: Path | None, progress: Progress
) -> tuple[SuiteMethod, ...]:
    """Methods of the four baselines; their words are learned, or read from the cache.

    Raises:
        BadInputError: the training tiles are not there.
    """
    sift, textons = SiftConfig(), TextonConfig(own_vectors=True)
    key = config_hash(_Key(training, sift, textons, seed))
    tiles = balanced(read_tiles(data / training.index, training.where), training.each, seed=seed)
    learned = _Words(tiles, seed, key, cache)
    words = _sift_words(learned, sift, progress)
    dictionary = _dictionary(learned, textons, progress)
    return (
        SuiteMethod(HSV, "hsv-1", True, hsv_vector),
        SuiteMethod(LBP, "lbp-2", True, lbp_vector),
        SuiteMethod(SIFT, f"sift-2-{key}", True, lambda region: sift_vector(region, words, sift)),
        SuiteMethod(
            TEXTONS, f"textons-1-{key}", True, lambda region: texton_vector(region, dictionary)
        ),
    )


def hsv_vector(region: RegionImage) -> ArrayF32:
    """(512,) see ``hsv_histogram``."""
    return hsv_histogram(region.pixels, mask_of(region))


def lbp_vector(region: RegionImage) -> ArrayF32:
    """(30,) see ``lbp_histogram``: of grey values; the outside is set to the median inside."""
    pixels, mask = at_target(region)
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    if not mask.all():
        grey[mask == 0] = np.median(grey[mask > 0]) if mask.any() else 0
    return lbp_histogram(np.asarray(grey, np.float32)).astype(np.float32)


def sift_vector(region: RegionImage, words: ArrayF32, config: SiftConfig) -> ArrayF32:
    """(words,) bag of the RootSIFT descriptors of a region."""
    return bag_of_words(root_sift(*at_target(region), contrast=config.contrast), words)


def texton_vector(region: RegionImage, dictionary: TextonEncoder) -> ArrayF32:
    """(words,) square roots of the textons' shares."""
    return dictionary.histogram(*at_target(region))


def at_target(region: RegionImage) -> tuple[ImageU8, ImageU8]:
    """Pixels (H, W, 3) and mask (H, W) of a region at 1 um per pixel, by the encoders' rule."""
    height, width = region.pixels.shape[:2]
    downsample = downsample_for(
        mpp=region.mpp, target_mpp=TARGET_MPP, patch_px=224, width_px=width, height_px=height
    )
    size = (max(1, round(width / downsample)), max(1, round(height / downsample)))
    pixels = cv2.resize(region.pixels, size, interpolation=cv2.INTER_AREA)
    mask = cv2.resize(mask_of(region), size, interpolation=cv2.INTER_NEAREST)
    return np.asarray(pixels, np.uint8), np.asarray(mask, np.uint8)


def mask_of(region: RegionImage) -> ImageU8:
    """(H, W) uint8, 255 inside the region."""
    shape = region.pixels.shape[:2]
    if region.polygon is None:
        return np.full(shape, 255, np.uint8)
    return region_mask(region.polygon, shape)


def _sift_words(words: _Words, config: SiftConfig, progress: Progress) -> ArrayF32:
    path = words.path("sift-words", ".npz")
    if path is not None and path.is_file():
        with np.load(path) as file:
            return np.asarray(file["words"], np.float32)
    descriptors = []
    for number, tile in enumerate(words.tiles, 1):
        pixels = tile_pixels(tile)
        everywhere = np.full(pixels.shape[:2], 255, np.uint8)
        rows = root_sift(pixels, everywhere, contrast=config.contrast)
        rng = np.random.default_rng((words.seed, number))
        descriptors.append(rows[rng.permutation(len(rows))[: config.each]])
        progress(number, len(words.tiles), "SIFT: measuring")
    stacked = np.concatenate(descriptors)
    if not len(stacked):
        raise BadInputError("the training tiles are too small for SIFT")
    centres = visual_words(stacked, count=config.words, seed=words.seed)
    if path is not None:
        write_npz(path, {"words": centres})
    return centres


def _dictionary(words: _Words, config: TextonConfig, progress: Progress) -> TextonEncoder:
    path = words.path("local-textons", ".safetensors")
    if path is not None and path.is_file():
        return load_textons(path)
    return fit_textons(
        words.tiles,
        config=config,
        max_per_patient=len(words.tiles),
        seed=words.seed,
        out=path,
        progress=progress,
    )
