"""Descriptors are loaded by name; a name that is none is refused."""

from __future__ import annotations

import pytest

from ml.errors import UnknownNameError
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.classical import CLASSICAL_NAMES, ClassicalDescriptor


def test_the_default_is_ours_and_each_classical_name_is_itself() -> None:
    assert load_descriptor().name == "tessera"
    assert all(isinstance(load_descriptor(name), ClassicalDescriptor) for name in CLASSICAL_NAMES)


@pytest.mark.parametrize("name", ["superpoint", "", "sift:a.safetensors", ":a"])
def test_names_that_are_not_known_are_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"known: akaze, .*default, .*kaze, orb, sift"):
        load_descriptor(name)
