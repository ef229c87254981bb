"""The classical features as a patch encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ml.roi.measures.features import FEATURE_DIM, FEATURES_NAME, patch_features
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8


class ClassicalEncoder:
    """See ``ml.roi.measures.features``."""

    name = FEATURES_NAME
    batch = 1
    uses_stains = True
    dim = FEATURE_DIM

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``."""
        return np.stack([patch_features(patch, stains) for patch in patches])
