"""What patches are measured by: each choice of stain normalisation, and its fallback."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from ml.errors import UnknownNameError
from ml.networks.gcn import RoiGcn
from ml.roi import RoiEncoder
from ml.roi.config import EncoderConfig
from ml.roi.patches import ImagePatches
from ml.roi.stain import estimate_stain_of_image, load_target, with_strength_kept
from ml.roi.stain.deconvolution import USUAL_DENSITY, USUAL_SCALE, fixed_stains
from ml.roi.stained import stained_patches


def never():
    raise AssertionError("the stains of the image are not needed")


def encoder(stain):
    torch.manual_seed(0)
    config = EncoderConfig(stain=stain)
    return RoiEncoder(
        name="x", version="1", config_hash="", config=config, network=RoiGcn(config.network)
    )


def test_the_strength_is_kept_by_the_share_asked_for(tissue):
    stains = fixed_stains(tissue(224, 224))
    assert with_strength_kept(stains, 0.0).scale == pytest.approx(stains.scale)
    usual = with_strength_kept(stains, 1.0)
    assert usual.scale == pytest.approx(USUAL_SCALE) and usual.density_scale == USUAL_DENSITY
    half = with_strength_kept(stains, 0.5)
    assert half.scale == pytest.approx(np.sqrt(stains.scale * USUAL_SCALE))


@pytest.mark.parametrize("stain", ["ruifrok", "none"])
def test_the_image_is_not_looked_at_where_that_is_not_needed(tissue, stain):
    source = ImagePatches(tissue(300, 300), downsample=1.0)
    found, stains = stained_patches(source, [(0, 0)], EncoderConfig(stain=stain), never)
    assert found is source and stains.method == stain


@pytest.mark.parametrize("stain", ["nuclei", "macenko"])
def test_patches_are_made_to_look_like_the_target(tissue, stain):
    image = tissue(600, 600)
    source = ImagePatches(image, downsample=1.0)
    config = EncoderConfig(stain=stain)
    estimate = dataclasses.replace(load_target(), method=stain)
    found, stains = stained_patches(source, [(0, 0)], config, lambda: estimate)
    assert stains.method == stain and stains.scale == pytest.approx(load_target().scale)
    same = source.read((0, 0), 224).astype(int)
    assert np.abs(found.read((0, 0), 224).astype(int) - same).max() <= 12  # its own target already


def test_what_cannot_be_normalised_is_measured_as_it_is_with_the_reason(tissue):
    blank = np.full((600, 600, 3), 250, np.uint8)
    estimate = estimate_stain_of_image(blank)
    source = ImagePatches(tissue(600, 600), downsample=1.0)
    found, stains = stained_patches(
        source, [(0, 0)], EncoderConfig(stain="nuclei"), lambda: estimate
    )
    assert found is source and stains.method == "ruifrok" and stains.reason == estimate.reason != ""


def test_a_stored_estimate_gives_the_same_vector_as_a_new_one(tissue):
    image = tissue(900, 900)
    model = encoder("nuclei")
    stored = estimate_stain_of_image(image, mpp=0.5)
    assert np.array_equal(model.embed(image, mpp=0.5), model.embed(image, mpp=0.5, stain=stored))


def test_an_unknown_normalisation_is_refused():
    with pytest.raises(UnknownNameError, match="unknown stain normalisation 'vahadane'"):
        encoder("vahadane")
