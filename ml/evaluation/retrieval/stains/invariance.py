"""Is a region still nearest to itself after changes no pathologist minds? Needs no labels."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import cv2
import numpy as np
from PIL import Image
from shapely import affinity

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import reciprocal_ranks
from ml.evaluation.retrieval.regions import Embedder, RegionImage, region_image
from ml.evaluation.retrieval.stains.shift import distances, stain_shifted
from ml.types import ArrayF32, Progress, no_progress


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
    apart = float(np.median(distances(gallery, gallery)[np.triu_indices(len(gallery), 1)]))
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
"""Changes a pathologist would not mind: each on its own, seeded."""


def _invariance(changed: ArrayF32, gallery: ArrayF32, apart: float) -> dict[str, float]:
    distance = distances(changed, gallery)
    ranks = reciprocal_ranks(distance, np.arange(len(gallery)))
    return {
        "recall_at_1": float((ranks == 1).mean()),
        "mrr": float(ranks.mean()),
        "distance_ratio": float(np.median(distance.diagonal()) / apart) if apart else 0.0,
    }
