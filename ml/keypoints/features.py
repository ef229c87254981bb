"""Key points and descriptors of an image, for matching with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ml.errors import BadInputError
from ml.keypoints.descriptors.registry import Descriptor, load_descriptor
from ml.keypoints.detect import DetectorConfig, detect_keypoints
from ml.keypoints.parallel import run_single
from ml.keypoints.views import WorkingView, working_view
from ml.types import ArrayF32, Keypoints


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """Key points and descriptors of an image, for matching with any number of others.

    Attributes:
        view: Working view of the image.
        keypoints: N key points, in pixels of the view.
        descriptors: (N, D) float32; rows of zeros never match.
        descriptor: Name of the descriptor.
        max_keypoints: Requested number; N may be less.
    """

    view: WorkingView
    keypoints: Keypoints
    descriptors: ArrayF32
    descriptor: str
    max_keypoints: int

    @property
    def xy(self) -> ArrayF32:
        """Key points (N, 2) float32 in pixels of the image."""
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
        descriptor: Descriptor or its name, see ``load_descriptor``.
        detector: One of ``detect.DETECTOR_NAMES``; None for the default of the descriptor.
        max_keypoints: Largest number of key points.
        mask: (H, W), allowed area: True, or above 127; None for all. Key points are always inside
            the estimated field of view.
    Raises:
        UnknownNameError: Unknown descriptor or detector.
        BadInputError: ``max_keypoints`` below 1.
        ShapeError: Not an image.
    """
    loaded, detection = load_stages(descriptor, detector, max_keypoints)
    view = working_view(image, mask=mask)
    return run_single(lambda view: extract_view(view, loaded, detection), view)


def load_stages(
    descriptor: str | Descriptor, detector: str | None, max_keypoints: int
) -> tuple[Descriptor, DetectorConfig]:
    """Load a descriptor, and create the configuration of its detector.

    Raises:
        UnknownNameError: Unknown descriptor.
        BadInputError: ``max_keypoints`` below 1.
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
