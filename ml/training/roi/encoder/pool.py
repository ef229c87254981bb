"""Pools of patches of a slide with cached features, from which random regions are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from scipy.spatial import cKDTree
from shapely.geometry import box

from ml.errors import EmptyRegionError
from ml.files import write_npz
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.roi.config import EncoderConfig
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.geometry import downsample_for
from ml.roi.measures.features import tissue_share
from ml.roi.patches import Corner, cut_patch, isotropic_mpp, patch_corners
from ml.roi.sampling import SamplingConfig, sample_patches
from ml.roi.stain.deconvolution import StainEstimate
from ml.roi.stain.estimate import StainConfig, estimate_stain_of_image
from ml.roi.stain.normalise import normalise
from ml.roi.stain.storage import load_target
from ml.roi.stained import choose_stains
from ml.training.roi.encoder.augment import Look, random_look, with_look
from ml.types import ArrayF32, ArrayF64, ArrayI64, ImageU8, Progress

MIN_TISSUE_SHARE = 0.3  # of a patch
_MAX_PATCHES = 1 << 14  # of one slide


@dataclass(frozen=True, slots=True)
class PatchPool:
    """Patches of one slide.

    Attributes:
        centre_px: (N, 2) float64, pixels of the encoder.
        features: (V, N, C) float32, one slab a look; look 0 is the slide as it is.
    """

    centre_px: ArrayF64
    features: ArrayF32

    def __len__(self) -> int:
        return int(self.centre_px.shape[0])


def load_or_build_pool(
    path: Path,
    cache: Path,
    *,
    config: EncoderConfig,
    encoder: PatchEncoder,
    density: float,
    looks: int,
    strength: tuple[float, float],
    seed: int,
    progress: Progress,
) -> PatchPool:
    """Read or build the pool of one slide.

    Args:
        path: slide or still.
        cache: ``.npz`` file, written atomically.
        encoder: of patches.
        density: patches per patch area.
        looks: slabs of features, the first without augmentation.
        strength: of the stain and the zoom augmentation.
    Raises:
        EmptyRegionError: the slide holds too little tissue to train on.
    """
    if cache.is_file():
        stored = np.load(cache, allow_pickle=False)
        return PatchPool(stored["centre_px"], stored["features"])
    rng = np.random.default_rng(seed)
    views = [random_look(rng, stain=0.0, zoom=0.0)]
    views += [random_look(rng, stain=strength[0], zoom=strength[1]) for _ in range(looks - 1)]
    with open_slide(path) as slide:
        pool = _build(slide, config, encoder, density, views, seed, progress, path.stem)
    write_npz(cache, {"centre_px": pool.centre_px, "features": pool.features})
    return pool


def _build(  # noqa: PLR0917
    slide: SlideImage,
    config: EncoderConfig,
    encoder: PatchEncoder,
    density: float,
    views: Sequence[Look],
    seed: int,
    progress: Progress,
    name: str,
) -> PatchPool:
    pixels, centres = slide_pixels(slide, config, density, seed)
    patch_px = config.sampling.patch_px
    corners = patch_corners(centres, patch_px)
    share = np.array([tissue_share(cut_patch(pixels, c, patch_px)) for c in corners])
    tissue_rows = np.flatnonzero(share >= MIN_TISSUE_SHARE)
    if tissue_rows.size < 8:
        raise EmptyRegionError(
            f"{name}: only {tissue_rows.size} patches of tissue; training needs 8"
        )
    slabs = []
    for number, look in enumerate(views):
        phase = f"{name}: features, look {number + 1} of {len(views)}"
        cut = [_patch(pixels, corners[i], patch_px, look) for i in tissue_rows]
        patches, stains = stained(cut, pixels, look, config)
        slab = np.zeros((len(tissue_rows), encoder.dim), np.float32)
        for row, patch in enumerate(patches):
            slab[row] = encoder.encode([patch], stains)[0]
            progress(row + 1, len(tissue_rows), phase)
        slabs.append(slab)
    return PatchPool(centres[tissue_rows], np.stack(slabs))


def slide_pixels(
    slide: SlideImage, config: EncoderConfig, density: float, seed: int
) -> tuple[ImageU8, ArrayF64]:
    """Read a slide at the encoder's scale, and sample centres (N, 2) of patches.

    Args:
        density: patches per patch area.
    """
    info, sampling = slide.info, config.sampling
    downsample = downsample_for(
        mpp=isotropic_mpp(info.mpp_x, info.mpp_y),
        target_mpp=sampling.target_mpp,
        patch_px=sampling.patch_px,
        width_px=info.width_px,
        height_px=info.height_px,
    )
    size = (info.width_px, info.height_px)
    dense = SamplingConfig(
        sampling.target_mpp, sampling.patch_px, density, max_vertices=_MAX_PATCHES, seed=seed
    )
    sample = sample_patches(
        box(0, 0, *size),
        downsample=downsample,
        width_l0=size[0],
        height_l0=size[1],
        config=dense,
    )
    return slide.read_scaled((0, 0), size, downsample), sample.centre_px


def _patch(pixels: ImageU8, corner: Corner, patch_px: int, look: Look) -> ImageU8:
    if look.zoom == 1.0:
        return with_look(cut_patch(pixels, corner, patch_px), look)
    side = round(patch_px / look.zoom)
    shift = (patch_px - side) // 2
    moved = (max(corner[0] + shift, 0), max(corner[1] + shift, 0))
    crop = cut_patch(pixels, moved, side)
    scaled = cv2.resize(crop, (patch_px, patch_px), interpolation=cv2.INTER_AREA)
    return with_look(np.asarray(scaled, np.uint8), look)


def stained(
    patches: list[ImageU8], pixels: ImageU8, look: Look, config: EncoderConfig
) -> tuple[list[ImageU8], StainEstimate]:
    """Patches as the encoder sees them under a look, and their stains."""

    def estimate() -> StainEstimate:
        mpp = config.sampling.target_mpp
        stain_config = StainConfig(method=config.stain)
        return estimate_stain_of_image(with_look(pixels, look), mpp=mpp, config=stain_config)

    stain, stains = choose_stains(config, estimate, patches[:: max(1, len(patches) // 100)])
    if stain is None:
        return patches, stains
    return [normalise(patch, stain, load_target()) for patch in patches], stains


def draw_region(
    pool: PatchPool,
    tree: cKDTree,
    rng: np.random.Generator,
    *,
    radius_px: tuple[float, float],
    vertices: tuple[int, int],
) -> ArrayI64:
    """Draw a region: an irregular, rotated ellipse around a random patch.

    Args:
        tree: over ``pool.centre_px``.
        radius_px: least and largest mean radius, drawn log-uniformly.
        vertices: least and largest number of patches; a region with too few grows.
    Returns:
        (n,) int64 indices into the pool, ascending.
    """
    middle = pool.centre_px[rng.integers(len(pool))]
    radius = float(np.exp(rng.uniform(*np.log(radius_px))))
    stretch, turn = float(np.exp(rng.uniform(-0.5, 0.5))), rng.uniform(0, np.pi)
    dents = rng.normal(0, 0.12, 4)
    min_count = min(vertices[0], len(pool))
    while True:
        near = np.array(tree.query_ball_point(middle, radius * 2.5), np.int64)
        chosen = near[_inside(pool.centre_px[near] - middle, radius, stretch, turn, dents)]
        if chosen.size >= min_count:
            break
        radius *= 1.3
    return np.sort(rng.permutation(chosen)[: vertices[1]])


def _inside(
    offset: ArrayF64, radius: float, stretch: float, turn: float, dents: ArrayF64
) -> np.ndarray:
    cosine, sine = np.cos(turn), np.sin(turn)
    x = (offset[:, 0] * cosine + offset[:, 1] * sine) / stretch
    y = (-offset[:, 0] * sine + offset[:, 1] * cosine) * stretch
    angle = np.arctan2(y, x)
    waves = sum(dent * np.cos((k + 2) * angle + k) for k, dent in enumerate(dents))
    result: np.ndarray = np.hypot(x, y) <= radius * np.clip(1 + waves, 0.5, 1.5)
    return result
