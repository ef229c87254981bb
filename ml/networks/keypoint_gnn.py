"""Attentional graph network over the key points of one image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from ml.errors import ShapeError, UnknownNameError

POSITIONS: tuple[str, ...] = ("image", "radial", "none")
ATTENTIONS: tuple[str, ...] = ("scaled", "cosine")
QUERY_CHUNK = 1024
"""Rows of the attention matrix per chunk: 1,024 x 10,000 float32 are 40 MB."""

FIRST_SCALE, LAST_SCALE = 20.0, 100.0
"""Initial and largest scale of cosines in the softmax. Cosines of unrelated 128-vectors have a
standard deviation of 0.09, 1.8 after scaling; above the largest scale, gradients vanish."""


@dataclass(frozen=True, slots=True)
class KeypointGnnConfig:
    """Sizes of a ``KeypointGnn``."""

    dim: int = 128  # D, of features, queries, keys, values and output
    position: str = "image"  # input of the position encoder, see ``normalised_positions``
    position_hidden: tuple[int, ...] = (32, 64)  # hidden layers of its MLP
    hidden: int = 256  # of the MLP of equation 3
    attention: str = "scaled"  # product over sqrt(D); or "cosine" times a learned scale
    nearest: int = 0  # key points that a key point attends to, including itself; 0 for all


class KeypointGnn(nn.Module):
    """Position encoding, one attention layer over all key points, residual update.

    Source: graph-ssl-endoscopic-matching, section 3.2.2, equations 2 to 4. Equation 4 prints the
        queries, keys and values as functions of the output 1f of the layer; here they are functions
        of its input 0f, as in the transformer encoder it cites. Departs from it by 1 / sqrt(D) in
        the softmax (D batch-normalised features would saturate it), by features of unit length,
        by a last layer of the MLP of equation 3 that is initialised with zeros, so that training
        starts from the features of the CNN, and by ``cosine`` and ``nearest``. With "scaled", the
        attention over features of unit length is flat.
    """

    def __init__(self, config: KeypointGnnConfig) -> None:
        super().__init__()
        if config.position not in POSITIONS:
            raise UnknownNameError("position encoding", config.position, list(POSITIONS))
        if config.attention not in ATTENTIONS:
            raise UnknownNameError("attention", config.attention, list(ATTENTIONS))
        self.config = config
        dim = config.dim
        inputs = 1 if config.position == "radial" else 2
        self.position = _mlp((inputs, *config.position_hidden, dim))
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.update = _mlp((2 * dim, config.hidden, dim))
        if config.attention == "cosine":
            self.log_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))
        for last in (self.position[-1], self.update[-1]):
            assert isinstance(last, nn.Linear)  # noqa: S101 - for the type checker
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, features: Tensor, positions: Tensor) -> Tensor:
        """Add context to the features of the key points of one image.

        Args:
            features: (N, D) of the CNN.
            positions: (N, 2) of ``normalised_positions``.
        Returns:
            (N, D), not normalised; N may be 0.
        Raises:
            ShapeError: Different numbers of rows, or wrong numbers of columns.
        """
        if features.shape != (len(positions), self.config.dim) or positions.shape[1:] != (2,):
            raise ShapeError(
                "features and positions",
                expected=f"(N, {self.config.dim}) and (N, 2)",
                actual=f"{tuple(features.shape)} and {tuple(positions.shape)}",
            )
        f = nn.functional.normalize(features, dim=1)
        f0 = self.encode(f, positions)
        message = self.messages(f0, positions)
        out: Tensor = f0 + self.update(torch.cat([f, message], dim=1))
        return out

    def encode(self, features: Tensor, positions: Tensor) -> Tensor:
        """Add the encoded positions (N, 2) to features (N, D), equation 2."""
        if self.config.position == "none":
            return features
        if self.config.position == "radial":
            positions = torch.linalg.vector_norm(positions, dim=1, keepdim=True)
        out: Tensor = features + self.position(positions)
        return out

    def messages(self, encoded: Tensor, positions: Tensor) -> Tensor:
        """Messages m_i (N, D) of equation 4, with the attention matrix in chunks of rows."""
        value = self.value(encoded)
        chunks = [weights @ value for weights in self.attention(encoded, positions)]
        return torch.cat(chunks) if chunks else value

    def attention(self, encoded: Tensor, positions: Tensor) -> Iterator[Tensor]:
        """Yield the attention weights of equation 4 in chunks (n, N) of rows that sum to 1."""
        query, key, nearest = self.query(encoded), self.key(encoded), self.config.nearest
        scale: Tensor | float = self.config.dim**-0.5
        if self.config.attention == "cosine":
            query, key = (nn.functional.normalize(side, dim=1) for side in (query, key))
            scale = self.log_scale.exp().clamp(max=LAST_SCALE)
        for part, queries in zip(
            query.split(QUERY_CHUNK), positions.split(QUERY_CHUNK), strict=True
        ):
            logits = part @ key.T * scale
            if 0 < nearest < len(key):
                logits = logits.masked_fill(~_nearest_mask(queries, positions, nearest), -torch.inf)
            yield torch.softmax(logits, dim=1)


def _nearest_mask(queries: Tensor, positions: Tensor, count: int) -> Tensor:
    """Mask (n, N) bool of the ``count`` positions nearest to each of ``queries``."""
    distance = torch.cdist(queries, positions, compute_mode="donot_use_mm_for_euclid_dist")
    indices = distance.topk(count, dim=1, largest=False).indices
    return torch.zeros_like(distance, dtype=torch.bool).scatter_(1, indices, value=True)


def normalised_positions(xy: Tensor, *, size_px: tuple[int, int], position: str) -> Tensor:
    """Convert pixels to positions that do not depend on the size of the image.

    ``image``: relative to the centre of the image, in units of half its longer side. ``radial``:
    relative to the centroid of the points, in units of their root mean square distance from it. The
    network then uses distances only, which are invariant to similarity transforms.

    Args:
        xy: (N, 2) pixels.
        size_px: (height, width).
        position: One of ``POSITIONS``.
    Returns:
        (N, 2); zeros for a single point if ``radial``.
    """
    if position == "radial":
        centred = xy - xy.mean(dim=0) if len(xy) else xy
        spread = centred.square().sum(dim=1).mean().sqrt() if len(xy) else xy.new_ones(())
        return centred / spread.clamp(min=1.0)
    height, width = size_px
    centre = xy.new_tensor([(width - 1) / 2, (height - 1) / 2])
    return (xy - centre) / (max(height, width) / 2)


def _mlp(widths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
