"""Cached features of images that occur in several pairs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ml.keypoints import load_descriptor, match_images
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.features import ImageFeatures, extract
from ml.keypoints.match import match_descriptors
from ml.keypoints.parallel import run_both
from ml.keypoints.pipeline import MatchConfig, match_features
from ml.types import ImageU8, Matches

MaskedImage = tuple[ImageU8, ImageU8 | None]
"""An image and its mask, 0 and 255, or None."""


@dataclass(slots=True)
class FeatureCache:
    """Cache of ``extract`` by image, mask, descriptor and number of key points.

    A run uses one cache for each descriptor, so that memory stays bounded.
    """

    _features: dict[tuple[str, str, int], ImageFeatures] = field(default_factory=dict)

    def extract(self, image: MaskedImage, descriptor: Descriptor, keypoints: int) -> ImageFeatures:
        """Extract the features of an image within its mask."""
        key = (_digest(image), descriptor.name, keypoints)
        if key not in self._features:
            pixels, mask = image
            self._features[key] = extract(
                pixels, descriptor=descriptor, max_keypoints=keypoints, mask=mask
            )
        return self._features[key]

    def match(
        self,
        a: MaskedImage,
        b: MaskedImage,
        name: str,
        keypoints: int,
    ) -> Matches:
        """Match two images exactly as ``match_images`` does."""
        descriptor = load_descriptor(name)
        features = run_both(lambda image: self.extract(image, descriptor, keypoints), a, b)
        return match_features(*features, config=MatchConfig())

    def mutual(
        self,
        a: MaskedImage,
        b: MaskedImage,
        descriptor: Descriptor,
        *,
        keypoints: int,
        ratio: float | None = None,
    ) -> Matches:
        """Match the same key points by mutual nearest neighbours, without geometry."""
        first, second = (self.extract(image, descriptor, keypoints) for image in (a, b))
        pairs, distance = match_descriptors(
            first.descriptors, second.descriptors, strategy="mutual", ratio=ratio
        )
        return Matches(first.xy[pairs[:, 0]], second.xy[pairs[:, 1]], -distance)


def seconds_a_pair(
    pairs: Sequence[tuple[MaskedImage, MaskedImage]], name: str, keypoints: int
) -> float:
    """Median time of ``match_images`` without a cache; NaN without pairs."""
    seconds = []
    for (image_a, mask_a), (image_b, mask_b) in pairs:
        started = time.perf_counter()
        match_images(image_a, image_b, name, max_keypoints=keypoints, mask_a=mask_a, mask_b=mask_b)
        seconds.append(time.perf_counter() - started)
    return round(float(np.median(seconds)), 4) if seconds else float("nan")


def _digest(image: MaskedImage) -> str:
    """Digest of shapes and contents."""
    digest = hashlib.blake2b(digest_size=16)
    for plane in image:
        digest.update(b"none" if plane is None else str(plane.shape).encode() + plane.tobytes())
    return digest.hexdigest()
