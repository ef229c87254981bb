"""A published network as a patch encoder: batched on a GPU in half precision, exact on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ml.errors import WeightsError
from ml.networks.device import Compute, compiled
from ml.roi.encoders.transform import ImageTransform
from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8

GPU_BATCH = 64
"""Patches at a time: a ViT-g/14 takes 6 GB for this many, and more do not make it faster."""


class PublishedEncoder:
    """A network that was trained elsewhere, given patches as its authors gave them.

    It sees the slide's colours; ``EncoderConfig.stain`` normalises them first. On a CPU patches go
    through one at a time in float32, so that no vector depends on another patch: these vectors are
    the reference. On a GPU they go in batches, in the precision its authors use; the
    answer is float32 and agrees to about 1 % of a vector's length (5 % is refused, see ``probe``).

    Args:
        name: what an ``EncoderConfig`` calls it.
        network: (B, 3, S, S) float32 to (B, D).
        transform: what it wants done to a patch.
        device: where it runs.
        half: precision on a GPU, a name of torch's; "float32" for none.
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
        placed = network.eval().requires_grad_(requires_grad=False).to(device)
        self._network = compiled(placed, self._compute)
        self.batch = GPU_BATCH if self._compute.batched else 1
        side = transform.crop_px
        self.dim = int(self._forward(np.zeros((1, 3, side, side), np.float32)).shape[1])

    def encode(self, patches: Sequence[ImageU8], stains: StainEstimate) -> ArrayF32:
        """See ``PatchEncoder``; the stains play no part."""
        parts = []
        for start in range(0, len(patches), self.batch):
            images = [self.transform.apply(p) for p in patches[start : start + self.batch]]
            parts.append(self._forward(np.stack(images)))
        return np.concatenate(parts)

    def _forward(self, images: ArrayF32) -> ArrayF32:
        return self._compute.forward(self._vectors, images, reference=self.batch, batch=self.batch)

    def _vectors(self, images: Tensor) -> Tensor:
        with self._compute.precision():
            found: Tensor = self._network(images)
        if found.ndim != 2:
            raise WeightsError(
                f"{self.name}: expected one vector for each image, got {tuple(found.shape)}"
            )
        return found
