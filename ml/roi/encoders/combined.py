"""Concatenation of patch encoders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8


class CombinedEncoder:
    """Concatenates the vectors of its parts."""

    def __init__(self, parts: Sequence[PatchEncoder]) -> None:
        self.parts = tuple(parts)
        self.name = "+".join(part.name for part in parts)
        self.batch = max(part.batch for part in parts)
        self.uses_stains = any(part.uses_stains for part in parts)
        self.dim = sum(part.dim for part in parts)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``."""
        return np.concatenate([part.encode(patches, stains) for part in self.parts], axis=1)
