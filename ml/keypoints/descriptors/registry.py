"""Protocol and registry of descriptors."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy.typing as npt

from ml.errors import UnknownNameError
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor
from ml.types import ArrayF32, Keypoints

DEFAULT_NAME = "tessera"
"""Default descriptor. It is better than AKAZE, the best hand-crafted one, under the protocol of the
papers and among mutual nearest neighbours of detected key points (docs/models/tessera.md), and not
worse after the pipeline. It takes two to three times as long; use ``akaze`` if time matters."""

LEARNED: dict[str, str] = {
    "triplet": "ml.keypoints.descriptors.learned",
    "cnn": "ml.keypoints.descriptors.learned",
    "graph": "ml.keypoints.descriptors.learned",
    "tessera": "ml.keypoints.descriptors.tessera",
    "vit": "ml.keypoints.descriptors.vit",
}
"""Modules of learned descriptors with ``load(name) -> Descriptor``, imported on demand so that the
hand-crafted ones do not load torch."""

OF_FILES = ("triplet", "cnn", "graph", "vit")
"""Descriptors that can also be loaded from other weights than the shipped ones."""

DESCRIPTOR_NAMES: tuple[str, ...] = (*CLASSICAL_NAMES, *LEARNED, "default")
"""Names for ``load_descriptor``. ``default`` is ``DEFAULT_NAME``."""


class Descriptor(Protocol):
    """Describes key points of an image by vectors that are compared by Euclidean distance.

    Attributes:
        name: Resolved name, never ``default``.
        dim: Length D of a vector.
        detector: Default detector.
        ratio: Default of the ratio test.
    """

    name: str
    dim: int
    detector: str
    ratio: float

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Describe points (N, 2) of an image (H, W[, 1|3|4]): (N, D) float32, finite."""

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """Describe key points, with their scale and angle if the descriptor uses them."""


def load_descriptor(name: str = "default") -> Descriptor:
    """Load a descriptor by name.

    Args:
        name: One of ``DESCRIPTOR_NAMES``; ``triplet:FILE``, ``cnn:FILE``, ``graph:FILE`` or
            ``vit:FILE`` for other weights, ``vit:PATH_OR_NAME`` for another backbone.
    Raises:
        UnknownNameError: Unknown name, or other weights are not supported.
        WeightsError: The weights are missing, damaged or of another descriptor.
    """
    family, has_file, _ = name.partition(":")
    if family not in (OF_FILES if has_file else DESCRIPTOR_NAMES):
        raise UnknownNameError("descriptor", name, list(DESCRIPTOR_NAMES))
    resolved = DEFAULT_NAME if name == "default" else name
    module = LEARNED.get(resolved.partition(":")[0])
    if module is not None:
        loaded: Descriptor = importlib.import_module(module).load(resolved)
        return loaded
    return ClassicalDescriptor(resolved)
