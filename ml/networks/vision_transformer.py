"""Vision transformer of pathology foundation models, with the tensor names of their files.

Their authors publish weights for ``VisionTransformer`` of ``timm``. This is the same computation in
plain torch, so that these files can be used without ``timm``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_EPSILON = 1e-6
"""Epsilon of the layer norms; timm's value, not torch's."""


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Sizes of a ``VisionTransformer``."""

    width: int  # of a token
    depth: int  # layers
    heads: int
    patch_px: int  # side of the square that becomes a token
    input_px: int  # side of the image that the position embeddings are for
    hidden: int  # outputs of the first linear layer of an MLP, including the gate
    gated: bool = False  # SwiGLU: one half of the hidden units gates the other
    registers: int = 0  # register tokens
    layer_scale: bool = True  # learned factors of each residual branch
    prefix_positions: bool = True  # class and register tokens have position embeddings

    @property
    def prefix(self) -> int:
        """Number of tokens before the patches: class token and registers."""
        return 1 + self.registers

    @property
    def patches(self) -> int:
        """Number of patch tokens."""
        return (self.input_px // self.patch_px) ** 2


class VisionTransformer(nn.Module):
    """Vision transformer; returns class token, registers and patch tokens in row order.

    Source: Dosovitskiy et al. 2020, eq. 1-4; registers: Darcet et al. 2023, section 2.2; gated MLP:
        Shazeer 2020, eq. 6 (SwiGLU); layer scale: Touvron et al. 2021, eq. 4.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        width, patch = config.width, config.patch_px
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        if config.registers:
            self.reg_token = nn.Parameter(torch.zeros(1, config.registers, width))
        positions = config.patches + (config.prefix if config.prefix_positions else 0)
        self.pos_embed = nn.Parameter(torch.randn(1, positions, width) * 0.02)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.blocks = nn.ModuleList(_Layer(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(width, eps=_EPSILON)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, input_px, input_px) normalised pixels to (B, prefix + patches, width)."""
        x = self.patch_embed["proj"](pixels).flatten(2).transpose(1, 2)
        prefix = [self.cls_token.expand(len(x), -1, -1)]
        if self.config.registers:
            prefix.append(self.reg_token.expand(len(x), -1, -1))
        if self.config.prefix_positions:
            x = torch.cat([*prefix, x], dim=1) + self.pos_embed
        else:
            x = torch.cat([*prefix, x + self.pos_embed], dim=1)
        for block in self.blocks:
            x = block(x)
        tokens: Tensor = self.norm(x)
        return tokens


class PooledTransformer(nn.Module):
    """Vision transformer with attention pooling by a learned query and a layer norm (CONCH).

    Source: Lu et al. 2024 and its published code, the image tower without the last projection.
    """

    def __init__(self, config: TransformerConfig, *, out_width: int, heads: int) -> None:
        super().__init__()
        self.trunk = VisionTransformer(config)
        self.attn_pool_contrast = _Query(config.width, out_width=out_width, heads=heads)
        self.ln_contrast = nn.LayerNorm(out_width)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, input_px, input_px) normalised pixels to (B, out_width)."""
        pooled: Tensor = self.ln_contrast(self.attn_pool_contrast(self.trunk(pixels)))
        return pooled


class _Query(nn.Module):
    def __init__(self, width: int, *, out_width: int, heads: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, out_width))
        self.attn = nn.MultiheadAttention(
            out_width, heads, kdim=width, vdim=width, batch_first=True
        )
        self.ln_q, self.ln_k = nn.LayerNorm(out_width), nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N, width) to (B, out_width)."""
        query = self.ln_q(self.query).expand(len(tokens), 1, -1)
        keys = self.ln_k(tokens)
        pooled: Tensor = self.attn(query, keys, keys, need_weights=False)[0]
        return pooled[:, 0]


class _Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.width
        self.norm1 = nn.LayerNorm(width, eps=_EPSILON)
        self.attn = _Attention(width, config.heads)
        self.norm2 = nn.LayerNorm(width, eps=_EPSILON)
        self.mlp = _Mlp(config)
        self.ls1 = _Scale(width) if config.layer_scale else nn.Identity()
        self.ls2 = _Scale(width) if config.layer_scale else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, width) to (B, N, width)."""
        x = x + self.ls1(self.attn(self.norm1(x)))
        out: Tensor = x + self.ls2(self.mlp(self.norm2(x)))
        return out


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        qkv = self.qkv(x).view(batch, count, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, count, width))
        return out


class _Mlp(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.gated = config.gated
        self.fc1 = nn.Linear(config.width, config.hidden)
        self.fc2 = nn.Linear(config.hidden // 2 if config.gated else config.hidden, config.width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        if self.gated:
            gate, value = x.chunk(2, dim=-1)
            x = functional.silu(gate) * value
        else:
            x = functional.gelu(x)
        out: Tensor = self.fc2(x)
        return out


class _Scale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), 1e-5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma
