"""Descriptors by name: what every one of them can do, and how it is loaded."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy.typing as npt

from ml.errors import UnknownNameError
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor
from ml.types import ArrayF32, Keypoints

DEFAULT_NAME = "tessera"
"""Our own. It is ahead of AKAZE, the best of the hand-crafted four, under the papers' protocol and
among mutual nearest neighbours of independently detected key points (docs/models/tessera.md), and
not behind it after the whole pipeline. It takes two to three times as long: ask for ``akaze`` where
time counts most."""

LEARNED: dict[str, str] = {
    "triplet": "ml.keypoints.descriptors.learned",
    "cnn": "ml.keypoints.descriptors.learned",
    "graph": "ml.keypoints.descriptors.learned",
    "tessera": "ml.keypoints.descriptors.tessera",
    "vit": "ml.keypoints.descriptors.vit",
}
"""Learned descriptors: name -> module with ``load(name) -> Descriptor``, imported when asked for,
so that the hand-crafted four never wait for torch."""

OF_FILES = ("triplet", "cnn", "graph", "vit")
"""Those that also load from other weights than the shipped ones."""

DESCRIPTOR_NAMES: tuple[str, ...] = (*CLASSICAL_NAMES, *LEARNED, "default")
"""Names that ``load_descriptor`` knows. ``default`` is ``DEFAULT_NAME``."""


class Descriptor(Protocol):
    """Turns key points of an image into comparable vectors (Euclidean distance).

    Attributes:
        name: what ``load_descriptor`` was asked for; never ``default``, but what it stands for.
        dim: D.
        detector: the detector it goes with.
        ratio: the ratio test that suits its distances.
    """

    name: str
    dim: int
    detector: str
    ratio: float

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """(H, W[, 1|3|4]) image, (N, 2), (N,) -> (N, D) float32, one row a point, no NaN."""

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """As ``describe``, with the scale and angle of the detector where they are of use."""


def load_descriptor(name: str = "default") -> Descriptor:
    """Load a descriptor by name.

    Args:
        name: ``triplet:FILE``, ``cnn:FILE``, ``graph:FILE`` and ``vit:FILE`` name other weights,
            ``vit:PATH_OR_NAME`` another backbone.
    Raises:
        UnknownNameError: not one of ``DESCRIPTOR_NAMES``, or one that has no other weights.
        WeightsError: the weights of a learned one are missing, damaged or of another one.
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
