"""What tests of ``ml`` share."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from ml.networks.device import Compute


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=pytest.mark.gpu)])
def fast(request):
    """Work as on a GPU: the processor stands in for it, so that the way there is always tested."""
    if request.param == "stand-in":
        return Compute(torch.device("cpu"), batched=True)
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Compute(torch.device("cuda", 0), batched=True)


@pytest.fixture
def elsewhere():
    """A device without memory: its tensors refuse to meet those of the processor."""
    return Compute(torch.device("meta"), batched=False)


@pytest.fixture
def up_to_its_loss():
    """What runs within it stays on that device until it reads a number, which is not there."""

    @contextmanager
    def check():
        with pytest.raises(RuntimeError, match=r"item\(\) cannot be called on meta tensors"):
            yield

    return check
