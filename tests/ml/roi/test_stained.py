"""Stain normalisation of the patches of a region, and fallbacks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from ml.errors import UnknownNameError
from ml.networks.gcn import RoiGcn
from ml.roi.config import EncoderConfig
from ml.roi.embed import RoiEncoder
from ml.roi.patches import ImagePatches
from ml.roi.stain.deconvolution import (
    TYPICAL_DENSITY,
    TYPICAL_SCALE,
    published_stains,
    with_partial_scale,
)
from ml.roi.stain.estimate import estimate_stain_of_image
from ml.roi.stain.storage import load_target
from ml.roi.stained import stained_patches


def never():
    raise AssertionError("the stains of the image are not needed")


def encoder(stain):
    torch.manual_seed(0)
    config = EncoderConfig(stain=stain)
    return RoiEncoder(
        name="x", version="1", config_hash="", config=config, network=RoiGcn(config.network)
    )


def test_the_scale_is_replaced_by_the_configured_share(tissue):
    stains = published_stains(tissue(224, 224))
    assert with_partial_scale(stains, 0.0).scale == pytest.approx(stains.scale)
    usual = with_partial_scale(stains, 1.0)
    assert usual.scale == pytest.approx(TYPICAL_SCALE) and usual.density_scale == TYPICAL_DENSITY
    half = with_partial_scale(stains, 0.5)
    assert half.scale == pytest.approx(np.sqrt(stains.scale * TYPICAL_SCALE))


@pytest.mark.parametrize("stain", ["ruifrok", "none"])
def test_stains_of_the_image_are_not_estimated_if_not_needed(tissue, stain):
    source = ImagePatches(tissue(300, 300), downsample=1.0)
    patches, stains = stained_patches(source, [(0, 0)], EncoderConfig(stain=stain), never)
    assert patches is source and stains.method == stain


@pytest.mark.parametrize("stain", ["nuclei", "macenko"])
def test_patches_are_normalised_to_the_target(tissue, stain):
    image = tissue(600, 600)
    source = ImagePatches(image, downsample=1.0)
    config = EncoderConfig(stain=stain)
    estimate = dataclasses.replace(load_target(), method=stain)
    patches, stains = stained_patches(source, [(0, 0)], config, lambda: estimate)
    assert stains.method == stain and stains.scale == pytest.approx(load_target().scale)
    same = source.read((0, 0), 224).astype(int)
    assert np.abs(patches.read((0, 0), 224).astype(int) - same).max() <= 12  # it is the target


def test_a_slide_that_cannot_be_normalised_falls_back_with_a_reason(tissue):
    blank = np.full((600, 600, 3), 250, np.uint8)
    estimate = estimate_stain_of_image(blank)
    source = ImagePatches(tissue(600, 600), downsample=1.0)
    patches, stains = stained_patches(
        source, [(0, 0)], EncoderConfig(stain="nuclei"), lambda: estimate
    )
    assert (
        patches is source and stains.method == "ruifrok" and stains.reason == estimate.reason != ""
    )


@pytest.mark.slow
def test_a_stored_estimate_gives_the_vector_of_a_new_one(tissue):
    image = tissue(900, 900)
    model = encoder("nuclei")
    stored = estimate_stain_of_image(image, mpp=0.5)
    assert np.array_equal(model.embed(image, mpp=0.5), model.embed(image, mpp=0.5, stain=stored))


def test_an_unknown_normalisation_raises_an_error():
    with pytest.raises(UnknownNameError, match="'vahadane'"):
        encoder("vahadane")
