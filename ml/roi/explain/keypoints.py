"""The key points that two regions of endoscopic pictures share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from shapely.geometry.base import BaseGeometry

from ml.imaging.slides import SlideImage
from ml.keypoints import match_features
from ml.roi.explain.regions import PlacedRegion
from ml.roi.keypoints.encoder import KeypointEncoder, RegionView
from ml.roi.keypoints.rerank import region_features
from ml.types import ArrayF32, ArrayF64, ImageU8


@dataclass(frozen=True, slots=True)
class KeypointMatches:
    """Key points of two regions that agree on one geometry, the best first.

    They are found anew in the pixels: a region's vector has no pairs of points in it, so that they
    explain what both show, not how the distance came about.

    Attributes:
        xy_a, xy_b: (M, 2) float64, pixels of the images, or level-0 pixels.
        score: (M,) float32, larger is better.
        found_a, found_b: key points that there were to match.
    """

    xy_a: ArrayF64
    xy_b: ArrayF64
    score: ArrayF32
    found_a: int
    found_b: int


def match_regions(encoder: KeypointEncoder, a: PlacedRegion, b: PlacedRegion) -> KeypointMatches:
    """Match the key points inside two regions, as ``ml.keypoints.match_features`` does.

    Raises:
        InvalidGeometryError, EmptyRegionError: as ``KeypointEncoder.embed``.
    """
    view_a, view_b = (_view(encoder, one.pixels, one.polygon) for one in (a, b))
    features_a, features_b = region_features(view_a), region_features(view_b)
    matches = match_features(features_a, features_b)
    return KeypointMatches(
        xy_a=_placed(matches.xy_a, view_a),
        xy_b=_placed(matches.xy_b, view_b),
        score=matches.score,
        found_a=len(features_a.xy),
        found_b=len(features_b.xy),
    )


def _view(
    encoder: KeypointEncoder, pixels: ImageU8 | SlideImage, polygon: BaseGeometry | None
) -> RegionView:
    if isinstance(pixels, np.ndarray):
        return encoder.view_of_image(pixels, polygon)
    return encoder.view_of_region(pixels, polygon)


def _placed(xy: ArrayF32, view: RegionView) -> ArrayF64:
    """In pixels of what the view was cut from."""
    return xy.astype(np.float64) * view.downsample + np.array(view.origin_l0)
