"""Why two regions are alike: the patches of both that add most to it, or their key points.

>>> from ml.roi.explain import PlacedRegion, explain_regions
>>> found, _, _ = explain_regions(encoder, PlacedRegion(image_a), PlacedRegion(image_b))
>>> found.pairs[0].a, found.pairs[0].b, found.pairs[0].share
"""

from __future__ import annotations

from ml.roi.explain.colour import colour_overlap
from ml.roi.explain.keypoints import KeypointMatches, match_regions
from ml.roi.explain.pairs import Explained, Pair, Vertices, explain_pair
from ml.roi.explain.regions import PlacedRegion, explain_regions, stain_counterpart

__all__ = [
    "Explained",
    "KeypointMatches",
    "Pair",
    "PlacedRegion",
    "Vertices",
    "colour_overlap",
    "explain_pair",
    "explain_regions",
    "match_regions",
    "stain_counterpart",
]
