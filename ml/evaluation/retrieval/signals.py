"""Signals to choose an encoder by, where labelled development data is too small to be trusted.

Each takes anything with ``embed(image, polygon, mpp)``:

- ``stain_shift_scores``: what is lost when the queries come from another laboratory's stain;
- ``augmentation_invariance``: is a region, changed as no pathologist would mind, nearest to itself;
- ``adjacent_sections`` (``ml.evaluation.retrieval.sections``): is the same place found again in the
  next section.

None of them uses the training's own augmentation code: the stain is shifted here in the space of
stain concentrations, so that an encoder is not scored on the very changes it was trained with.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import cv2
import numpy as np
from PIL import Image
from scipy.spatial.distance import cdist
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import reciprocal_ranks
from ml.evaluation.retrieval.protocols import QueryScores, RetrievalOptions, other_patients_scores
from ml.imaging.slides import open_slide
from ml.roi.geometry import ASSUMED_MPP, checked_region
from ml.roi.patches import isotropic_mpp
from ml.roi.stain import RUIFROK_HE, WHITE, optical_density
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

_MAX_SIDE_PX = 4096
_MARGIN_PX = 256
_GAIN = 0.35
_TURN = 0.06
_OFFSET_OD = 0.02
_LAMP = 0.03


class Embedder(Protocol):
    """What the signals need of an encoder."""

    def embed(
        self, image: ImageU8, polygon: BaseGeometry | None = None, mpp: float | None = None
    ) -> ArrayF32:
        """(dim,) float32 of a region of an image."""
        ...


@dataclass(frozen=True, slots=True)
class RegionImage:
    """The pixels around one region.

    Attributes:
        pixels: (H, W, 3) uint8 RGB.
        polygon: in pixels of ``pixels``; None for all of it.
        mpp: microns per pixel of ``pixels``, None where nobody knows.
    """

    pixels: ImageU8
    polygon: BaseGeometry | None
    mpp: float | None


def region_image(record: RoiRecord) -> RegionImage:
    """Read a region with a margin for its border patches; larger than 4096 px is scaled down."""
    with open_slide(record.image) as slide:
        info = slide.info
        mpp = record.mpp if record.mpp is not None else isotropic_mpp(info.mpp_x, info.mpp_y)
        width, height = info.width_px, info.height_px
        region = checked_region(record.geometry, width_px=width, height_px=height)
        left, top, right, bottom = region.bounds
        left, top = max(left - _MARGIN_PX, 0), max(top - _MARGIN_PX, 0)
        right, bottom = min(right + _MARGIN_PX, width), min(bottom + _MARGIN_PX, height)
        downsample = max(1.0, max(right - left, bottom - top) / _MAX_SIDE_PX)
        pixels = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
    if downsample > 1:
        mpp = (mpp or ASSUMED_MPP) * downsample
    if record.geometry is None:
        return RegionImage(pixels, None, mpp)
    moved = affinity.translate(region, -left, -top)
    return RegionImage(
        pixels, affinity.scale(moved, 1 / downsample, 1 / downsample, origin=(0, 0)), mpp
    )


def stain_shifted(image: ImageU8, rng: np.random.Generator, *, strength: float = 1.0) -> ImageU8:
    """The image as another laboratory might have stained and scanned it.

    Haematoxylin, eosin and the residual get another strength (log-uniform, a factor of 1.4 at
    most), other colours (their vectors turned by some degrees), a faint veil and another lamp.

    Args:
        image: (H, W, 3) uint8 RGB.
        rng: drawn from a fixed number of times, whatever the image.
        strength: 0 gives the image back, save what is brighter than ``WHITE``.
    """
    gain = np.exp(rng.uniform(-_GAIN, _GAIN, 3) * strength * (1, 1, 0.5))
    turn = rng.normal(0, _TURN, (3, 3)) * strength
    offset = rng.uniform(0, _OFFSET_OD, 3) * strength
    lamp = 1 + rng.uniform(-_LAMP, _LAMP, 3) * strength
    vectors = _with_residual(RUIFROK_HE)
    moved = np.maximum(vectors + turn, 0.0)
    moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6)
    mixing = np.linalg.inv(vectors) @ np.diag(gain) @ (moved if strength else vectors)
    od = np.maximum(optical_density(image) @ mixing.astype(np.float32) + offset, 0)
    light = (WHITE + 1) * np.power(10.0, -od) * lamp - 1
    return np.asarray(np.clip(light + 0.5, 0, 255), np.uint8)


def stain_shift_scores(
    encoder: Embedder,
    records: Sequence[RoiRecord],
    *,
    options: RetrievalOptions | None = None,
    draws: int = 3,
    strength: float = 1.0,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """mAP@K of other patients with clean queries, and with stain-shifted ones.

    The gallery stays as it is: what is measured is a query from another laboratory.

    Args:
        draws: shifts of each query.
    Returns:
        ``map_clean``, ``map_shifted`` (mean of the draws), ``drop_percent`` of the clean score,
        ``draws`` (each draw's score) and ``p_at_1_self``: how often a shifted query is nearest to
        its own unshifted region.
    """
    options = options or RetrievalOptions()
    vectors = shifted_vectors(
        encoder, records, draws=draws, seed=options.seed, strength=strength, progress=progress
    )
    return shifted_scores(vectors, records, options)


@dataclass(frozen=True, slots=True)
class ShiftedVectors:
    """The same regions as they are, (N, D), and under each draw of stain shifts."""

    clean: ArrayF32
    shifted: tuple[ArrayF32, ...]


def shifted_vectors(
    encoder: Embedder,
    records: Sequence[RoiRecord],
    *,
    draws: int = 3,
    seed: int = 0,
    strength: float = 1.0,
    progress: Progress = no_progress,
) -> ShiftedVectors:
    """Embed each region as it is, and as ``draws`` other laboratories would have stained it."""
    rng = np.random.default_rng(seed)
    clean: list[ArrayF32] = []
    shifted: list[list[ArrayF32]] = [[] for _ in range(draws)]
    for done, record in enumerate(records, 1):
        region = region_image(record)
        clean.append(encoder.embed(region.pixels, region.polygon, region.mpp))
        for vectors in shifted:
            pixels = stain_shifted(region.pixels, rng, strength=strength)
            vectors.append(encoder.embed(pixels, region.polygon, region.mpp))
        progress(done, len(records), "stain shifts")
    return ShiftedVectors(np.stack(clean), tuple(np.stack(vectors) for vectors in shifted))


def shifted_scores(
    vectors: ShiftedVectors, records: Sequence[RoiRecord], options: RetrievalOptions
) -> dict[str, Any]:
    """Score clean and shifted queries against the clean gallery; see ``stain_shift_scores``."""
    before = other_patients_scores(_distances(vectors.clean, vectors.clean), records, options)
    apart = [_distances(shifted, vectors.clean) for shifted in vectors.shifted]
    after = [other_patients_scores(distance, records, options) for distance in apart]
    own = [reciprocal_ranks(distance, np.arange(len(records))) for distance in apart]
    return _shift_summary(before, after, own)


def augmentation_invariance(
    encoder: Embedder,
    records: Sequence[RoiRecord],
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> dict[str, dict[str, float]]:
    """Is a changed region still nearest to itself among all regions?

    Returns:
        For each change of ``CHANGES``: ``recall_at_1``, ``mrr`` (mean reciprocal rank of the
        region's own original) and ``distance_ratio``: distance to its own original over the median
        distance between different regions (0 is perfect invariance).
    """
    if len(records) < 2:
        raise BadInputError("augmentation invariance: expected two regions or more")
    rng = np.random.default_rng(seed)
    changed: dict[str, list[ArrayF32]] = {name: [] for name in CHANGES}
    clean = []
    for done, record in enumerate(records, 1):
        region = region_image(record)
        clean.append(encoder.embed(region.pixels, region.polygon, region.mpp))
        for name, change in CHANGES.items():
            new = change(region, rng)
            changed[name].append(encoder.embed(new.pixels, new.polygon, new.mpp))
        progress(done, len(records), "augmentations")
    gallery = np.stack(clean)
    apart = float(np.median(_distances(gallery, gallery)[np.triu_indices(len(gallery), 1)]))
    return {name: _invariance(np.stack(v), gallery, apart) for name, v in changed.items()}


def _flipped(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    height = region.pixels.shape[0]
    polygon = region.polygon and affinity.affine_transform(region.polygon, (1, 0, 0, -1, 0, height))
    return RegionImage(np.ascontiguousarray(region.pixels[::-1]), polygon, region.mpp)


def _turned(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    width = region.pixels.shape[1]
    polygon = region.polygon and affinity.affine_transform(region.polygon, (0, 1, -1, 0, 0, width))
    return RegionImage(np.ascontiguousarray(np.rot90(region.pixels)), polygon, region.mpp)


def _zoomed(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    factor = float(np.exp(rng.uniform(-0.2, 0.2)))
    pixels = cv2.resize(region.pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    polygon = region.polygon and affinity.scale(region.polygon, factor, factor, origin=(0, 0))
    return RegionImage(np.asarray(pixels, np.uint8), polygon, region.mpp)


def _restained(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    return RegionImage(stain_shifted(region.pixels, rng), region.polygon, region.mpp)


def _compressed(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    buffer = io.BytesIO()
    Image.fromarray(region.pixels).save(buffer, "JPEG", quality=40)
    return RegionImage(np.asarray(Image.open(buffer)), region.polygon, region.mpp)


def _blurred(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    pixels = cv2.GaussianBlur(region.pixels, (0, 0), 1.0)
    return RegionImage(np.asarray(pixels, np.uint8), region.polygon, region.mpp)


def _cropped(region: RegionImage, rng: np.random.Generator) -> RegionImage:
    """The region drawn again by another hand: smaller by 8 % in width and height."""
    if region.polygon is not None:
        polygon = affinity.scale(region.polygon, 0.92, 0.92)
        return RegionImage(region.pixels, polygon, region.mpp)
    height, width = region.pixels.shape[:2]
    y, x = round(height * 0.04), round(width * 0.04)
    return RegionImage(
        np.ascontiguousarray(region.pixels[y : height - y, x : width - x]), None, region.mpp
    )


CHANGES: dict[str, Callable[[RegionImage, np.random.Generator], RegionImage]] = {
    "flip": _flipped,
    "turn": _turned,
    "zoom": _zoomed,
    "stain": _restained,
    "jpeg": _compressed,
    "blur": _blurred,
    "redrawn": _cropped,
}
"""Changes a pathologist would not mind: each by its own, seeded."""


def _with_residual(two: ArrayF64) -> ArrayF64:
    unit = two / np.linalg.norm(two, axis=1, keepdims=True)
    third = np.cross(unit[0], unit[1])
    third = np.abs(third) / np.linalg.norm(third)
    return np.vstack([unit, third])


def _distances(queries: ArrayF32, gallery: ArrayF32) -> ArrayF64:
    return np.asarray(cdist(queries, gallery), np.float64)


def _shift_summary(
    before: QueryScores, after: Sequence[QueryScores], own: Sequence[ArrayF64]
) -> dict[str, Any]:
    clean = float(before.ap.mean())
    shifted = [float(scores.ap.mean()) for scores in after]
    mean = float(np.mean(shifted))
    return {
        "map_clean": clean,
        "map_shifted": mean,
        "drop_percent": 100 * (clean - mean) / clean if clean else 0.0,
        "draws": shifted,
        "p_at_1_self": float(np.mean([(ranks == 1).mean() for ranks in own])),
    }


def _invariance(changed: ArrayF32, gallery: ArrayF32, apart: float) -> dict[str, float]:
    distance = _distances(changed, gallery)
    ranks = reciprocal_ranks(distance, np.arange(len(gallery)))
    return {
        "recall_at_1": float((ranks == 1).mean()),
        "mrr": float(ranks.mean()),
        "distance_ratio": float(np.median(distance.diagonal()) / apart) if apart else 0.0,
    }
