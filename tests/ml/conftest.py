"""Fixtures of the tests of ``ml``."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from ml.networks.device import REFERENCE, Compute


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=pytest.mark.gpu)])
def fast(request):
    """Work as on a GPU, with the processor in its place, so that this path is always tested."""
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
def learns_alike(fast):
    """A step there, in half precision, loses about what the reference does; its weights stay
    float32."""

    def check(make, *, number=0, rel=0.05):
        losses = []
        for compute in (REFERENCE, fast):
            torch.manual_seed(0)
            learner = make(compute)
            losses.append(learner.step(number, {"loss": [1.0]}))
            weights = [w for module in learner.modules.values() for w in module.parameters()]
            assert {w.device.type for w in weights} == {compute.device.type}
            assert {w.dtype for w in weights} == {torch.float32}
        assert losses[1] == pytest.approx(losses[0], rel=rel)
        assert losses[1] != losses[0], "nothing was computed in half precision"

    return check


@pytest.fixture
def up_to_its_loss():
    """Fail where code within reads a number of that device."""

    @contextmanager
    def check():
        with pytest.raises(RuntimeError, match=r"item\(\) cannot be called on meta tensors"):
            yield

    return check
