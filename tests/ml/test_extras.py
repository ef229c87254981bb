"""A library that is missing is named, with the extra that installs it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from ml.errors import MissingDependencyError
from ml.extras import require_extra
from ml.imaging.samples.packaged import packaged_image
from ml.networks.vit_adapter import VitConfig, make_backbone
from ml.roi.encoders.hub import load_hub_encoder

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_installed_packages_pass() -> None:
    require_extra("numpy", extra="hub")


@pytest.mark.parametrize(
    ("package", "extra", "work"),
    [
        ("transformers", "hub", lambda: make_backbone(VitConfig(backbone="some/model"))),
        ("transformers", "hub", lambda: load_hub_encoder("x", "some/model")),
        ("skimage", "demo", lambda: packaged_image("retina.jpg")),
    ],
)
def test_a_missing_library_raises_an_error_with_its_extra(
    monkeypatch, package, extra, work
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'tessera\[{extra}\]'") as error:
        work()
    assert repr(package) in str(error.value)
    assert extra in PROJECT["optional-dependencies"]


def test_the_developers_have_every_extra_but_timm() -> None:
    """timm requires a torchvision that matches torch's build; its tests have a stand-in."""
    extras = PROJECT["optional-dependencies"]
    (requirement,) = [line for line in extras["dev"] if line.startswith("tessera[")]
    assert set(requirement[len("tessera[") : -1].split(",")) == set(extras) - {
        "dev",
        "cpu",
        "gpu",
        "timm",
    }
