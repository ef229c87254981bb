"""Patch encoder from a published network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ml.errors import WeightsError
from ml.networks.device import Compute, compile_network
from ml.roi.encoders.transform import ImageTransform
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8

GPU_BATCH = 64
"""Patches per batch: a ViT-g/14 needs 6 GB for them, and more are not faster."""


class PublishedEncoder:
    """A published network with the preprocessing of its authors.

    Colours are used, after normalisation by ``EncoderConfig.stain``. On a CPU patches are encoded
    one at a time in float32, which is the reference. On a GPU they are encoded in batches in the
    precision of the authors; vectors agree with the reference to about 1 % of their length.

    Args:
        name: Name in an ``EncoderConfig``.
        network: (B, 3, S, S) float32 to (B, D).
        transform: Preprocessing of a patch.
        device: Device of the network.
        half: Precision on a GPU, a dtype name of torch; "float32" for full precision.
    """

    uses_stains = False

    def __init__(
        self,
        name: str,
        network: nn.Module,
        transform: ImageTransform,
        *,
        device: torch.device,
        half: str = "float16",
    ) -> None:
        self.name, self.transform, self.device = name, transform, device
        self._compute = Compute(device, batched=device.type != "cpu", half=getattr(torch, half))
        frozen = network.eval().requires_grad_(requires_grad=False).to(device)
        self._network = compile_network(frozen, self._compute)
        self.batch = GPU_BATCH if self._compute.batched else 1
        side = transform.crop_px
        self.dim = int(self._forward(np.zeros((1, 3, side, side), np.float32)).shape[1])

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; stains are not used."""
        parts = []
        for start in range(0, len(patches), self.batch):
            images = [self.transform.apply(p) for p in patches[start : start + self.batch]]
            parts.append(self._forward(np.stack(images)))
        return np.concatenate(parts)

    def _forward(self, images: ArrayF32) -> ArrayF32:
        return self._compute.forward(self._vectors, images, reference=self.batch, batch=self.batch)

    def _vectors(self, images: Tensor) -> Tensor:
        with self._compute.precision():
            vectors: Tensor = self._network(images)
        if vectors.ndim != 2:
            raise WeightsError(
                f"{self.name}: expected one vector for each image, got {tuple(vectors.shape)}"
            )
        return vectors
