"""The attentional graph network over the key points of one image."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from ml.errors import ShapeError, UnknownNameError

POSITIONS: tuple[str, ...] = ("image", "radial", "none")
QUERY_CHUNK = 1024
"""Rows of the attention matrix held at once: 1,024 x 10,000 float32 are 40 MB."""


@dataclass(frozen=True, slots=True)
class KeypointGnnConfig:
    """Sizes of a ``KeypointGnn``."""

    dim: int = 128  # D, of features, queries, keys, values and output
    position: str = "image"  # what the position encoder sees, see ``normalised_positions``
    position_hidden: tuple[int, ...] = (32, 64)  # hidden layers of its MLP
    hidden: int = 256  # of the MLP of equation 3


class KeypointGnn(nn.Module):
    """Position encoding, one attention layer over all key points, residual update.

    Source: graph-ssl-endoscopic-matching, section 3.2.2, equations 2 to 4. Equation 4 prints the
        queries, keys and values as functions of the layer's own output 1f; they are taken from its
        input 0f here, as in the transformer encoder it cites. Departs from it by the transformer's
        1 / sqrt(D) inside the softmax (features of D batch-normalised numbers would saturate it),
        by features brought to unit length first, and by a last layer of equation 3's MLP that
        starts at zero, so that training starts from the CNN's own features.
    """

    def __init__(self, config: KeypointGnnConfig) -> None:
        super().__init__()
        if config.position not in POSITIONS:
            raise UnknownNameError("position encoding", config.position, list(POSITIONS))
        self.config = config
        dim = config.dim
        inputs = 1 if config.position == "radial" else 2
        self.position = _mlp((inputs, *config.position_hidden, dim))
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.update = _mlp((2 * dim, config.hidden, dim))
        for last in (self.position[-1], self.update[-1]):
            assert isinstance(last, nn.Linear)  # noqa: S101 - for the type checker
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, features: Tensor, positions: Tensor) -> Tensor:
        """Features of the key points of one image, each knowing of all others.

        Args:
            features: (N, D) of the CNN. positions: (N, 2) of ``normalised_positions``.
        Returns:
            (N, D), not normalised; N may be 0.
        Raises:
            ShapeError: the two do not belong together.
        """
        if features.shape != (len(positions), self.config.dim) or positions.shape[1:] != (2,):
            raise ShapeError(
                "features and positions",
                expected=f"(N, {self.config.dim}) and (N, 2)",
                actual=f"{tuple(features.shape)} and {tuple(positions.shape)}",
            )
        f = nn.functional.normalize(features, dim=1)
        f0 = self.encode(f, positions)
        message = self.messages(f0)
        out: Tensor = f0 + self.update(torch.cat([f, message], dim=1))
        return out

    def encode(self, features: Tensor, positions: Tensor) -> Tensor:
        """Equation 2: (N, D) features plus the encoded (N, 2) positions."""
        if self.config.position == "none":
            return features
        if self.config.position == "radial":
            positions = torch.linalg.vector_norm(positions, dim=1, keepdim=True)
        out: Tensor = features + self.position(positions)
        return out

    def messages(self, encoded: Tensor) -> Tensor:
        """Equation 4: (N, D) messages m_i, the attention matrix in chunks of rows."""
        query, key, value = self.query(encoded), self.key(encoded), self.value(encoded)
        scale = self.config.dim**-0.5
        chunks = [
            torch.softmax(part @ key.T * scale, dim=1) @ value for part in query.split(QUERY_CHUNK)
        ]
        return torch.cat(chunks) if chunks else value


def normalised_positions(xy: Tensor, *, size_px: tuple[int, int], position: str) -> Tensor:
    """Pixels to positions that do not depend on the size of the image.

    ``image``: from the image's centre, in units of half its longer side. ``radial``: from the
    centroid of the points, in units of their root mean square distance from it; the network then
    sees distances only, which no rotation, translation or scaling of all points changes.

    Args:
        xy: (N, 2) pixels. size_px: (height, width).
    Returns:
        (N, 2), all zero for a single point under ``radial``.
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
