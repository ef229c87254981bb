"""One image's key points and descriptors inside ``match_images``, worked out once for all pairs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ml.keypoints import DetectorConfig, match_descriptors, match_images, pipeline
from ml.keypoints.describe import Descriptor
from ml.keypoints.views import View, make_view
from ml.types import ImageU8, Matches

Sides = tuple[ImageU8, ImageU8 | None]
"""An image and its mask, 0 and 255, or None."""


@dataclass(slots=True)
class SideCache:
    """Sides of pairs by image, descriptor and detector settings.

    ``match_images`` itself is called for every pair; while ``in_use`` it finds sides that it has
    seen before here. A run holds one cache for each descriptor, so that memory stays bounded.
    """

    _sides: dict[Any, Any] = field(default_factory=dict)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within this, images are detected and described once."""
        original = pipeline._side

        def side(view: View, descriptor: Descriptor, detection: DetectorConfig) -> Any:
            digest = hashlib.blake2b(view.image.tobytes(), digest_size=16)
            digest.update(view.mask.tobytes())
            key = (digest.digest(), view.image.shape, descriptor.name, detection)
            if key not in self._sides:
                self._sides[key] = original(view, descriptor, detection)
            return self._sides[key]

        pipeline._side = side
        try:
            yield
        finally:
            pipeline._side = original

    def match(self, a: Sides, b: Sides, name: str, keypoints: int) -> Matches:
        """``match_images`` of two images with their masks."""
        with self.in_use():
            return _match(a, b, name, keypoints)

    def mutual(
        self,
        a: Sides,
        b: Sides,
        descriptor: Descriptor,
        *,
        keypoints: int,
        ratio: float | None = None,
    ) -> Matches:
        """Mutual nearest neighbours of the same key points: no geometry, nothing refined."""
        detection = DetectorConfig(name=descriptor.detector, max_keypoints=keypoints)
        with self.in_use():
            side_a, side_b = (
                pipeline._side(make_view(image, mask=mask), descriptor, detection)
                for image, mask in (a, b)
            )
        pairs, distance = match_descriptors(
            side_a.rows, side_b.rows, strategy="mutual", ratio=ratio
        )
        xy_a = side_a.view.to_image(side_a.points.xy[pairs[:, 0]])
        xy_b = side_b.view.to_image(side_b.points.xy[pairs[:, 1]])
        return Matches(xy_a, xy_b, -distance)


def seconds_a_pair(pairs: Sequence[tuple[Sides, Sides]], name: str, keypoints: int) -> float:
    """Median time of ``match_images`` with nothing kept from before; NaN without pairs."""
    seconds = []
    for a, b in pairs:
        started = time.perf_counter()
        _match(a, b, name, keypoints)
        seconds.append(time.perf_counter() - started)
    return round(float(np.median(seconds)), 4) if seconds else float("nan")


def _match(a: Sides, b: Sides, name: str, keypoints: int) -> Matches:
    return match_images(a[0], b[0], name, max_keypoints=keypoints, mask_a=a[1], mask_b=b[1])
