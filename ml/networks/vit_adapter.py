"""Frozen vision transformer with a trainable transformer layer that adapts it to matching.

The backbone is a DINOv2-like model of ``transformers`` (by folder or hub name), or ``small``: a
convolutional stem with a few transformer layers that can be trained from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ml.errors import WeightsError
from ml.extras import require_extra

SMALL = "small"
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
"""Mean and deviation of RGB in [0, 1] over ImageNet, used by DINOv2 and other networks."""


@dataclass(frozen=True, slots=True)
class SmallVitConfig:
    """Sizes of ``SmallBackbone``; its patches are 2^len(stem) px wide."""

    stem: tuple[int, ...] = (32, 64, 128)  # channels; each stage halves the side
    width: int = 128  # E, of the tokens
    depth: int = 3  # transformer layers
    heads: int = 4
    mlp_ratio: float = 2.0


@dataclass(frozen=True, slots=True)
class VitConfig:
    """Configuration of a ``VitMatcher``."""

    backbone: str = SMALL  # or a folder or hub name of a transformers model
    small: SmallVitConfig = field(default_factory=SmallVitConfig)  # used by ``small`` only
    layers: int = 1  # trainable layers after the backbone (paper: 1); 0: the frozen backbone
    heads: int = 4  # of the trainable layers
    mlp_ratio: float = 4.0  # of the trainable layers, as in a ViT
    max_tokens: int = 3600  # images with more patches are scaled down


class TransformerBlock(nn.Module):
    """A pre-norm transformer layer.

    Source: Dosovitskiy et al. 2020, eq. 2-3; dinov2-adaptation-endoscopic-matching, eq. 4 (Psi).
    """

    def __init__(self, width: int, heads: int, mlp_ratio: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        hidden = int(width * mlp_ratio)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, E) to (B, N, E)."""
        batch, count, width = x.shape
        qkv = self.qkv(self.norm_1(x)).view(batch, count, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, count, width))
        result: Tensor = x + self.mlp(self.norm_2(x))
        return result


class SmallBackbone(nn.Module):
    """Convolutional stem, a depthwise convolution for position, then transformer layers.

    Position is encoded by the zero padding of the convolutions only, so that images of any size and
    aspect can be used and descriptors cannot rely on absolute coordinates.
    """

    def __init__(self, config: SmallVitConfig) -> None:
        super().__init__()
        self.width, self.patch_px = config.width, 2 ** len(config.stem)
        stages: list[nn.Module] = []
        in_channels = 3
        for channels in config.stem:
            stages += [_conv(in_channels, channels, stride=2), _conv(channels, channels, stride=1)]
            in_channels = channels
        self.stem = nn.Sequential(*stages)
        self.embed = nn.Conv2d(in_channels, config.width, 1)
        self.position = nn.Conv2d(config.width, config.width, 3, 1, 1, groups=config.width)
        self.blocks = nn.ModuleList(
            TransformerBlock(config.width, config.heads, config.mlp_ratio)
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, h * P, w * P) normalised pixels to (B, h * w, E)."""
        x = self.embed(self.stem(pixels))
        x = (x + self.position(x)).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        tokens: Tensor = self.norm(x)
        return tokens


class TransformersBackbone(nn.Module):
    """ViT of ``transformers``: the last hidden state without class and register tokens.

    The model interpolates position embeddings to any size and aspect.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.width = int(model.config.hidden_size)
        self.patch_px = int(model.config.patch_size)
        self.extra = 1 + int(getattr(model.config, "num_register_tokens", 0) or 0)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, h * P, w * P) normalised pixels to (B, h * w, E)."""
        tokens: Tensor = self.model(pixel_values=pixels).last_hidden_state[:, self.extra :]
        return tokens


class VitMatcher(nn.Module):
    """Backbone Phi and adapter Psi: maps an image to a grid of unit descriptors.

    Source: dinov2-adaptation-endoscopic-matching, eq. 3-5.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, config: VitConfig, backbone: nn.Module | None = None) -> None:
        """``backbone``: Module instead of the one named in ``config``.

        Raises:
            WeightsError: See ``make_backbone``; or the width is no multiple of the heads.
            MissingDependencyError: See ``make_backbone``.
        """
        super().__init__()
        self.config = config
        self.backbone = backbone if backbone is not None else make_backbone(config)
        self.width, self.patch_px = int(self.backbone.width), int(self.backbone.patch_px)  # type: ignore[arg-type]
        if self.width % config.heads:
            raise WeightsError(
                f"heads: expected a divisor of the backbone's width {self.width},"
                f" got {config.heads}"
            )
        self.adapter = nn.ModuleList(
            TransformerBlock(self.width, config.heads, config.mlp_ratio)
            for _ in range(config.layers)
        )
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(IMAGENET_STD).view(1, 3, 1, 1), persistent=False)

    def semantic(self, pixels: Tensor) -> Tensor:
        """Map images (B, 3, H, W) in [0, 1], sides multiples of a patch, to F (B, N, E), eq. 3."""
        tokens: Tensor = self.backbone((pixels - self.mean) / self.std)
        return tokens

    def adapt(self, tokens: Tensor) -> Tensor:
        """Map F (B, N, E) to M (B, N, E), eq. 4."""
        for block in self.adapter:
            tokens = block(tokens)
        return tokens

    def forward(self, pixels: Tensor) -> Tensor:
        """Map images (B, 3, H, W) in [0, 1] to (B, E, H / P, W / P) of unit length along E."""
        height, width = pixels.shape[2] // self.patch_px, pixels.shape[3] // self.patch_px
        tokens = functional.normalize(self.adapt(self.semantic(pixels)), dim=2)
        return tokens.transpose(1, 2).reshape(len(pixels), self.width, height, width)


def make_backbone(config: VitConfig) -> nn.Module:
    """Create the backbone of a configuration.

    Raises:
        WeightsError: Unknown model, or one without patch size and hidden size.
        MissingDependencyError: transformers is needed and not installed.
    """
    if config.backbone == SMALL:
        return SmallBackbone(config.small)
    require_extra("transformers", extra="hub")
    from transformers import AutoModel

    try:
        model = AutoModel.from_pretrained(config.backbone)
    except (OSError, ValueError) as error:
        raise WeightsError(
            "backbone: expected a folder or hub name of a transformers model,"
            f" {config.backbone.rstrip('/').rsplit('/', 1)[-1]!r} cannot be loaded"
        ) from error
    if not hasattr(model.config, "patch_size") or not hasattr(model.config, "hidden_size"):
        raise WeightsError(
            f"backbone: expected a vision transformer such as DINOv2, got {type(model).__name__}"
        )
    return TransformersBackbone(model.eval())


def _conv(in_channels: int, out_channels: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.GELU(),
    )
