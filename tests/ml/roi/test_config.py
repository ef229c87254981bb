"""Configurations: unknown keys and wrong types are refused, the hash sees every value."""

from __future__ import annotations

import dataclasses

import pytest

from ml.errors import BadInputError
from ml.roi.config import EncoderConfig, config_from_dict, config_hash


def test_a_configuration_survives_plain_data():
    config = EncoderConfig(stain="macenko")
    assert config_from_dict(EncoderConfig, dataclasses.asdict(config)) == config


def test_an_unknown_key_is_refused_by_name_and_place():
    with pytest.raises(BadInputError, match=r"config\.sampling: unknown key 'patches'; known: "):
        config_from_dict(EncoderConfig, {"sampling": {"patches": 3}})


def test_a_value_of_another_type_is_refused():
    with pytest.raises(BadInputError, match=r"config\.edge_px: expected float, got '448'"):
        config_from_dict(EncoderConfig, {"edge_px": "448"})
    with pytest.raises(BadInputError, match=r"expected an object, got 3"):
        config_from_dict(EncoderConfig, {"network": 3})


def test_every_change_changes_the_hash():
    config = EncoderConfig()
    other = dataclasses.replace(config, sampling=dataclasses.replace(config.sampling, seed=1))
    assert config_hash(config) == config_hash(EncoderConfig()) != config_hash(other)
    assert config_hash(config, b"weights") != config_hash(config)
