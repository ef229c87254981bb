"""Several patch encoders side by side, counting alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8


class CombinedEncoder:
    """The vectors of its parts one after the other; each part has the same say."""

    def __init__(self, parts: Sequence[PatchEncoder]) -> None:
        self.parts = tuple(parts)
        self.name = "+".join(part.name for part in parts)
        self.dim = sum(part.dim for part in parts)
        scale = np.concatenate([part.scale / np.linalg.norm(part.scale) for part in parts])
        self.scale = (scale / np.sqrt(np.mean(scale**2))).astype(np.float32)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``."""
        return np.concatenate([part.encode(patches, stains) for part in self.parts], axis=1)
