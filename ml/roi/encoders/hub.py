"""Networks of the Hugging Face hub as patch encoders: ResNet-50, or any by name or path.

A lab can use a pathology model that it has a licence for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import torch

from ml.errors import WeightsError
from ml.extras import require_extra
from ml.roi.stain import RUIFROK_HE, WHITE, StainEstimate, deconvolve
from ml.types import ArrayF32, ImageU8

RESNET50 = "microsoft/resnet-50"
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
_TARGET_STRENGTH = np.array([1.4, 0.8], np.float32)
"""Optical densities of fully stained haematoxylin and eosin in the image a network is shown."""
_BATCH = 16


class HubEncoder:
    """A pre-trained vision network on stain-normalised patches.

    Args:
        name: what an ``EncoderConfig`` calls it.
        model: of transformers; answers ``pooler_output`` or ``last_hidden_state``.
    """

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model.eval()
        side = getattr(model.config, "image_size", 224)
        self._side = int(side if isinstance(side, int) else side[0])
        self.dim = int(self._vectors(np.zeros((1, 3, self._side, self._side), np.float32)).shape[1])
        self.scale = np.ones(self.dim, np.float32)
        self.alike = np.zeros(self.dim, np.bool_)

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``."""
        images = np.stack([self._input(patch, stains) for patch in patches])
        parts = [self._vectors(images[i : i + _BATCH]) for i in range(0, len(images), _BATCH)]
        return np.concatenate(parts)

    def _input(self, patch: ImageU8, stains: StainEstimate) -> ArrayF32:
        image = stain_normalised(patch, stains)
        if image.shape[0] != self._side:
            side = (self._side, self._side)
            image = np.asarray(cv2.resize(image, side, interpolation=cv2.INTER_AREA), np.float32)
        return np.ascontiguousarray(((image - _MEAN) / _DEVIATION).transpose(2, 0, 1), np.float32)

    def _vectors(self, images: ArrayF32) -> ArrayF32:
        with torch.inference_mode():
            found = self._model(pixel_values=torch.from_numpy(images))
        pooled = getattr(found, "pooler_output", None)
        if pooled is None:
            pooled = found.last_hidden_state[:, 0]
        return np.asarray(pooled.flatten(1).float().numpy().copy(), dtype=np.float32)


def stain_normalised(patch: ImageU8, stains: StainEstimate) -> ArrayF32:
    """(h, w, 3) float32 RGB in [0, 1]: the same concentrations in one and the same stain."""
    unit = (RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)).astype(np.float32)
    od = (deconvolve(patch, stains) * _TARGET_STRENGTH) @ unit
    return np.clip((WHITE + 1) * np.power(np.float32(10), -od) / 256, 0, 1).astype(np.float32)


@lru_cache(maxsize=4)
def load_hub_encoder(name: str, source: str) -> HubEncoder:
    """A network by its name on the hub, or the folder it was saved to.

    Args:
        name: what an ``EncoderConfig`` calls it.
        source: hub name or path; needs the network once, unless it is a path or cached.
    Raises:
        WeightsError: there is no such network, or it does not see images.
        MissingDependencyError: transformers is not installed.
    """
    require_extra("transformers", extra="hub")
    from transformers import AutoModel  # here: a second of imports that our own networks spare

    try:
        return HubEncoder(name, AutoModel.from_pretrained(source))
    except (OSError, ValueError, TypeError) as error:
        line = str(error).strip().splitlines()[0]
        raise WeightsError(f"{name}: no image network to be had from {source!r}: {line}") from error
