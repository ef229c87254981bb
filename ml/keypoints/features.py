"""What is taken from one image: its key points and their descriptors, to match with any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ml.errors import BadInputError
from ml.keypoints.descriptors.registry import Descriptor, load_descriptor
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.parallel import alone
from ml.keypoints.views import WorkingView, working_view
from ml.types import ArrayF32, Keypoints


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """What one image brings to a match: extracted once, matched to as many others as wanted.

    Attributes:
        view: the part of the image that is worked on.
        keypoints: N key points, in pixels of the view.
        descriptors: (N, D) float32, one row a key point; a row of zeros never matches.
        descriptor: name of the descriptor that made them.
        max_keypoints: this many were asked for; N may be less.
    """

    view: WorkingView
    keypoints: Keypoints
    descriptors: ArrayF32
    descriptor: str
    max_keypoints: int

    @property
    def xy(self) -> ArrayF32:
        """(N, 2) float32: the key points in pixels of the image."""
        return self.view.to_image(self.keypoints.xy)


def extract(
    image: npt.NDArray[Any],
    *,
    descriptor: str | Descriptor = "default",
    detector: str | None = None,
    max_keypoints: int = 1000,
    mask: npt.NDArray[Any] | None = None,
) -> ImageFeatures:
    """Detect and describe the key points of one image, for ``match_features``.

    Args:
        image: (H, W[, 1|3|4]), any size and bit depth.
        descriptor: a name of ``load_descriptor``, or what it returned.
        detector: a name of ``detect.DETECTOR_NAMES``; None takes the descriptor's own.
        max_keypoints: at most this many key points.
        mask: (H, W) bool, or above 127, where key points may lie; None is anywhere. In any case
            only within the scope's field of view as it is estimated.
    Raises:
        UnknownNameError: no such descriptor or detector.
        BadInputError: max_keypoints below 1; ShapeError for what is not an image.
    """
    loaded, detection = load_chosen(descriptor, detector, max_keypoints)
    view = working_view(image, mask=mask)
    return alone(lambda view: extract_view(view, loaded, detection), view)


def load_chosen(
    descriptor: str | Descriptor, detector: str | None, max_keypoints: int
) -> tuple[Descriptor, DetectorConfig]:
    """The descriptor, loaded, and how its key points are detected.

    Raises:
        UnknownNameError: no such descriptor. BadInputError: max_keypoints below 1.
    """
    if max_keypoints < 1:
        raise BadInputError(f"max_keypoints: expected at least 1, got {max_keypoints}")
    loaded = load_descriptor(descriptor) if isinstance(descriptor, str) else descriptor
    return loaded, DetectorConfig(name=detector or loaded.detector, max_keypoints=max_keypoints)


def extract_view(
    view: WorkingView, descriptor: Descriptor, detection: DetectorConfig
) -> ImageFeatures:
    """Detect and describe the key points of a view."""
    keypoints = detect_keypoints(view.image, config=detection, mask=view.mask)
    rows = descriptor.describe_keypoints(view.image, keypoints)
    return ImageFeatures(view, keypoints, rows, descriptor.name, detection.max_keypoints)
