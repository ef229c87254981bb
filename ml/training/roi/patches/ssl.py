"""Self-supervised loss of the patch encoder."""

from __future__ import annotations

from torch import Tensor, nn

from ml.training.roi.losses import label_contrast, nt_xent


class SimClr(nn.Module):
    """An encoder with the projection heads that are trained with it.

    Args:
        encoder: (B, ...) to (B, dim).
        temperature: tau of both contrasts.
        label_weight: Weight of ``label_contrast``, which has a head of its own; 0 for none.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        dim: int,
        hidden_dim: int,
        out_dim: int,
        temperature: float,
        label_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.encoder = encoder
        self.head = _head(dim, hidden_dim, out_dim)
        self.label_weight = label_weight
        if label_weight:
            self.label_head = _head(dim, hidden_dim, out_dim)

    def forward(
        self, both: Tensor, labels: Tensor | None = None, domains: Tensor | None = None
    ) -> Tensor:
        """Loss of (2B, ...) views; row i and row B + i are of the same patch.

        Args:
            labels, domains: (B,) int64, see ``label_contrast``, which is left out without them.
        """
        features = self.encoder(both)
        loss = nt_xent(*self.head(features).chunk(2), temperature=self.temperature)
        if not self.label_weight or labels is None or domains is None:
            return loss
        of_labels = label_contrast(
            self.label_head(features),
            labels.repeat(2),
            domains.repeat(2),
            temperature=self.temperature,
        )
        return loss + self.label_weight * of_labels


def _head(dim: int, hidden_dim: int, out_dim: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(dim, hidden_dim, bias=False),
        nn.BatchNorm1d(hidden_dim),
        nn.ReLU(),
        nn.Linear(hidden_dim, out_dim),
    )
