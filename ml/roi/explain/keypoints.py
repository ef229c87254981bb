"""Matching key points of two regions of endoscopic images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from shapely.geometry.base import BaseGeometry

from ml.imaging.slides.slide import SlideImage
from ml.keypoints.features import ImageFeatures
from ml.keypoints.pipeline import match_features
from ml.roi.explain.regions import PlacedRegion
from ml.roi.keypoints.encoder import KeypointEncoder, RegionView
from ml.roi.keypoints.rerank import region_features
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

ZOOMS = ((2.0, 2.0), (1.0, 2.0), (2.0, 1.0), (1.0, 3.0), (3.0, 1.0))
"""Magnifications of both regions, tried if nothing matches at that of the encoder: both larger, or
one of them, for a region inside the other. Descriptors are rotation-invariant."""
MIN_FOUND = 8
"""Smallest number of matches at other magnifications, as more tries find more by chance."""


@dataclass(frozen=True, slots=True)
class KeypointMatches:
    """Geometrically consistent matches of two regions, best first.

    They are computed from pixels, not from the vectors of the regions, and show common structures
    but not how the distance arises.

    Attributes:
        xy_a, xy_b: (M, 2) float64, pixels of the images, or level-0 pixels.
        score: (M,) float32, larger is better.
        found_a, found_b: Number of key points of each region.
        views: Number of compared pairs of magnifications.
    """

    xy_a: ArrayF64
    xy_b: ArrayF64
    score: ArrayF32
    found_a: int
    found_b: int
    views: int = 1


def match_regions(
    encoder: KeypointEncoder,
    a: PlacedRegion,
    b: PlacedRegion,
    *,
    progress: Progress = no_progress,
) -> KeypointMatches:
    """Match the key points inside two regions, at other magnifications if nothing matches.

    Args:
        progress: Called for each further pair of magnifications; may raise to stop.
    Raises:
        InvalidGeometryError, EmptyRegionError: See ``KeypointEncoder.embed``.
    """
    crops = _RegionCrops(encoder, a, b)
    first = crops.match(1.0, 1.0)
    if len(first.score):
        return first
    for n_tried, zooms in enumerate(ZOOMS, 1):
        progress(n_tried, 1 + len(ZOOMS), "comparing key points")
        matches = crops.match(*zooms)
        if len(matches.score) >= MIN_FOUND:
            return replace(matches, views=1 + n_tried)
    return replace(first, views=1 + len(ZOOMS))


_CroppedRegion = tuple[RegionView, ImageFeatures]


class _RegionCrops:
    """Crops of two regions with their key points, cached by magnification."""

    def __init__(self, encoder: KeypointEncoder, a: PlacedRegion, b: PlacedRegion) -> None:
        self.encoder, self.regions = encoder, (a, b)
        self.cache: dict[tuple[int, float], _CroppedRegion] = {}

    def match(self, zoom_a: float, zoom_b: float) -> KeypointMatches:
        """Match the regions at these magnifications."""
        return _match_crops(self._crop(0, zoom_a), self._crop(1, zoom_b))

    def _crop(self, side: int, zoom: float) -> _CroppedRegion:
        if (side, zoom) not in self.cache:
            region = self.regions[side]
            view = _view(self.encoder, region.pixels, region.polygon, zoom)
            self.cache[side, zoom] = (view, region_features(view))
        return self.cache[side, zoom]


def _match_crops(a: _CroppedRegion, b: _CroppedRegion) -> KeypointMatches:
    (view_a, features_a), (view_b, features_b) = a, b
    matches = match_features(features_a, features_b)
    return KeypointMatches(
        xy_a=_to_region_px(matches.xy_a, view_a),
        xy_b=_to_region_px(matches.xy_b, view_b),
        score=matches.score,
        found_a=len(features_a.xy),
        found_b=len(features_b.xy),
    )


def _view(
    encoder: KeypointEncoder,
    pixels: ImageU8 | SlideImage,
    polygon: BaseGeometry | None,
    zoom: float,
) -> RegionView:
    if isinstance(pixels, np.ndarray):
        return encoder.view_of_image(pixels, polygon, zoom=zoom)
    return encoder.view_of_region(pixels, polygon, zoom=zoom)


def _to_region_px(xy: ArrayF32, view: RegionView) -> ArrayF64:
    """Convert pixels of a view to pixels of its image."""
    return xy.astype(np.float64) * view.downsample + np.array(view.origin_l0)
