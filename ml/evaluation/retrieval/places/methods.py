"""Methods compared on places: encoders and baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ml.errors import EmptyRegionError
from ml.evaluation.retrieval.baselines import (
    bag_of_words,
    hsv_histogram,
    root_sift,
    visual_words,
)
from ml.evaluation.retrieval.places.scenes import Scene
from ml.roi.keypoints.encoder import KeypointEncoder, RegionView
from ml.roi.protocol import RegionEncoder
from ml.types import ArrayF32

WORDS = 256
"""Words of the bag's vocabulary."""
_POINTS, _CONTRAST = 400, 0.01
"""Number and least contrast of key points: regions are small, and mucosa is smooth."""


@dataclass(frozen=True, slots=True)
class PlaceMethod:
    """A compared method: its name, and the (D,) float32 vector of region ``index`` of a scene."""

    name: str
    vector: Callable[[Scene, int], ArrayF32]


def encoder_method(encoder: RegionEncoder) -> PlaceMethod:
    """Method of an encoder; a region that it cannot embed gets an infinite vector."""

    def vector(scene: Scene, index: int) -> ArrayF32:
        region = scene.regions[index]
        try:
            return encoder.embed(scene.frames[region.frame], region.polygon)
        except EmptyRegionError:
            return np.full(encoder.dim, np.inf, np.float32)

    return PlaceMethod(f"{encoder.name} {encoder.version}", vector)


def baseline_methods(
    views: KeypointEncoder, training: Sequence[RegionView], *, seed: int
) -> tuple[PlaceMethod, ...]:
    """Methods of a colour histogram and a bag of RootSIFT, on the views of the encoder.

    Args:
        views: brings regions to one size.
        training: regions of other operations, whose descriptors the vocabulary is learned from.
    """
    words = visual_words(
        np.concatenate([_root_sift(view) for view in training]), count=WORDS, seed=seed
    )

    def colour(scene: Scene, index: int) -> ArrayF32:
        view = region_view(views, scene, index)
        return hsv_histogram(view.image, view.inside.astype(np.uint8))

    def bag(scene: Scene, index: int) -> ArrayF32:
        return bag_of_words(_root_sift(region_view(views, scene, index)), words)

    return PlaceMethod("HSV histogram", colour), PlaceMethod("bag of RootSIFT", bag)


def region_view(views: KeypointEncoder, scene: Scene, index: int) -> RegionView:
    """Region ``index`` of a scene, brought to the encoder's size."""
    region = scene.regions[index]
    return views.view_of_image(scene.frames[region.frame], region.polygon)


def _root_sift(view: RegionView) -> ArrayF32:
    """(N, 128) RootSIFT descriptors inside a region."""
    inside = view.inside.astype(np.uint8) * np.uint8(255)
    return root_sift(view.image, inside, contrast=_CONTRAST, max_count=_POINTS)
