"""The network of letters in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import WeightsError
from ml.imaging.revealing import network
from ml.imaging.revealing.network import LetterNetwork, letter_network
from ml.training.letters.command import LetterNet


@pytest.fixture
def trained() -> LetterNet:
    torch.manual_seed(3)
    return LetterNet((4, 6, 6, 6, 6))


def test_numpy_answers_as_torch_does(trained: LetterNet) -> None:
    rng = np.random.default_rng(0)
    rgb = rng.integers(0, 256, (200, 300, 3), np.uint8)
    ours = LetterNetwork.of(trained.arrays()).logits(rgb)
    margin = network.MARGIN_PX
    padded = np.pad(rgb, ((margin, margin), (margin, margin), (0, 0)), mode="edge")
    with torch.no_grad():
        pixels = torch.from_numpy(padded).permute(2, 0, 1)[None].float() / 127.5 - 1
        theirs = trained.half().float()(pixels)[0].numpy()
    inner = margin // network.STRIDE
    assert ours.shape == (50, 75)
    assert np.allclose(ours, theirs[inner:-inner, inner:-inner], atol=1e-4)


def test_blocks_leave_no_seam(trained: LetterNet, monkeypatch: pytest.MonkeyPatch) -> None:
    rgb = np.random.default_rng(1).integers(0, 256, (130, 270, 3), np.uint8)
    asked = LetterNetwork.of(trained.arrays())
    whole = asked.logits(rgb)
    monkeypatch.setattr(network, "BLOCK_PX", 64)
    assert np.allclose(asked.logits(rgb), whole, atol=1e-4)


@pytest.mark.parametrize("size", [(1, 1), (3, 700), (5, 4)])
def test_any_size_has_an_answer(size: tuple[int, int]) -> None:
    answer = letter_network().logits(np.zeros((*size, 3), np.uint8))
    assert answer.shape == (-(-size[0] // 4), -(-size[1] // 4))
    assert np.isfinite(answer).all()


def test_weights_of_another_shape_are_refused(trained: LetterNet) -> None:
    stored = trained.arrays()
    with pytest.raises(WeightsError, match="kernel2"):
        LetterNetwork.of({name: array for name, array in stored.items() if name != "kernel2"})
    with pytest.raises(WeightsError, match=r"expected kernel1 of \(36, 6\)"):
        LetterNetwork.of(stored | {"kernel1": np.zeros((3, 6))})
