"""Pooling of tokens, compared with hand-worked sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import UnknownNameError
from ml.roi.encoders.pooling import pool_tokens


def by_hand(tokens, pool, prefix):
    rows = []
    for image in tokens.numpy():
        total = np.zeros(image.shape[1])
        for token in image[prefix:]:
            total += token
        mean = total / (len(image) - prefix)
        rows.append({"cls": image[0], "mean": mean, "cls_mean": [*image[0], *mean]}[pool])
    return np.array(rows)


@pytest.mark.parametrize("pool", ["cls", "mean", "cls_mean"])
@pytest.mark.parametrize("prefix", [1, 5])
def test_register_tokens_are_ignored(pool, prefix):
    tokens = torch.randn(3, 12, 4)
    array = pool_tokens(tokens, pool, prefix=prefix).numpy()
    assert np.allclose(array, by_hand(tokens, pool, prefix), atol=1e-6)
    tokens[:, 1:prefix] = 1e9
    assert np.array_equal(pool_tokens(tokens, pool, prefix=prefix).numpy(), array)


def test_an_unknown_pooling_raises_an_error():
    with pytest.raises(UnknownNameError, match="'max'"):
        pool_tokens(torch.zeros(1, 2, 3), "max", prefix=1)
