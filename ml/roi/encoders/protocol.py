"""Interface of patch encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8


@runtime_checkable
class PatchEncoder(Protocol):
    """Encodes patches as vectors; thread-safe and deterministic.

    Attributes:
        name: Identifies the vectors together with the weights; stored with region encoders.
        dim: Length of a vector.
        batch: Preferred batch size; with 1, ``encode`` is called from several threads.
        uses_stains: Whether ``stains`` is used; if not, regions can share batches.
    """

    name: str
    dim: int
    batch: int
    uses_stains: bool

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """Encode patches of one region.

        Args:
            patches: N patches (P, P, 3) uint8 RGB at the magnification of the encoder, N >= 1; P
                is 224, or that of the recipe of a published network.
            stains: Stains of the region.
        Returns:
            (N, dim) float32.
        """
        ...
