"""Several patch encoders side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.errors import BadInputError
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8


class CombinedEncoder:
    """The vectors of its parts one after the other.

    Args:
        parts: encoders.
        weights: how much each part counts in ``scale``; by default the same.
    Raises:
        BadInputError: not one weight a part.
    """

    def __init__(self, parts: Sequence[PatchEncoder], weights: Sequence[float] = ()) -> None:
        weights = tuple(weights) or (1.0,) * len(parts)
        if len(weights) != len(parts):
            raise BadInputError(f"{len(weights)} weights for {len(parts)} patch encoders")
        self.parts = tuple(parts)
        self.name = "+".join(part.name for part in parts)
        self.batch = max(part.batch for part in parts)
        self.dim = sum(part.dim for part in parts)
        unit = [part.scale / np.linalg.norm(part.scale) for part in parts]
        scale = np.concatenate([u * weight for u, weight in zip(unit, weights, strict=True)])
        self.alike = np.concatenate([part.alike for part in parts])
        self.scale = (scale / np.sqrt(np.mean(scale**2))).astype(np.float32)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``."""
        return np.concatenate([part.encode(patches, stains) for part in self.parts], axis=1)
