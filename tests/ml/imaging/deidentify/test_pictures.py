"""Stills: pixels, profile, resolution and orientation stay; what is written beside them goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from ml.imaging.slides import open_slide
from tests.ml.imaging.deidentify.support import SECRET, clean


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[274], exif[315], exif[306] = 6, SECRET, "2020:01:01 00:00:00"
    exif.get_ifd(34853)[1] = "N"
    return exif


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_a_still_keeps_its_pixels_and_its_orientation_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pixels = np.random.default_rng(3).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Author", SECRET)
    more = {"comment": SECRET.encode()} if name == "a.jpg" else {"pnginfo": notes}
    options = {} if name == "a.webp" else more
    Image.fromarray(pixels).save(path, exif=_exif(), dpi=(300, 300), **options)
    path.write_bytes(path.read_bytes() + (b"" if name == "a.webp" else SECRET.encode()))
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert {"Exif", "GPS position"} <= set(cleaned.removed)
    assert SECRET.encode() not in made.read_bytes()
    before, after = Image.open(path), Image.open(made)
    assert after.tobytes() == before.tobytes()
    assert dict(after.getexif()) == {274: 6}
    assert after.info.get("dpi") == before.info.get("dpi")
    with open_slide(path) as shown, open_slide(made) as clean_shown:
        assert (shown.info.width_px, shown.info.mpp_x) == (
            clean_shown.info.width_px,
            clean_shown.info.mpp_x,
        )
    assert clean(made, tmp_path / "again")[0] is None


def test_a_progressive_jpeg_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.jpg"
    pixels = np.random.default_rng(4).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, progressive=True, comment=SECRET.encode())
    made, cleaned = clean(path, tmp_path / "out")
    assert made is not None
    assert cleaned.removed == ["JPEG comment"]
    assert Image.open(made).tobytes() == Image.open(path).tobytes()
