"""Contrastive losses of ROI training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import ShapeError

_NEVER = -1e4
"""Logit of a pair that is not compared; finite, so that rows without pairs stay finite."""


def nt_xent(
    first: Tensor, second: Tensor, *, temperature: float, negatives: Tensor | None = None
) -> Tensor:
    """Normalised temperature-scaled cross entropy over two views of each example.

    Args:
        first, second: (M, D) projections; row i of both is the same example, M >= 2.
        temperature: tau, above 0.
        negatives: (K, D) projections that every row is also compared with; None for none.
    Returns:
        Scalar: mean of equation 1 over all 2M ordered positive pairs.
    Raises:
        ShapeError: the two differ in shape, or M < 2.
    Source: the retrieval paper, equation 1 (SimCLR).
    """
    if first.shape != second.shape or first.ndim != 2 or first.shape[0] < 2:
        raise ShapeError(
            "views",
            expected="two of (M, D), M >= 2",
            actual=f"{tuple(first.shape)}, {tuple(second.shape)}",
        )
    count = first.shape[0]
    unit = functional.normalize(torch.cat([first, second]), dim=1)
    logits = unit @ unit.T / temperature
    logits.fill_diagonal_(float("-inf"))
    if negatives is not None:
        negative_logits = unit @ functional.normalize(negatives, dim=1).T / temperature
        logits = torch.cat([logits, negative_logits], dim=1)
    partner = torch.arange(2 * count, device=unit.device).roll(count)
    return functional.cross_entropy(logits, partner)


def label_contrast(
    projected: Tensor, labels: Tensor, domains: Tensor, *, temperature: float
) -> Tensor:
    """Supervised contrast between domains: nearer to the same label than to other labels.

    Rows of one domain are not compared with each other, so that features of a domain do not help.
    Rows without a label are left out.

    Args:
        projected: (N, D).
        labels: (N,) int64, below 0 where there is none.
        domains: (N,) int64.
        temperature: tau, above 0.
    Returns:
        Scalar: mean over the rows whose label occurs in another domain; 0 if there is none.
    Raises:
        ShapeError: the three differ in length.
    Source: Khosla et al. 2020, equation 2 (L_out), over the pairs of different domains.
    """
    if not len(projected) == len(labels) == len(domains):
        raise ShapeError(
            "labels and domains",
            expected=f"({len(projected)},) each",
            actual=f"{tuple(labels.shape)}, {tuple(domains.shape)}",
        )
    unit = functional.normalize(projected.float(), dim=1)
    is_labelled = labels >= 0
    compared = is_labelled[:, None] & is_labelled & (domains[:, None] != domains)
    positive = (compared & (labels[:, None] == labels)).float()
    logits = (unit @ unit.T / temperature).masked_fill(~compared, _NEVER)
    log_share = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    count = positive.sum(dim=1)
    of_row = -(log_share * positive).sum(dim=1) / count.clamp(min=1)
    return of_row.sum() / (count > 0).sum().clamp(min=1)
