"""The key points that two regions of endoscopic pictures share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from shapely.geometry.base import BaseGeometry

from ml.imaging.slides import SlideImage
from ml.keypoints import ImageFeatures, match_features
from ml.roi.explain.regions import PlacedRegion
from ml.roi.keypoints.encoder import KeypointEncoder, RegionView
from ml.roi.keypoints.rerank import region_features
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

ZOOMS = ((2.0, 2.0), (1.0, 2.0), (2.0, 1.0), (1.0, 3.0), (3.0, 1.0))
"""Magnifications of both that are tried where nothing matches at the encoder's own: both finer, or
one finer than the other, as where one region holds the other. Rotations need no cut of their own,
for descriptors do not depend on them."""
LEAST_FOUND = 8
"""Matches that such a cut must bring: more tries find more by chance."""


@dataclass(frozen=True, slots=True)
class KeypointMatches:
    """Key points of two regions that agree on one geometry, the best first.

    They are found again in the pixels: a region's vector has no pairs of points in it, so that they
    explain what both show, not how the distance came about.

    Attributes:
        xy_a, xy_b: (M, 2) float64, pixels of the images, or level-0 pixels.
        score: (M,) float32, larger is better.
        found_a, found_b: key points that could be matched.
        views: pairs of views that were compared: more than one where the first showed nothing.
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
    """Match the key points inside two regions, as ``ml.keypoints.match_features`` does.

    Where nothing matches, they are cut again at other sizes.

    Args:
        progress: called for every further pair of views; may raise to stop.
    Raises:
        InvalidGeometryError, EmptyRegionError: as ``KeypointEncoder.embed``.
    """
    cuts = _Cuts(encoder, a, b)
    first = cuts.matched(1.0, 1.0)
    if len(first.score):
        return first
    for tried, zooms in enumerate(ZOOMS, 1):
        progress(tried, 1 + len(ZOOMS), "comparing key points")
        found = cuts.matched(*zooms)
        if len(found.score) >= LEAST_FOUND:
            return replace(found, views=1 + tried)
    return replace(first, views=1 + len(ZOOMS))


_Cut = tuple[RegionView, ImageFeatures]


class _Cuts:
    """Two regions, cut at each size once, with their key points."""

    def __init__(self, encoder: KeypointEncoder, a: PlacedRegion, b: PlacedRegion) -> None:
        self.encoder, self.regions = encoder, (a, b)
        self.known: dict[tuple[int, float], _Cut] = {}

    def matched(self, zoom_a: float, zoom_b: float) -> KeypointMatches:
        """The two at these sizes."""
        return _matched(self._cut(0, zoom_a), self._cut(1, zoom_b))

    def _cut(self, side: int, zoom: float) -> _Cut:
        if (side, zoom) not in self.known:
            region = self.regions[side]
            view = _view(self.encoder, region.pixels, region.polygon, zoom)
            self.known[side, zoom] = (view, region_features(view))
        return self.known[side, zoom]


def _matched(a: _Cut, b: _Cut) -> KeypointMatches:
    (view_a, features_a), (view_b, features_b) = a, b
    matches = match_features(features_a, features_b)
    return KeypointMatches(
        xy_a=_placed(matches.xy_a, view_a),
        xy_b=_placed(matches.xy_b, view_b),
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


def _placed(xy: ArrayF32, view: RegionView) -> ArrayF64:
    """In pixels of what the view was cut from."""
    return xy.astype(np.float64) * view.downsample + np.array(view.origin_l0)
