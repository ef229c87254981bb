"""Colours by the profile that a file carries, and the stored values by a switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

pytestmark = pytest.mark.browser

STORED = (200, 90, 60)
PLACE = (400, 300)
NEAR = 6  # of 255: JPEG, and the rounding of profiles


def swapping_profile() -> bytes:
    """sRGB with red and blue exchanged: their colorants have each other's names."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return profile.replace(b"rXYZ", b"?XYZ").replace(b"bXYZ", b"rXYZ").replace(b"?XYZ", b"bXYZ")


@pytest.fixture
def still_file(tmp_path: Path) -> Path:
    """One colour, under a strong profile."""
    image = Image.fromarray(np.full((600, 800, 3), STORED, np.uint8))
    path = tmp_path / "profiled.tif"
    image.save(path, icc_profile=swapping_profile())
    return path


def differs(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return int(np.abs(np.subtract(one, other)).max())


def test_colours_follow_the_icc_profile_unless_stored_values_are_selected(
    open_viewer: Any, ingest: Any, still_file: Path
) -> None:
    canvas = ingest(still_file)
    assert canvas.has_icc_profile
    viewer = open_viewer(canvas).centred(1.0)
    switch = viewer.page.get_by_label("Colours by the scanner's ICC profile")
    viewer.page.wait_for_load_state("networkidle")
    (shown,) = viewer.colours([PLACE])
    assert differs(shown, STORED[::-1]) <= NEAR
    viewer.key("Shift+C")
    switch.uncheck()
    viewer.page.wait_for_load_state("networkidle")
    (raw,) = viewer.colours([PLACE])
    assert differs(raw, STORED) <= NEAR
    viewer.page.get_by_role("button", name="Reset").click()
    viewer.page.wait_for_load_state("networkidle")
    assert switch.is_checked()
    (again,) = viewer.colours([PLACE])
    assert differs(again, shown) <= NEAR
    assert viewer.problems == []


def test_a_file_without_a_profile_has_no_switch(
    open_viewer: Any, ingest: Any, slide_file: Path
) -> None:
    canvas = ingest(slide_file)
    assert not canvas.has_icc_profile
    viewer = open_viewer(canvas)
    viewer.key("Shift+C")
    assert viewer.page.locator("[data-adjustments-profile]").count() == 0
