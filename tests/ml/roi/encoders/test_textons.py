"""Textons: what local shapes a patch is made of, whichever way it is turned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.networks.textons import TextonBank, TextonConfig
from ml.roi.encoders.textons import TextonEncoder, local_jets
from ml.roi.stain import fixed_stains
from ml.training.roi.textons import TextonFitConfig, fit_textons

SMALL = TextonConfig(words=8, scales_px=(1.0, 2.0), stride_px=4)


@pytest.fixture
def encoder(tissue):
    patch = tissue(224, 224)
    jets = local_jets(patch, fixed_stains(patch), SMALL)
    return TextonEncoder(fit_textons(jets, SMALL, fit=TextonFitConfig(rounds=4), seed=0))


def test_shares_are_those_of_a_slow_search(encoder, tissue):
    patch = tissue(224, 224, seed=3)
    stains = fixed_stains(patch)
    found = encoder.encode([patch], stains)[0]
    bank = encoder.network
    counts = np.zeros(8)
    for row in local_jets(patch, stains, SMALL):
        scaled = np.clip((row - bank.mean.numpy()) / bank.deviation.numpy(), -4, 4)
        point = scaled @ bank.whiten.numpy()
        counts[np.argmin([((point - word) ** 2).sum() for word in bank.words.numpy()])] += 1
    assert found == pytest.approx(np.sqrt(counts / counts.sum()), abs=0.02)
    assert np.square(found).sum() == pytest.approx(1, abs=1e-5)


def test_a_turned_or_mirrored_patch_has_the_same_measurements(tissue):
    patch = tissue(225, 225)  # an odd side: the points of the grid turn onto themselves
    stains = fixed_stains(patch)
    config = TextonConfig(words=8, scales_px=(1.0, 2.0), stride_px=4, border_px=8)
    first = local_jets(patch, stains, config)
    for other in (np.rot90(patch), patch[:, ::-1]):
        second = local_jets(np.ascontiguousarray(other), stains, config)
        assert np.allclose(np.sort(first, axis=0), np.sort(second, axis=0), atol=1e-3)


def test_a_blank_patch_has_no_gradient_and_one_texton(encoder):
    blank = np.full((224, 224, 3), 245, np.uint8)
    stains = fixed_stains(blank)
    assert not local_jets(blank, stains, SMALL)[:, 3:6].any()
    assert encoder.encode([blank], stains)[0].max() == 1


def test_a_ramp_has_the_gradient_of_its_slope():
    from ml.roi.encoders.textons import _slopes

    ramp = np.tile(0.01 * np.arange(40, dtype=np.float32), (40, 1))
    x, y = _slopes(ramp, 2.0)
    assert x[5:-5, 5:-5] == pytest.approx(0.02, abs=1e-5) and not y.any()


def test_fitting_is_deterministic_and_separates_what_is_apart():
    rng = np.random.default_rng(0)
    config = TextonConfig(words=3, scales_px=(1.0,))
    centre = rng.normal(0, 1, (3, config.jet_dim))
    rows = centre[rng.integers(3, size=300)] + rng.normal(0, 0.01, (300, config.jet_dim))
    banks = [
        fit_textons(rows.astype(np.float32), config, fit=TextonFitConfig(), seed=1)
        for _ in range(2)
    ]
    assert all(
        torch.equal(a, b)
        for a, b in zip(banks[0].state_dict().values(), banks[1].state_dict().values(), strict=True)
    )
    found = [
        int(banks[0](torch.from_numpy(row[None].astype(np.float32))).argmax()) for row in centre
    ]
    assert sorted(found) == [0, 1, 2]


def test_a_bank_of_nothing_is_all_one_word():
    bank = TextonBank(SMALL)
    assert bank(torch.zeros(5, SMALL.jet_dim)).tolist() == [1.0] + [0.0] * 7
