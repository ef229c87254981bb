"""Configurations: unknown keys and wrong types are refused, the hash sees every value."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ml.config import config_from_dict, config_from_file, config_from_json, config_hash
from ml.errors import BadInputError
from ml.roi.config import EncoderConfig
from ml.training.descriptors.graph import joint_config


@dataclass(frozen=True, slots=True)
class Shape:
    rates: tuple[float, float] = (1.0, 2.0)
    widths: tuple[int, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    first: int | None = None
    inner: Shape | None = None
    places: dict[str, str] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)


def test_a_configuration_round_trips_through_a_dict():
    config = EncoderConfig(stain="macenko")
    assert config_from_dict(EncoderConfig, dataclasses.asdict(config)) == config


def test_an_unknown_key_raises_an_error_with_its_name_and_path():
    with pytest.raises(BadInputError, match=r"config\.sampling: .*'patches'"):
        config_from_dict(EncoderConfig, {"sampling": {"patches": 3}})


def test_a_value_of_another_type_raises_an_error():
    with pytest.raises(BadInputError, match=r"config\.edge_px: .*float.*'448'"):
        config_from_dict(EncoderConfig, {"edge_px": "448"})
    with pytest.raises(BadInputError, match=r"object.*3"):
        config_from_dict(EncoderConfig, {"network": 3})


def test_the_items_of_a_tuple_are_validated():
    shape = config_from_json(Shape, '{"rates": [1, 2.5], "widths": [4, 8, 16]}')
    assert shape == Shape(rates=(1.0, 2.5), widths=(4, 8, 16))
    assert isinstance(shape.rates[0], float)
    with pytest.raises(BadInputError, match=r"config\.widths\[1\]: .*int.*'8'"):
        config_from_json(Shape, '{"widths": [4, "8"]}')
    with pytest.raises(BadInputError, match=r"config\.rates: .*2 .*3"):
        config_from_dict(Shape, {"rates": (1.0, 2.0, 3.0)})
    with pytest.raises(BadInputError, match=r"config\.widths\[0\]: .*int.*True"):
        config_from_dict(Shape, {"widths": [True]})


def test_json_that_is_no_object_raises_an_error(tmp_path: Path):
    with pytest.raises(BadInputError, match="config: not JSON"):
        config_from_json(Shape, "{")
    (tmp_path / "shape.json").write_text("[1]")
    with pytest.raises(BadInputError, match=r"shape\.json: .*\[1\]"):
        config_from_file(Shape(), tmp_path / "shape.json")
    assert config_from_file(Shape(is_open=True), None) == Shape(is_open=True)


def test_missing_fields_are_taken_from_the_default(tmp_path: Path):
    file = tmp_path / "config.json"
    file.write_text('{"steps": 3, "graph": {"hidden": 8}}')
    default = joint_config()
    graph = dataclasses.replace(default.graph, hidden=8)
    assert config_from_file(default, file) == dataclasses.replace(default, steps=3, graph=graph)


def test_every_change_changes_the_hash():
    config = EncoderConfig()
    other = dataclasses.replace(config, sampling=dataclasses.replace(config.sampling, seed=1))
    assert config_hash(config) == config_hash(EncoderConfig()) != config_hash(other)
    assert config_hash(config, b"weights") != config_hash(config)


def test_the_hash_is_that_of_the_compact_json():
    """The hash names stored data: the shipped encoders, and every vector made by them."""
    assert config_hash(Shape()) == "3a63105074591c1b"


def test_a_scalar_instead_of_a_list_raises_an_error():
    with pytest.raises(BadInputError, match=r"config\.widths: .*list.*5"):
        config_from_dict(Shape, {"widths": 5})
    with pytest.raises(BadInputError, match=r"config\.rates: .*list.*'ab'"):
        config_from_dict(Shape, {"rates": "ab"})


def test_optional_fields_are_validated():
    assert config_from_dict(Span, {"first": None}) == Span()
    given = config_from_dict(Span, {"first": 3, "inner": {"rates": [1, 2]}})
    assert given == Span(3, Shape(rates=(1.0, 2.0)))
    with pytest.raises(BadInputError, match=r"config\.first: .*int.*'x'"):
        config_from_dict(Span, {"first": "x"})
    with pytest.raises(BadInputError, match=r"config\.inner: .*object.*3"):
        config_from_dict(Span, {"inner": 3})


def test_keys_and_values_of_a_mapping_are_validated():
    given = config_from_dict(Span, {"places": {"a": "b"}, "names": {"a": ["b", "c"]}})
    assert given == Span(places={"a": "b"}, names={"a": ["b", "c"]})
    with pytest.raises(BadInputError, match=r"config\.places: .*object.*\['a'\]"):
        config_from_dict(Span, {"places": ["a"]})
    with pytest.raises(BadInputError, match=r"config\.places\.a: .*str.*1"):
        config_from_dict(Span, {"places": {"a": 1}})
    with pytest.raises(BadInputError, match=r"config\.names\.a: .*list.*'b'"):
        config_from_dict(Span, {"names": {"a": "b"}})


def test_a_file_that_is_not_utf_8_raises_an_error(tmp_path: Path):
    (tmp_path / "shape.json").write_bytes('{"name": "Größe"}'.encode("latin-1"))
    with pytest.raises(BadInputError, match=r"shape\.json: not UTF-8"):
        config_from_file(Shape(), tmp_path / "shape.json")
