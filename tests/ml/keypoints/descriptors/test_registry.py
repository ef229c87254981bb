"""Loading of descriptors by name."""

from __future__ import annotations

import pytest

from ml.errors import UnknownNameError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor


def test_default_and_classical_names_are_resolved() -> None:
    assert load_descriptor().name == "tessera"
    assert all(isinstance(load_descriptor(name), ClassicalDescriptor) for name in CLASSICAL_NAMES)


@pytest.mark.parametrize("name", ["superpoint", "", "sift:a.safetensors", ":a"])
def test_unknown_names_raise_an_error_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"known: akaze, .*default, .*kaze, orb, sift"):
        load_descriptor(name)
