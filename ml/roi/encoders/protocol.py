"""What every patch encoder is: patches and the stains of their region in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8


@runtime_checkable
class PatchEncoder(Protocol):
    """Turns patches into vectors; thread-safe, the same patch gives the same vector.

    Attributes:
        name: with the weights, decides the vectors: stored with every encoder trained on them.
        dim: length of a vector.
        batch: patches it wants at a time; with 1 it gets them one by one from several threads.
        uses_stains: whether ``stains`` plays a part; where not, regions share their batches.
    """

    name: str
    dim: int
    batch: int
    uses_stains: bool

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """Encode patches of one region.

        Args:
            patches: N of (P, P, 3) uint8 RGB at the encoder's magnification, N >= 1; P is 224 for
                our own encoders, the recipe's for a published one.
            stains: stains of the region the patches are from.
        Returns:
            (N, dim) float32.
        """
        ...
